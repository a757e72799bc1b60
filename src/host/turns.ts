/**
 * Reminders for turns that the host starts itself. `beforeTurn` leases the undelivered results, `afterTurn` ends the lease, and `withTurn` does both.
 * A lease that is not ended in time is released, so that no result is lost if the host forgets it.
 */
import { pushSubscribers } from '../async-tasks/delivery/push-subscribers.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { AsyncTaskReminderService, LeasedReminder } from '../async-tasks/delivery/reminder-service.js'
import { clearLongTimeout, setLongTimeout } from '../clock.js'
import { InvalidInputError } from '../errors.js'
import { checkOptionNames } from '../protocol/option-checks.js'

/** The default time limit of a turn's lease, in ms. */
export const DEFAULT_TURN_TIMEOUT_MS = 30 * 60_000

/** The information about background tasks for a turn of the agent. */
export interface Turn {
  /** The status of every task of the owner, one per line; `''` if there is none. */
  readonly systemInstruction: string
  /** The undelivered results of the owner; absent if there are none. Its lease ends with `afterTurn` or with its own methods. */
  readonly reminder?: LeasedReminder
}

/** The outcome of a turn. */
export interface TurnOutcome {
  /** Whether the model received the reminder. */
  readonly accepted: boolean
}

/** Reports the outcome of a turn. Default owner: that of the host. */
export interface AfterTurn {
  (outcome: TurnOutcome): void
  (owner: string | undefined, outcome: TurnOutcome): void
}

/** Runs a turn of an owner's agent (default: the host's). Its reminder is accepted when `run` resolves and delivered again when `run` rejects. */
export type WithTurn = <Result>(run: (turn: Turn) => Result | PromiseLike<Result>, owner?: string) => Promise<Result>

/** Options of `Turns`. */
export interface TurnsOptions {
  readonly owner: string
  readonly timeoutMs: number
}

/** Keeps each owner's reminder until its turn ends. */
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
    // In one batch, so that no other lease can take the results that the previous turn releases.
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

  /** The lease of this turn is separate: `before` for the same owner does not affect it. */
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

  /** Returns the reminder with a time limit, after which its lease is released. */
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
      const message = `A turn of ${owner} has not ended within ${timeoutMs} ms, so its results will be delivered again. Call afterTurn, or use withTurn.`
      reads.report(new Error(message), { source: 'turn-timeout', owner, deliveryId })
    }
    const timer = setLongTimeout(reads.clock, expire, timeoutMs, {
      name: `time limit of a turn of ${owner}`,
      kind: 'deadline',
    })
    const disposal = reads.notifications$.subscribe({ complete: stop })
    // Reporting an outcome again has no effect.
    const ended = (end: () => void) => (): void => {
      stop()
      if (this.#leases.get(owner)?.deliveryId === deliveryId) this.#leases.delete(owner)
      end()
    }
    return Object.freeze({ ...reminder, acknowledge: ended(acknowledge), release: ended(release) })
  }
}
