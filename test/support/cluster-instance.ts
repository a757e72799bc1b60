/** A worker of a cluster that records its calls: which call, when it starts and when it ends. */
import { onTestFinished } from 'vitest'
import { connectInstance, type ConnectedInstance } from '../../src/client/index.js'

export interface Deed {
  readonly mark: string
  readonly step: 'start' | 'end'
  /** When the call started or ended, in ms since 1970. */
  readonly at: number
}

export interface WatchedInstance {
  readonly instance: ConnectedInstance
  readonly deeds: Deed[]
  /** The marks of the calls that have started, in order. */
  started(): string[]
  /** The maximum number of calls that ran at the same time. */
  readonly mostAtOnce: number
  /** Ends a call of `hold`. */
  finish(mark: string): void
  /** Resolves when a call has started. */
  untilStarted(mark: string): Promise<void>
}

/**
 * Connects a worker with two tools. A call of `do` takes `ms`, and then fails with `error` or returns as many characters as asked. A call of `hold` ends
 * when the test ends it. Both tools have the argument `mark`. The worker leaves a node that does not answer for twice the heartbeat.
 */
export async function connectWatched(url: string, id: string, heartbeatMs = 30_000): Promise<WatchedInstance> {
  const deeds: Deed[] = []
  const held = new Map<string, () => void>()
  let inFlight = 0
  let mostAtOnce = 0
  let changed: (() => void)[] = []
  const note = (mark: string, step: Deed['step']): void => {
    deeds.push({ mark, step, at: Date.now() })
    inFlight += step === 'start' ? 1 : -1
    mostAtOnce = Math.max(mostAtOnce, inFlight)
    const all = changed
    changed = []
    for (const wake of all) wake()
  }
  const instance = await connectInstance(url, {
    id,
    heartbeatMs,
    reconnect: { initialMs: 50, maxMs: 500 },
    tools: [
      {
        name: 'do',
        execute: async (args: unknown) => {
          const { mark, ms = 0, size, error } = args as { mark: string; ms?: number; size?: number; error?: string }
          note(mark, 'start')
          if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms))
          note(mark, 'end')
          if (error !== undefined) throw Object.assign(new Error(error), { code: 'BROKEN' })
          return size === undefined ? mark : 'x'.repeat(size)
        },
      },
      {
        name: 'hold',
        execute: (args: unknown, { signal, progress }) =>
          new Promise((resolve, reject) => {
            const { mark, reports = 0 } = args as { mark: string; reports?: number }
            note(mark, 'start')
            for (let count = 1; count <= reports; count += 1) progress({ progress: count })
            held.set(mark, () => {
              note(mark, 'end')
              resolve(mark)
            })
            signal.addEventListener('abort', () => {
              if (!held.delete(mark)) return
              note(mark, 'end')
              reject(new Error('aborted'))
            })
          }),
      },
    ],
  })
  onTestFinished(() => instance.close())
  return {
    instance,
    deeds,
    started: () => deeds.filter(({ step }) => step === 'start').map(({ mark }) => mark),
    get mostAtOnce() {
      return mostAtOnce
    },
    finish: (mark) => {
      const end = held.get(mark)
      held.delete(mark)
      end?.()
    },
    untilStarted: async (mark) => {
      while (!deeds.some((deed) => deed.mark === mark && deed.step === 'start')) {
        await new Promise<void>((resolve) => changed.push(resolve))
      }
    },
  }
}
