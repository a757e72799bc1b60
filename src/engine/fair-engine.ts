/**
 * An engine that yields to the event loop. Short work that follows short work would otherwise hold up requests, among them a
 * cancellation, until the last of it has run.
 */
import { elapsedMs, systemClock, type Clock } from '../clock.js'
import { isNode, nodeBuiltin } from '../node-builtins.js'
import type { Engine } from './engine.js'

/** How long work may run before the event loop has a turn, in ms. */
const TURN_MS = 10

/** Resolves when the event loop has gone round once. */
const nextTurn: () => Promise<unknown> = isNode ? nodeBuiltin('node:timers/promises').setImmediate : nextMessage

/**
 * Wraps an engine for a process that does more than run tasks. `startTaskServer` does so; do it yourself for a `TaskManager` that you
 * create next to a server of your own.
 * @param engine starts the work
 * @param clock measures how long work has followed work
 * @returns an engine that delays work for a turn of the event loop after each 10 ms of work
 */
export function createFairEngine(engine: Engine, clock: Clock = systemClock): Engine {
  let turn: { readonly began: number; readonly over: Promise<void> } | undefined
  const presentTurn = () =>
    (turn ??= {
      began: elapsedMs(clock),
      // Not a timer: timers that are due run one after the other, without a look at the sockets between them.
      over: nextTurn().then(() => {
        turn = undefined
      }),
    })
  return {
    start: (work) =>
      engine.start({
        ...work,
        run: (context) => {
          const { began, over } = presentTurn()
          if (elapsedMs(clock) - began < TURN_MS) return work.run(context)
          return over.then(() => {
            context.signal.throwIfAborted()
            return work.run(context)
          })
        },
      }),
  }
}

/** A browser has no `setImmediate` and throttles the timers of hidden pages; a message arrives at once. */
function nextMessage(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel()
    port1.addEventListener('message', () => {
      port1.close()
      resolve()
    })
    port1.start()
    port2.postMessage(undefined)
  })
}
