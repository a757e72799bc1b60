/** What a soak found: how often each thing happened, and which invariants were violated. */
export interface Findings {
  count(what: string, by?: number): void
  /** Adds a problem unless the invariant holds. */
  check(holds: boolean, invariant: string, describe: () => string): void
  readonly counts: ReadonlyMap<string, number>
  readonly problems: readonly string[]
}

/** Further problems are dropped. */
const MAX_PROBLEMS = 50

export function createFindings(): Findings {
  const counts = new Map<string, number>()
  const problems: string[] = []
  return {
    counts,
    problems,
    count: (what, by = 1) => counts.set(what, (counts.get(what) ?? 0) + by),
    check: (holds, invariant, describe) => {
      if (!holds && problems.length < MAX_PROBLEMS) problems.push(`${invariant}: ${describe()}`)
    },
  }
}
