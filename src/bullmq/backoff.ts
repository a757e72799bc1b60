/** The waits of a loop whose commands Redis refuses: each is twice as long as the one before. */
import { pause } from './timing.js'

/** The default of `mostMs`. */
const MOST_MS = 10_000

export interface Backoff {
  /** Returns the next wait, in ms. */
  next(): number
  /** Resolves after the next wait. */
  wait(): Promise<void>
  /** Starts again with the shortest wait. Call this after a success. */
  reset(): void
}

/**
 * @param firstMs the shortest wait, in ms
 * @param mostMs the longest wait, in ms
 */
export function createBackoff(firstMs: number, mostMs: number = MOST_MS): Backoff {
  let ms = firstMs
  const next = (): number => {
    const current = ms
    ms = Math.min(2 * ms, mostMs)
    return current
  }
  return {
    next,
    wait: () => pause(next()),
    reset: () => {
      ms = firstMs
    },
  }
}
