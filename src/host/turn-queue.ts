/** Turns of one agent, one at a time, whoever starts them. */
import { BehaviorSubject, distinctUntilChanged, type Observable } from 'rxjs'
import type { TriggerAgentTurn } from '../async-tasks/delivery/auto-trigger.js'
import { DisposedError, InvalidInputError } from '../errors.js'
import { checkOptions, type OptionTypes } from '../protocol/option-checks.js'

/** Options of `take`. */
export interface TakeTurnOptions {
  /** Gives the turn up: a waiting turn is not taken, and one that runs gets the abort as its own signal. */
  readonly signal?: AbortSignal | undefined
}

const takeOptionTypes: OptionTypes<TakeTurnOptions> = {
  signal: { expected: 'an AbortSignal', accepts: (value) => value instanceof AbortSignal },
}

/** Takes a turn of the agent: sends it a text, and returns its answer. `signal` aborts when the turn is given up, or everything is disposed. */
export type Respond<Answer> = (text: string, signal: AbortSignal) => Answer | PromiseLike<Answer>

/** The turns of one agent. */
export interface AgentTurns<Answer> {
  /**
   * Takes a turn after those that were asked for before. Do not await it inside `respond`: the turn would wait for itself.
   * @returns the agent's answer; rejects with what `respond` throws, with the signal's reason when it aborts before the turn has begun, with
   *   DisposedError, and with InvalidInputError for an unknown or wrong option
   */
  readonly take: (text: string, options?: TakeTurnOptions) => Promise<Answer>
  /** Whether a turn runs or waits, beginning with the present value: the `isAgentBusy` of `createAgentTasks`. It completes on `dispose`, with true. */
  readonly isBusy$: Observable<boolean>
  /** Takes a turn for results: the `triggerAgentTurn` of `createAgentTasks`. */
  readonly triggerAgentTurn: TriggerAgentTurn
  /** Rejects the turns that wait, and aborts the one that runs. Resolves when that has ended. A second call does nothing more. */
  readonly dispose: () => Promise<void>
  /** `dispose`, for `await using`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

interface QueuedTurn<Answer> {
  readonly text: string
  readonly controller: AbortController
  readonly resolve: (answer: Answer) => void
  readonly reject: (reason: unknown) => void
}

/**
 * Makes turns of the user and turns for results follow each other. Without that, two of them overlap although a flag says whether the agent is busy:
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
 * A result starts a turn while the agent is idle, and the user writes before the model has answered: both turns read the same `messages`, and the one that ends
 * last overwrites the messages of the other. The first that ends sets `isBusy` to false, so that a third turn starts beside the second. A turn that throws leaves
 * it true, so that no result is ever delivered. With `createTurns` the user's turn waits:
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
 * @param respond takes one turn. The next one begins when its promise has settled
 * @throws InvalidInputError when `respond` is not a function
 */
export function createTurns<Answer>(respond: Respond<Answer>): AgentTurns<Answer> {
  if (typeof respond !== 'function') throw new InvalidInputError('respond', respond, 'a function')
  /** In the order in which they were asked for. */
  const waiting = new Set<QueuedTurn<Answer>>()
  const busy$ = new BehaviorSubject(false)
  let running: { readonly turn: QueuedTurn<Answer>; readonly isOver: Promise<void> } | undefined
  let isDisposed = false

  const take = async (text: string, options: TakeTurnOptions = {}): Promise<Answer> => {
    checkOptions(options, takeOptionTypes)
    const { signal } = options
    signal?.throwIfAborted()
    if (isDisposed) throw disposed()
    let turn!: QueuedTurn<Answer>
    const answer = new Promise<Answer>((resolve, reject) => {
      turn = { text, controller: new AbortController(), resolve, reject }
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
    // The call that asked for the turn returns first.
    await Promise.resolve()
    const { text, controller, resolve, reject } = turn
    try {
      controller.signal.throwIfAborted()
      resolve(await respond(text, controller.signal))
    } catch (error) {
      reject(error)
    }
    running = undefined
    startNext()
  }

  const dispose = async (): Promise<void> => {
    if (!isDisposed) {
      isDisposed = true
      // An agent that takes no turns is busy: results stay owed.
      busy$.next(true)
      busy$.complete()
      for (const turn of [...waiting, ...(running ? [running.turn] : [])]) giveUp(turn, disposed())
    }
    await running?.isOver
  }

  return {
    take,
    isBusy$: busy$.pipe(distinctUntilChanged()),
    triggerAgentTurn: (text, { signal }) => take(text, { signal }),
    dispose,
    [Symbol.asyncDispose]: dispose,
  }
}

const disposed = (): DisposedError => new DisposedError('The turns of this agent were disposed: it takes no more.')
