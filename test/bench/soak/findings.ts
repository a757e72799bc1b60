/** What a soak found: how often each thing was done, and what did not hold. */
export interface Findings {
  /** Counts one more of something. */
  count(what: string, by?: number): void
  /** Notes a problem unless the invariant is kept. */
  check(isKept: boolean, invariant: string, what: () => string): void
  readonly counts: ReadonlyMap<string, number>
  readonly problems: readonly string[]
}

/** More problems than this say nothing new. */
const MAX_PROBLEMS = 50

export function createFindings(): Findings {
  const counts = new Map<string, number>()
  const problems: string[] = []
  return {
    counts,
    problems,
    count: (what, by = 1) => counts.set(what, (counts.get(what) ?? 0) + by),
    check: (isKept, invariant, what) => {
      if (!isKept && problems.length < MAX_PROBLEMS) problems.push(`${invariant}: ${what()}`)
    },
  }
}
