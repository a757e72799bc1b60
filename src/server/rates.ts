/** Limits for each client address: requests per minute, and open connections. */
import { elapsedMs, type Clock } from '../clock.js'

const MINUTE_MS = 60_000
/** Beyond this number of addresses, idle ones are removed. */
const MAX_KEYS = 10_000

export interface RateLimiter {
  /** Counts one request. Returns 0, or the time until the next one is allowed, in ms. */
  take(key: string): number
}

/** Allows `perMinute` requests of each key at once, and then the same number per minute, evenly (a token bucket). */
export function createRateLimiter(perMinute: number, clock: Clock): RateLimiter {
  /** The time at which a key's bucket is full again, in ms on the clock of `elapsedMs`. */
  const fullAt = new Map<string, number>()
  const costMs = MINUTE_MS / perMinute
  const removeIdle = (now: number): void => {
    for (const [key, at] of fullAt) if (at <= now) fullAt.delete(key)
  }
  return {
    take: (key) => {
      const now = elapsedMs(clock)
      const known = fullAt.get(key)
      if (known === undefined && fullAt.size >= MAX_KEYS) removeIdle(now)
      // At most a minute, even if the clock was set back.
      const next = Math.min(Math.max(known ?? now, now), now + MINUTE_MS) + costMs
      const waitMs = next - now - MINUTE_MS
      if (waitMs > 0) return Math.ceil(waitMs)
      fullAt.set(key, next)
      return 0
    },
  }
}

export interface ConnectionCounts {
  /** Counts a connection. Returns the function that ends it, or undefined when the address has too many. */
  enter(address: string): (() => void) | undefined
}

export function createConnectionCounts(maxPerAddress: number): ConnectionCounts {
  const counts = new Map<string, number>()
  return {
    enter: (address) => {
      const count = counts.get(address) ?? 0
      if (count >= maxPerAddress) return undefined
      counts.set(address, count + 1)
      let isOpen = true
      return () => {
        if (!isOpen) return
        isOpen = false
        const left = (counts.get(address) ?? 1) - 1
        if (left === 0) counts.delete(address)
        else counts.set(address, left)
      }
    },
  }
}
