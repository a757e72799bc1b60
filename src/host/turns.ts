/**
 * Reminders for turns that the host starts itself: `beforeTurn` leases what is owed, `afterTurn` ends the lease, `withTurn` does both. A
 * lease that is not ended in time is released, so that a host that forgets one loses nothing.
 */
import { pushSubscribers } from '../async-tasks/delivery/push-subscribers.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { AsyncTaskReminderService, LeasedReminder } from '../async-tasks/delivery/reminder-service.js'
import { clearLongTimeout, setLongTimeout } from '../clock.js'
import { InvalidInputError } from '../errors.js'
import { checkOptionNames } from '../protocol/option-checks.js'

/** The default time limit of a turn's lease, in ms. */
export const DEFAULT_TURN_TIMEOUT_MS = 30 * 60_000

/** What a turn of the agent should contain about background tasks. */
export interface Turn {
  /** The status of every task of the owner, one per line; `''` when there is none. */
  readonly systemInstruction: string
  /** The results that the owner is owed; absent when there are none. `afterTurn` ends its lease, and so do its own methods. */
  readonly reminder?: LeasedReminder
}

/** The outcome of a turn. */
export interface TurnOutcome {
  /** Whether the model received the reminder. */
  readonly accepted: boolean
}

/** Reports the outcome of a turn, of the host's owner unless another is given. */
export interface AfterTurn {
  (outcome: TurnOutcome): void
  (owner: string | undefined, outcome: TurnOutcome): void
}

/** Runs a turn of an owner's agent (default: the host's). Its reminder is accepted when `run` resolves, and owed again when it rejects. */
export type WithTurn = <Result>(run: (turn: Turn) => Result | PromiseLike<Result>, owner?: string) => Promise<Result>

/** Options of `Turns`. */
export interface TurnsOptions {
  readonly owner: string
  readonly timeoutMs: number
}

/** Keeps each owner's reminder until its turn has ended. */
export class Turns {
  readonly #manager: AsyncTaskManager
  readonly #reminders: AsyncTaskReminderService
  readonly #options: TurnsOptions
  readonly #leases = new Map<string, LeasedReminder>()

  constructor(manager: AsyncTaskManager, reminders: AsyncTaskReminderService, options: TurnsOptions) {
    this.#manager = manager
    this.#reminders = reminders
    this.#options = options
  }

  before(owner = this.#options.owner): Turn {
    // One batch: no other lease can take what the previous turn's lease releases.
    return this.#manager.reads.batch(() => {
      this.#leases.get(owner)?.release()
      const turn = this.#begin(owner)
      if (turn.reminder !== undefined) this.#leases.set(owner, turn.reminder)
      return turn
    })
  }

  after(ownerOrOutcome: string | TurnOutcome | undefined, given?: TurnOutcome): void {
    const owner = typeof ownerOrOutcome === 'string' ? ownerOrOutcome : this.#options.owner
    const outcome = typeof ownerOrOutcome === 'object' ? ownerOrOutcome : given
    if (typeof outcome?.accepted !== 'boolean') {
      throw new InvalidInputError('outcome.accepted', outcome?.accepted, 'true or false')
    }
    checkOptionNames(outcome, ['accepted'], ['outcome'])
    const reminder = this.#leases.get(owner)
    if (outcome.accepted) reminder?.acknowledge()
    else reminder?.release()
  }

  /** The lease of this turn is its own: a `before` of the same owner leaves it alone. */
  async with<Result>(run: (turn: Turn) => Result | PromiseLike<Result>, owner = this.#options.owner): Promise<Result> {
    if (typeof run !== 'function') throw new InvalidInputError('run', run, 'a function')
    const turn = this.#begin(owner)
    try {
      if (turn.reminder?.stored !== undefined) await turn.reminder.stored
      const result = await run(turn)
      turn.reminder?.acknowledge()
      return result
    } catch (error) {
      turn.reminder?.release()
      throw error
    }
  }

  #begin(owner: string): Turn {
    const { reads } = this.#manager
    reads.use(pushSubscribers).noteTurn(owner)
    const systemInstruction = this.#reminders.generateStatusSummary(owner)
    const reminder = this.#reminders.leaseReminder({ owner })
    return { systemInstruction, ...(reminder && { reminder: this.#limit(owner, reminder) }) }
  }

  /** The same reminder, whose lease is released when its turn takes too long. */
  #limit(owner: string, reminder: LeasedReminder): LeasedReminder {
    const { reads } = this.#manager
    const { timeoutMs } = this.#options
    const { deliveryId, acknowledge, release } = reminder
    const stop = (): void => {
      clearLongTimeout(reads.clock, timer)
      disposal.unsubscribe()
    }
    const expire = (): void => {
      stop()
      if (reads.ledger.lease(deliveryId) === undefined) return
      release()
      const message = `A turn of ${owner} has not ended within ${timeoutMs} ms: its results are owed again. Call afterTurn, or use withTurn.`
      reads.report(new Error(message), { source: 'turn-timeout', owner, deliveryId })
    }
    const timer = setLongTimeout(reads.clock, expire, timeoutMs, {
      name: `time limit of a turn of ${owner}`,
      kind: 'deadline',
    })
    const disposal = reads.notifications$.subscribe({ complete: stop })
    // An outcome that is reported again changes nothing.
    const ended = (end: () => void) => (): void => {
      stop()
      if (this.#leases.get(owner)?.deliveryId === deliveryId) this.#leases.delete(owner)
      end()
    }
    return Object.freeze({ ...reminder, acknowledge: ended(acknowledge), release: ended(release) })
  }
}
