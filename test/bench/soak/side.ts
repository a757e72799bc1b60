/** One half of the soak: the load on async tasks, or on command tasks. */
export interface Side {
  /** Performs a few random operations. */
  step(): void | Promise<void>
  /** Waits until everything has ended, checks the invariants, and closes. */
  finish(): Promise<void>
}

/** In real time, unlike the unit tests. */
export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Waits until a condition holds. Returns false when it does not within `ms`. */
export async function holdsWithin(ms: number, condition: () => boolean): Promise<boolean> {
  const until = performance.now() + ms
  while (!condition()) {
    if (performance.now() > until) return false
    await pause(10)
  }
  return true
}
