/** The cases and comparisons that all contracts share. */

/** One case of a contract. */
export interface ContractCase {
  /** What the case checks, as a sentence. Use it as the name of a test. */
  readonly name: string
  /** Runs the case. Rejects if the contract is broken. */
  readonly run: () => Promise<void>
}

/** How long a case waits for the end of a task, in ms. It is long, because only a hang should fail. */
export const END_MS = 60_000

/** Returns the cases of a contract. Each case makes the subject that it tests, and disposes the subject at its end. */
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

/** @throws Error that describes the difference */
export function expectEqual(actual: unknown, expected: unknown, what: string): void {
  const [got, wanted] = [JSON.stringify(actual), JSON.stringify(expected)]
  if (got !== wanted) throw new Error(`${what}: got ${got}, expected ${wanted}`)
}
