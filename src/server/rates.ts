/** Limits for each client address: requests per minute, and open connections. */
import { elapsedMs, type Clock } from '../system/clock.js'

const MINUTE_MS = 60_000
/** When there are more addresses than this, those without recent requests are forgotten. */
const MAX_KEYS = 10_000

export interface RateLimiter {
  /** Counts one request. Returns 0 if it is allowed, and otherwise the time until the next request is allowed, in ms. */
  take(key: string): number
}

/** A token bucket: each key may send `perMinute` requests at once, and then the same number per minute, evenly spread. */
export function createRateLimiter(perMinute: number, clock: Clock): RateLimiter {
  /** For each key: when its bucket is full again, in ms of the monotonic clock `elapsedMs`. */
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
      // Limited to one minute ahead.
      const next = Math.min(Math.max(known ?? now, now), now + MINUTE_MS) + costMs
      const waitMs = next - now - MINUTE_MS
      if (waitMs > 0) return Math.ceil(waitMs)
      fullAt.set(key, next)
      return 0
    },
  }
}

export interface ConnectionCounts {
  /** Counts a connection. Returns a function to call when the connection closes, or undefined when the address has too many connections. */
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
