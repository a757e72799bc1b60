/**
 * Detects unhandled rejections. Node reports them when no microtask is left, which is after the run. So the event loop must get a turn before the next
 * run. Otherwise it would be unknown which run caused a rejection. Meanwhile, other listeners for unhandled rejections are removed, because the listener
 * of a test runner would fail the test.
 */
import { setImmediate as nextEventLoopTurn } from 'node:timers/promises'

export interface RejectionWatch {
  /**
   * Gives the event loop a turn.
   * @returns the reason of the first unhandled rejection since the last call
   */
  first(): Promise<{ readonly reason: unknown } | undefined>
  stop(): void
}

type Listener = NodeJS.UnhandledRejectionListener

const watches = new Set<(reason: unknown) => void>()
let others: Listener[] = []

const onRejection: Listener = (reason) => {
  for (const notify of watches) notify(reason)
}

/** Watches from now on, until `stop` is called. */
export function watchRejections(): RejectionWatch {
  let found: { readonly reason: unknown } | undefined
  const notify = (reason: unknown): void => {
    found ??= { reason }
  }
  if (watches.size === 0) {
    others = process.listeners('unhandledRejection')
    for (const listener of others) process.off('unhandledRejection', listener)
    process.on('unhandledRejection', onRejection)
  }
  watches.add(notify)
  return {
    first: async () => {
      await nextEventLoopTurn()
      const first = found
      found = undefined
      return first
    },
    stop: () => {
      watches.delete(notify)
      if (watches.size > 0) return
      process.off('unhandledRejection', onRejection)
      for (const listener of others.splice(0)) process.on('unhandledRejection', listener)
    },
  }
}
