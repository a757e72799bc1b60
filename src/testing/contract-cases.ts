/** What contracts share: their cases, and what they compare. */

/** One case of a contract. */
export interface ContractCase {
  /** What it checks, as a sentence. */
  readonly name: string
  /** Runs it; rejects when the contract is broken. */
  readonly run: () => Promise<void>
}

/** How long a case waits for the end of a task, in ms: only a hang is to fail. */
export const END_MS = 60_000

/** The cases, each on a subject of its own, which is disposed of after it. */
export function casesOf<Subject extends { readonly dispose: () => Promise<unknown> }>(
  cases: Readonly<Record<string, (subject: Subject) => Promise<void>>>,
  makeSubject: () => Subject | Promise<Subject>,
): readonly ContractCase[] {
  return Object.entries(cases).map(([name, check]) => ({
    name,
    run: async () => {
      const subject = await makeSubject()
      try {
        await check(subject)
      } finally {
        await subject.dispose()
      }
    },
  }))
}

/** @throws Error that says what differs, and how */
export function expectEqual(actual: unknown, expected: unknown, what: string): void {
  const [got, wanted] = [JSON.stringify(actual), JSON.stringify(expected)]
  if (got !== wanted) throw new Error(`${what}: got ${got}, expected ${wanted}`)
}
