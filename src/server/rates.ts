/** Limits for each client address: requests per minute, and open connections. */
import { elapsedMs, type Clock } from '../system/clock.js'

const MINUTE_MS = 60_000
/** When there are more addresses than this, those without recent requests are forgotten. */
const MAX_KEYS = 10_000

export interface RateLimiter {
  /** Counts one request. Returns 0 if it is allowed, and otherwise the time until the next request is allowed, in ms. */
  take(key: string): number
}

/** The requests of a key since its bucket was last full. */
interface Bucket {
  /** In ms of `elapsedMs`. */
  readonly since: number
  readonly count: number
}

/** A token bucket: each key may send `perMinute` requests at once, and then the same number per minute, evenly spread. */
export function createRateLimiter(perMinute: number, clock: Clock): RateLimiter {
  const buckets = new Map<string, Bucket>()
  // Multiplied, not summed: sums of a rounded time per request would refuse the last request of a minute.
  const fullAt = ({ since, count }: Bucket): number => since + (count * MINUTE_MS) / perMinute
  const removeIdle = (now: number): void => {
    for (const [key, bucket] of buckets) if (fullAt(bucket) <= now) buckets.delete(key)
  }
  const bucketOf = (key: string, now: number): Bucket => {
    const known = buckets.get(key)
    if (known === undefined || fullAt(known) <= now) return { since: now, count: 0 }
    // A clock without `monotonic` was set back.
    if (now < known.since) return { since: now, count: Math.min(known.count, perMinute) }
    return known
  }
  return {
    take: (key) => {
      const now = elapsedMs(clock)
      if (!buckets.has(key) && buckets.size >= MAX_KEYS) removeIdle(now)
      const { since, count } = bucketOf(key, now)
      const next = { since, count: count + 1 }
      const waitMs = fullAt(next) - now - MINUTE_MS
      if (waitMs > 0) return Math.ceil(waitMs)
      buckets.set(key, next)
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
