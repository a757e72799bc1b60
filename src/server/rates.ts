/** How much one address may ask for: requests by the minute, and connections that stay. */
import type { Clock } from '../clock.js'

const MINUTE_MS = 60_000
/** Addresses that are remembered before those that have been quiet are forgotten. */
const MAX_KEYS = 10_000

export interface RateLimiter {
  /** Takes one. Returns 0, or in how many ms the next may be taken. */
  take(key: string): number
}

/** Each key may take `perMinute` at once, and then as many a minute, evenly. */
export function createRateLimiter(perMinute: number, clock: Clock): RateLimiter {
  /** When what a key has taken is paid off, in ms since the epoch: one number holds its whole state. */
  const paidOffAt = new Map<string, number>()
  const priceMs = MINUTE_MS / perMinute
  const forgetQuiet = (now: number): void => {
    for (const [key, at] of paidOffAt) if (at <= now) paidOffAt.delete(key)
  }
  return {
    take: (key) => {
      const now = clock.now()
      const known = paidOffAt.get(key)
      if (known === undefined && paidOffAt.size >= MAX_KEYS) forgetQuiet(now)
      // A clock that was set back does not make anyone wait longer than a minute.
      const next = Math.min(Math.max(known ?? now, now), now + MINUTE_MS) + priceMs
      const waitMs = next - now - MINUTE_MS
      if (waitMs > 0) return Math.ceil(waitMs)
      paidOffAt.set(key, next)
      return 0
    },
  }
}

export interface ConnectionCounts {
  /** Counts one more connection of an address; undefined when it has too many. The returned function counts it off, once. */
  enter(address: string): (() => void) | undefined
}

export function createConnectionCounts(most: number): ConnectionCounts {
  const counts = new Map<string, number>()
  return {
    enter: (address) => {
      const count = counts.get(address) ?? 0
      if (count >= most) return undefined
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
