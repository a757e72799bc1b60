/** Runs the turns of one agent one after the other, for all callers. */
import { BehaviorSubject, distinctUntilChanged, type Observable } from 'rxjs'
import { callContext, type CallContext } from '../isolation/call-context.js'
import { runInTurn, TurnMarker } from '../isolation/current-turn.js'
import { controlOf, type TriggerAgentTurn, type TurnDelivery } from '../features/delivery/auto-trigger.js'
import { forSubscribers } from '../isolation/own-context.js'
import { DisposedError, InvalidInputError } from '../errors.js'
import { anAbortSignal, checkOptions, type OptionTypes } from '../protocol/option-checks.js'

/** Options of `take`. */
export interface TakeTurnOptions {
  /** Aborting this signal cancels the turn. A waiting turn is skipped. A running turn is aborted through the signal that `respond` received. */
  readonly signal?: AbortSignal | undefined
}

const takeOptionTypes: OptionTypes<TakeTurnOptions> = { signal: anAbortSignal }

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
   * @throws DISPOSED after `dispose`
   * @throws INVALID_INPUT for an unknown or invalid option
   */
  readonly take: (text: string, options?: TakeTurnOptions) => Promise<Answer>
  /**
   * Whether a turn is running or waiting; the current value is emitted first. Pass it as `isAgentBusy` to `createAgentTasks`. On `dispose` it emits
   * true and completes.
   */
  readonly isBusy$: Observable<boolean>
  /** Takes a turn that delivers results. Pass it as `triggerAgentTurn` to `createAgentTasks`. */
  readonly triggerAgentTurn: TriggerAgentTurn
  /**
   * The ids of the deliveries in the turn that runs or is suspended: that of its message, and those of the results that tool calls have returned in it
   * so far. With a store, write them to your transcript together with the messages of the turn: after a crash, the next process calls `wasDelivered`
   * with each.
   */
  readonly deliveryIds: readonly string[]
  /**
   * Suspends the running turn, for example because a person has to approve a tool call. Call it in `respond` before that resolves. Then the turn is not
   * over: the agent is busy, no other turn begins, the time limit of a delivery stops, and the results in the turn stay leased, until `resume` or
   * `abandon`. The promise of `take` resolves with the answer of `respond`. If `respond` rejects, the turn has failed.
   * @throws INVALID_INPUT when no turn runs
   */
  readonly suspend: () => void
  /**
   * Continues the suspended turn with `run`, as if it were the rest of `respond`. It may call `suspend` again.
   * @param run takes the signal of the turn
   * @returns the answer of `run`
   * @throws the error that `run` throws; the turn has failed then
   * @throws INVALID_INPUT when no turn is suspended
   */
  readonly resume: (run: (signal: AbortSignal) => Answer | PromiseLike<Answer>) => Promise<Answer>
  /**
   * Ends the suspended turn as one that has failed: the results in it are delivered again, as possible repeats.
   * @param reason the error of a turn that delivers results. Default: an `AbortError`
   * @returns false when no turn is suspended
   */
  readonly abandon: (reason?: unknown) => boolean
  /** Rejects the waiting turns and aborts the running one. Resolves when the running turn has ended. Later turns are rejected. */
  readonly dispose: () => Promise<void>
  /** Calls `dispose`, for `await using`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

interface QueuedTurn<Answer, Message> {
  readonly message: Message
  readonly delivery: TurnDelivery | undefined
  readonly marker: TurnMarker
  readonly controller: AbortController
  /** The context of the call that requested the turn. */
  readonly context: CallContext
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
 * @throws INVALID_INPUT when `respond` is not a function
 */
export function createTurns<Answer>(respond: Respond<Answer>): AgentTurns<Answer> {
  if (typeof respond !== 'function') throw new InvalidInputError('respond', respond, 'a function')
  return turnQueue((text: string, signal, delivery) => respond(text, signal, delivery))
}

type TurnQueue<Answer, Message> = Omit<AgentTurns<Answer>, 'take'> & {
  readonly take: (message: Message, options?: TakeTurnOptions) => Promise<Answer>
}

/**
 * Creates the turns of an agent whose messages are texts or something else. A message with results is a text.
 * @param areKept whether the messages of a turn are stored only when it is accepted
 * @param reasonOfEnd creates the error of turns that `dispose` ends
 */
