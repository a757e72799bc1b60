/**
 * Adds results to turns that the host starts itself. `beforeTurn` leases the undelivered results, `afterTurn` ends the lease, and `withTurn` does
 * both. If the host does not end a lease in time, it is released, so that the results are delivered again.
 */
import { pushSubscribers } from '../features/delivery/push-subscribers.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { AsyncTaskReminderService, LeasedReminder } from '../features/delivery/reminder-service.js'
import { currentTurn, runInTurn, TurnMarker } from '../isolation/current-turn.js'
import { clearLongTimeout, setLongTimeout } from '../system/clock.js'
import { InvalidInputError } from '../errors.js'
import { checkOptionNames } from '../protocol/option-checks.js'

/** What a turn of the agent should contain about background tasks. */
export interface Turn {
  /** The status of every task of the owner, one task on each line. Empty if there are no tasks. */
  readonly systemInstruction: string
  /**
   * A message with the undelivered results of the owner. Missing if there are none. `afterTurn`, or a method of the reminder, ends the lease of these
   * results.
   */
  readonly reminder?: LeasedReminder
}

/** The outcome of a turn. */
export interface TurnOutcome {
  /** Whether the model received the reminder. With false, its results are delivered again. */
  readonly accepted: boolean
}

/** Reports the outcome of a turn. The default owner is that of the host. */
export interface AfterTurn {
  (outcome: TurnOutcome): void
  (owner: string | undefined, outcome: TurnOutcome): void
}

/**
 * Runs a turn of an owner's agent. The default owner is that of the host. If `run` resolves, the results in the turn count as delivered, also those
 * that its tool calls have returned. If it rejects, they are delivered again.
 */
export type WithTurn = <Result>(run: (turn: Turn) => Result | PromiseLike<Result>, owner?: string) => Promise<Result>

/** Options of `Turns`. */
export interface TurnsOptions {
  readonly owner: string
  readonly timeoutMs: number
}

/** Keeps the leased reminder of each owner until its turn ends. */
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
    // Both steps are one batch. Otherwise another message could lease the results that the previous turn releases.
    return this.#manager.reads.batch(() => {
      this.#leases.get(owner)?.release({ mayHaveArrived: true })
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
    else reminder?.release({ mayHaveArrived: true })
  }

  /** Runs a turn with a lease of its own. A call of `before` for the same owner does not end this lease. */
  async with<Result>(run: (turn: Turn) => Result | PromiseLike<Result>, owner = this.#options.owner): Promise<Result> {
    if (typeof run !== 'function') throw new InvalidInputError('run', run, 'a function')
    const outer = currentTurn()
    // The outer turn ends the lease, and may be suspended for a long time.
    const turn = this.#begin(owner, outer === undefined)
    const { stored } = turn.reminder ?? {}
    const marker = new TurnMarker(outer)
    if (turn.reminder !== undefined) marker.hold(turn.reminder)
    return runInTurn(marker, () => (stored === undefined ? run(turn) : stored.then(() => run(turn))))
  }

  #begin(owner: string, isLimited = true): Turn {
    const { reads } = this.#manager
    reads.use(pushSubscribers).noteTurn(owner)
    const systemInstruction = this.#reminders.generateStatusSummary(owner)
    const reminder = this.#reminders.leaseReminder({ owner })
    if (reminder === undefined) return { systemInstruction }
    return { systemInstruction, reminder: isLimited ? this.#limit(owner, reminder) : reminder }
  }

  /** Adds a time limit to a reminder. When the limit has passed, the lease is released. */
  #limit(owner: string, reminder: LeasedReminder): LeasedReminder {
    const { reads } = this.#manager
    const { timeoutMs } = this.#options
    const { deliveryId, acknowledge, release } = reminder
    const lease = reads.ledger.lease(deliveryId)
    const stop = (): void => {
      clearLongTimeout(reads.clock, timer)
      disposal.unsubscribe()
    }
    const expire = (): void => {
      stop()
      if (reads.ledger.lease(deliveryId) !== lease) return
      release({ mayHaveArrived: true })
      const message = `A turn of ${owner} has not ended within ${timeoutMs} ms, so its results will be delivered again. Call afterTurn, or use withTurn.`
      reads.report(new Error(message), { source: 'turn-timeout', owner, deliveryId })
    }
    const timer = setLongTimeout(reads.clock, expire, timeoutMs, {
      name: `time limit of a turn of ${owner}`,
      kind: 'deadline',
    })
    const disposal = reads.notifications$.subscribe({ complete: stop })
    // Only the first reported outcome has an effect.
    const ended = (): void => {
      stop()
      if (this.#leases.get(owner) === limited) this.#leases.delete(owner)
    }
    const limited: LeasedReminder = Object.freeze({
      ...reminder,
      acknowledge: () => {
        ended()
        acknowledge()
      },
      release: (how) => {
        ended()
        release(how)
      },
    } satisfies LeasedReminder)
    return limited
  }
}
