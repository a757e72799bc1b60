/**
 * The async context of a caller: the values of every `AsyncLocalStorage` of the host and its libraries. Node passes it on to promises and timers, but
 * not to a queue, a batch or a stream, where the call of one user would run code of another. Such code of the host therefore runs in the context in
 * which it was requested or added (promise H5).
 */
import { isNode, nodeBuiltin } from '../system/node-builtins.js'
import { outsideOfTurns } from './current-turn.js'

/** A captured context. In Node it is an `AsyncResource`. */
export interface CallContext {
  runInAsyncScope<T>(work: () => T): T
}

/** Outside of Node there is no context. */
const noContext: CallContext = { runInAsyncScope: (work) => work() }

/** Returns the context of the calling code. It belongs to no turn, because a turn ends before what it has started (`current-turn.ts`). */
export const callContext: () => CallContext = isNode ? nodeContext : () => noContext

function nodeContext(): CallContext {
  const { AsyncResource: Context } = nodeBuiltin('node:async_hooks')
  return outsideOfTurns(() => new Context('AgentTasks'))
}
