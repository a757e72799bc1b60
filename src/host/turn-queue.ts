/** Runs the turns of one agent one after the other, for all callers. */
import { BehaviorSubject, distinctUntilChanged, type Observable } from 'rxjs'
import type { TriggerAgentTurn, TurnDelivery } from '../async-tasks/delivery/auto-trigger.js'
import { DisposedError, InvalidInputError } from '../errors.js'
import { checkOptions, type OptionTypes } from '../protocol/option-checks.js'

/** Options of `take`. */
export interface TakeTurnOptions {
  /** Aborting this signal cancels the turn. A waiting turn is skipped. A running turn is aborted through the signal that `respond` received. */
  readonly signal?: AbortSignal | undefined
}

const takeOptionTypes: OptionTypes<TakeTurnOptions> = {
  signal: { expected: 'an AbortSignal', accepts: (value) => value instanceof AbortSignal },
}

/**
 * Runs one turn: sends `text` to the agent and returns its answer. `signal` aborts when the turn is cancelled or `dispose` is called. If the turn
 * delivers results, `delivery` is present. Write its `deliveryId` to your transcript together with the text: after a crash, the next process calls
 * `wasDelivered` with this id.
 */
export type Respond<Answer> = (
  text: string,
  signal: AbortSignal,
  delivery?: TurnDelivery,
) => Answer | PromiseLike<Answer>

/**
 * The turns of one agent, which run one at a time. `createTurns` creates it.
 * @typeParam Answer what the agent answers in a turn
 */
export interface AgentTurns<Answer> {
  /**
   * Takes a turn after all turns that were requested earlier. Do not await `take` inside `respond`: the new turn would wait for the running one, and
   * the running one for the new turn.
   * @returns the agent's answer
   * @throws the error that `respond` throws
   * @throws the reason of `signal` when it aborts before the turn begins
   * @throws DisposedError after `dispose`
   * @throws InvalidInputError for an unknown or invalid option
   */
  readonly take: (text: string, options?: TakeTurnOptions) => Promise<Answer>
  /**
   * Whether a turn is running or waiting; the current value is emitted first. Pass it as `isAgentBusy` to `createAgentTasks`. On `dispose` it emits
   * true and completes.
   */
  readonly isBusy$: Observable<boolean>
  /** Takes a turn that delivers results. Pass it as `triggerAgentTurn` to `createAgentTasks`. */
  readonly triggerAgentTurn: TriggerAgentTurn
  /** Rejects the waiting turns and aborts the running one. Resolves when the running turn has ended. Later turns are rejected. */
  readonly dispose: () => Promise<void>
  /** Calls `dispose`, for `await using`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

interface QueuedTurn<Answer> {
  readonly text: string
  readonly delivery: TurnDelivery | undefined
  readonly controller: AbortController
  readonly resolve: (answer: Answer) => void
  readonly reject: (reason: unknown) => void
}

/**
 * Runs the turns of an agent one after the other: the turns of the user, and the turns that deliver results.
 *
 * Without `createTurns`, turns can overlap, even if a flag says whether the agent is busy:
 *
 * ```ts
 * let isBusy = false
 * async function takeTurn(text) {
 *   isBusy = true
 *   const asked = [...messages, { role: 'user', content: text }]
 *   messages = [...asked, await model(asked)]
 *   isBusy = false
 * }
 * createAgentTasks({ isAgentBusy: () => isBusy, triggerAgentTurn: takeTurn })
 * ```
 *
 * For example, a result starts a turn, and the user writes before the model has answered. Both turns then read the same `messages`, and the turn that
 * ends later overwrites the messages of the other turn. The turn that ends first sets `isBusy` to false, so a third turn can start while the second
 * is still running. If a turn throws, `isBusy` stays true, and no result is delivered any more. With `createTurns`, the turn of the user waits:
 *
 * ```ts
 * const turns = createTurns(async (text, signal) => {
 *   const asked = [...messages, { role: 'user', content: text }]
 *   messages = [...asked, await model(asked, signal)]
 * })
 * createAgentTasks({ isAgentBusy: turns.isBusy$, triggerAgentTurn: turns.triggerAgentTurn })
 * await turns.take('hello')
 * ```
 *
 * @param respond runs one turn. The next turn begins when the promise of `respond` has settled
 * @throws InvalidInputError when `respond` is not a function
 */
export function createTurns<Answer>(respond: Respond<Answer>): AgentTurns<Answer> {
  if (typeof respond !== 'function') throw new InvalidInputError('respond', respond, 'a function')
  /** The waiting turns, in the order in which they were requested. */
  const waiting = new Set<QueuedTurn<Answer>>()
  const busy$ = new BehaviorSubject(false)
  let running: { readonly turn: QueuedTurn<Answer>; readonly isOver: Promise<void> } | undefined
  let isDisposed = false

  const take = (text: string, options: TakeTurnOptions = {}): Promise<Answer> => queue(text, options)

  const queue = async (text: string, options: TakeTurnOptions, delivery?: TurnDelivery): Promise<Answer> => {
    checkOptions(options, takeOptionTypes)
    const { signal } = options
    signal?.throwIfAborted()
    if (isDisposed) throw disposed()
    let turn!: QueuedTurn<Answer>
    const answer = new Promise<Answer>((resolve, reject) => {
      turn = { text, delivery, controller: new AbortController(), resolve, reject }
    })
    const abort = (): void => giveUp(turn, signal?.reason)
    signal?.addEventListener('abort', abort)
    waiting.add(turn)
    busy$.next(true)
    startNext()
    try {
      return await answer
    } finally {
      signal?.removeEventListener('abort', abort)
    }
  }

  const giveUp = (turn: QueuedTurn<Answer>, reason: unknown): void => {
    if (waiting.delete(turn)) turn.reject(reason)
    else turn.controller.abort(reason)
  }

  const startNext = (): void => {
    if (running !== undefined) return
    const [turn] = waiting
    if (turn !== undefined) running = { turn, isOver: run(turn) }
    else if (!isDisposed) busy$.next(false)
  }

  const run = async (turn: QueuedTurn<Answer>): Promise<void> => {
    waiting.delete(turn)
    // The turn starts in a later microtask, so that the call that requested it returns first.
    await Promise.resolve()
    const { text, delivery, controller, resolve, reject } = turn
    try {
      controller.signal.throwIfAborted()
      resolve(await respond(text, controller.signal, delivery))
    } catch (error) {
      reject(error)
    }
    running = undefined
    startNext()
  }

  const dispose = async (): Promise<void> => {
    if (!isDisposed) {
      isDisposed = true
      // A disposed agent counts as busy, so that no delivery of results starts.
      busy$.next(true)
      busy$.complete()
      for (const turn of [...waiting, ...(running ? [running.turn] : [])]) giveUp(turn, disposed())
    }
    await running?.isOver
  }

  return {
    take,
    isBusy$: busy$.pipe(distinctUntilChanged()),
    triggerAgentTurn: (text, delivery) => queue(text, { signal: delivery.signal }, delivery),
    dispose,
    [Symbol.asyncDispose]: dispose,
  }
}

const disposed = (): DisposedError =>
  new DisposedError('The turns of this agent were disposed, so it takes no further turns.')
