/**
 * An engine that lets the event loop turn between short runs. Otherwise requests, such as a cancellation, would have to wait until all of these runs
 * have ended.
 */
import { elapsedMs, systemClock, type Clock } from '../system/clock.js'
import { isNode, nodeBuiltin } from '../system/node-builtins.js'
import type { Engine } from './engine.js'

/** How long runs may start one after another until the event loop gets a turn, in ms. */
const TURN_MS = 10

/** Resolves after one turn of the event loop. */
const nextTurn: () => Promise<unknown> = isNode ? nodeBuiltin('node:timers/promises').setImmediate : nextMessage

/**
 * Wraps an engine for a process that does more than run tasks. `startTaskServer` already uses it. Use it yourself if you run a `TaskManager` beside a
 * server of your own.
 * @param engine starts the work
 * @param clock measures how long work has run without a pause
 * @returns an engine that lets the event loop turn after each 10 ms of work
 */
export function createFairEngine(engine: Engine, clock: Clock = systemClock): Engine {
  let turn: { readonly began: number; readonly over: Promise<void> } | undefined
  const presentTurn = () =>
    (turn ??= {
      began: elapsedMs(clock),
      // A timer is no substitute for `setImmediate`: Node runs all due timers one after another, without polling sockets between them.
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

/** Browsers have no `setImmediate`, and delay the timers of hidden pages. They deliver messages at once. */
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
