/**
 * What is written to one socket in one turn of the event loop goes to the system together: a task's acceptance, the start of its command
 * and often its end too. To hand each frame over by itself took a quarter of the server's time.
 */
import { setImmediate } from 'node:timers'

/** The part of a socket that is needed here (`net.Socket`). */
export interface Corkable {
  cork(): void
  uncork(): void
  readonly writableLength: number
}

export interface WriteTurns {
  /**
   * Call before looking at what waits, and before writing: what is written from now to the end of the turn is held back, and what was held
   * back goes out if it is much.
   */
  hold(stream: Corkable): void
}

/** More than this is not held back, in bytes: the system takes it while the next is made. */
const MAX_HELD_BYTES = 64 * 1024

export function createWriteTurns(): WriteTurns {
  let held = new Set<Corkable>()
  const flush = (): void => {
    const streams = held
    held = new Set()
    for (const stream of streams) stream.uncork()
  }
  return {
    hold: (stream) => {
      if (held.has(stream)) {
        if (stream.writableLength <= MAX_HELD_BYTES) return
        stream.uncork()
      } else {
        if (held.size === 0) setImmediate(flush)
        held.add(stream)
      }
      stream.cork()
    },
  }
}
