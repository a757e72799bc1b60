/** What stays open: told to beat now and then, and to end when the server does. One timer for all, and none while there is none. */
import type { Clock } from '../clock.js'

export interface Kept {
  beat(): void
  end(): void
}

export interface Heartbeat {
  /** @returns what takes it back */
  keep(kept: Kept): () => void
  /** Ends everything that is kept. */
  endAll(): void
}

/** @param everyMs how often everything beats, in ms */
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
