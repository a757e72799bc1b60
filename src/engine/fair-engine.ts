/**
 * An engine that lets the event loop turn: work that ends at once would otherwise follow each other without a pause, and requests, a
 * cancellation among them, would wait until the last has run.
 */
import { systemClock, type Clock } from '../clock.js'
import { isNode, nodeBuiltin } from '../node-builtins.js'
import type { Engine } from './engine.js'

/** How long work may follow each other before others have a turn, in ms. */
const TURN_MS = 10

/** Resolves when the event loop has looked at everything else once. */
const nextTurn: () => Promise<unknown> = isNode ? nodeBuiltin('node:timers/promises').setImmediate : nextMessage

/**
 * For a process that does more than run tasks: `startTaskServer` wraps its engine in one of these, and whoever makes a `TaskManager` of
 * their own may do the same.
 * @param engine starts the work; this one only puts it off now and then
 * @param clock tells how long work has followed work
 */
export function createFairEngine(engine: Engine, clock: Clock = systemClock): Engine {
  let turn: { readonly began: number; readonly over: Promise<void> } | undefined
  const presentTurn = () =>
    (turn ??= {
      began: clock.now(),
      // Not a timer: timers that have become due run one after the other, without a look at the sockets between them.
      over: nextTurn().then(() => {
        turn = undefined
      }),
    })
  return {
    start: (work) =>
      engine.start({
        ...work,
        run: async (signal) => {
          const { began, over } = presentTurn()
          if (clock.now() - began >= TURN_MS) {
            await over
            signal.throwIfAborted()
          }
          return work.run(signal)
        },
      }),
  }
}

/** A browser has no `setImmediate`, and delays the timers of a page that nobody looks at; a message comes at once. */
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
