/** Calls all open sockets and streams at a fixed interval. They share one timer, which runs only while one of them is open. */
import type { Clock } from '../system/clock.js'

export interface Kept {
  beat(): void
  /** Called when the server closes. */
  end(): void
}

export interface Heartbeat {
  /** @returns a function that removes the socket or stream */
  keep(kept: Kept): () => void
  /** Calls `end` of every open socket and stream. */
  endAll(): void
}

/** @param everyMs the interval, in ms */
export function createHeartbeat(clock: Clock, everyMs: number): Heartbeat {
  const all = new Set<Kept>()
  let timer: unknown
  const schedule = (): void => {
    if (timer !== undefined || all.size === 0) return
    timer = clock.setTimeout(() => {
      timer = undefined
      for (const kept of [...all]) kept.beat()
      schedule()
    }, everyMs)
  }
  return {
    keep: (kept) => {
      all.add(kept)
      schedule()
      return () => {
        all.delete(kept)
        if (all.size > 0 || timer === undefined) return
        clock.clearTimeout(timer)
        timer = undefined
      }
    },
    endAll: () => {
      for (const kept of [...all]) kept.end()
    },
  }
}