export function turnQueue<Answer, Message>(
  respond: (
    message: Message | string,
    signal: AbortSignal,
    delivery: TurnDelivery | undefined,
    marker: TurnMarker,
  ) => Answer | PromiseLike<Answer>,
  areKept = false,
  reasonOfEnd: () => Error = disposed,
): TurnQueue<Answer, Message | string> {
  type Turn = QueuedTurn<Answer, Message | string>
  /** The waiting turns, in the order in which they were requested. */
  const waiting = new Set<Turn>()
  const busy$ = new BehaviorSubject(false)
  let running: { readonly turn: Turn; readonly isOver: Promise<void> } | undefined
  /** The turn that waits for `resume` or `abandon`. No other turn runs meanwhile. */
  let suspended: Turn | undefined
  let isDisposed = false

  const take: TurnQueue<Answer, Message | string>['take'] = (message, options = {}) => queue(message, options)

  const queue = async (
    message: Message | string,
    options: TakeTurnOptions,
    delivery?: TurnDelivery,
  ): Promise<Answer> => {
    checkOptions(options, takeOptionTypes)
    const { signal } = options
    signal?.throwIfAborted()
    if (isDisposed) throw reasonOfEnd()
    let turn!: Turn
    const answer = new Promise<Answer>((resolve, reject) => {
      const controller = new AbortController()
      turn = {
        message,
        delivery,
        marker: new TurnMarker(undefined, areKept),
        controller,
        context: callContext(),
        resolve,
        reject,
      }
    })
    // The message and the results that tool calls return are accepted in one tick.
    const control = controlOf(delivery)
    if (control !== undefined) turn.marker.hold(control.lease)
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

  const giveUp = (turn: Turn, reason: unknown): void => {
    if (waiting.delete(turn)) turn.reject(reason)
    else {
      turn.context.runInAsyncScope(() => turn.controller.abort(reason))
      if (turn === suspended) abandon(reason)
    }
  }

  const startNext = (): void => {
    if (running !== undefined || suspended !== undefined) return
    const [turn] = waiting
    if (turn === undefined) {
      if (!isDisposed) busy$.next(false)
      return
    }
    waiting.delete(turn)
    const { message, delivery, controller, marker } = turn
    void start(turn, () => {
      controller.signal.throwIfAborted()
      return respond(message, controller.signal, delivery, marker)
    })
  }

  /** Starts a part of a turn in a later microtask, so that the call that requested it returns first. */
  const start = (turn: Turn, part: () => Answer | PromiseLike<Answer>): Promise<Answer> => {
    const answer = Promise.resolve().then(() => perform(turn, part))
    const isOver = answer.then(
      () => undefined,
      () => undefined,
    )
    running = { turn, isOver }
    return answer
  }

  /** Runs one part of a turn, and settles the turn unless it was suspended. */
  const perform = async (turn: Turn, part: () => Answer | PromiseLike<Answer>): Promise<Answer> => {
    const { delivery, marker, context } = turn
    try {
      const answer = await context.runInAsyncScope(() => runInTurn(marker, part))
      if (marker.isSuspended) suspended = turn
      // The promise of a delivery stays pending, because a resolved one would mean that the message was accepted.
      if (!marker.isSuspended || delivery === undefined) turn.resolve(answer)
      return answer
    } catch (error) {
      turn.reject(error)
      throw error
    } finally {
      running = undefined
      startNext()
    }
  }

  const suspend = (): void => {
    if (running === undefined) throw new InvalidInputError('suspend', undefined, 'a turn that runs')
    running.turn.marker.setSuspended(true)
    controlOf(running.turn.delivery)?.setSuspended(true)
  }

  const resume = async (run: (signal: AbortSignal) => Answer | PromiseLike<Answer>): Promise<Answer> => {
    if (typeof run !== 'function') throw new InvalidInputError('run', run, 'a function')
    const turn = suspended
    if (turn === undefined) throw new InvalidInputError('resume', undefined, 'a turn that is suspended')
    suspended = undefined
    controlOf(turn.delivery)?.setSuspended(false)
    return start(turn, () => run(turn.controller.signal))
  }

  const abandon = (reason: unknown = new DOMException('The suspended turn was abandoned.', 'AbortError')): boolean => {
    const turn = suspended
    if (turn === undefined) return false
    suspended = undefined
    turn.marker.end('failed')
    turn.reject(reason)
    startNext()
    return true
  }

  const dispose = async (): Promise<void> => {
    if (!isDisposed) {
      isDisposed = true
      // A disposed agent counts as busy, so that no delivery of results starts.
      busy$.next(true)
      busy$.complete()
      const open = [...waiting, ...(running ? [running.turn] : []), ...(suspended ? [suspended] : [])]
      for (const turn of open) giveUp(turn, reasonOfEnd())
    }
    await running?.isOver
  }

  return {
    take,
    isBusy$: forSubscribers(busy$.pipe(distinctUntilChanged())),
    triggerAgentTurn: (text, delivery) => queue(text, { signal: delivery.signal }, delivery),
    get deliveryIds() {
      return (running?.turn ?? suspended)?.marker.deliveryIds ?? []
    },
    suspend,
    resume,
    abandon,
    dispose,
    [Symbol.asyncDispose]: dispose,
  }
}

const disposed = (): DisposedError =>
  new DisposedError('The turns of this agent were disposed, so it takes no further turns.')
