/**
 * Detects unhandled rejections. The platform reports them when no microtask is left, which is after the run. The event loop must turn before the next
 * run, or it is unknown which run caused them. Meanwhile other listeners of the process are disabled, because a test runner would fail and Node would
 * end the process.
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
