/** One of the two systems under a soak. */
export interface Side {
  /** Does a few things at random. */
  step(): void | Promise<void>
  /** Lets everything come to its end, checks what must hold then, and takes it down. */
  finish(): Promise<void>
}

/** Real time: a soak is about what time does. */
export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Waits until something holds. Returns whether it came to that. */
export async function holdsWithin(ms: number, isHeld: () => boolean): Promise<boolean> {
  const until = performance.now() + ms
  while (!isHeld()) {
    if (performance.now() > until) return false
    await pause(10)
  }
  return true
}
