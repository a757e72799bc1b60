/** Reminders for turns that the host starts itself: `beforeTurn` leases what is owed, `afterTurn` ends the lease. */
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { AsyncTaskReminderService, LeasedReminder } from '../async-tasks/reminder-service.js'
import { InvalidInputError } from '../errors.js'

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

/** Keeps each owner's reminder until its turn has ended. */
export class Turns {
  readonly #manager: AsyncTaskManager
  readonly #reminders: AsyncTaskReminderService
  readonly #defaultOwner: string
  readonly #leases = new Map<string, LeasedReminder>()

  constructor(manager: AsyncTaskManager, reminders: AsyncTaskReminderService, defaultOwner: string) {
    this.#manager = manager
    this.#reminders = reminders
    this.#defaultOwner = defaultOwner
  }

  before(owner = this.#defaultOwner): Turn {
    const { registry } = this.#manager
    if (!registry.pushSubscribers.has(owner)) registry.pushSubscribers.add(owner)
    // One batch: no other lease can take what the previous turn's lease releases.
    return registry.batch(() => {
      this.#leases.get(owner)?.release()
      const reminder = this.#reminders.leaseReminder({ owner })
      if (reminder === undefined) this.#leases.delete(owner)
      else this.#leases.set(owner, reminder)
      return { systemInstruction: this.#reminders.generateStatusSummary(owner), ...(reminder && { reminder }) }
    })
  }

  after(ownerOrOutcome: string | TurnOutcome | undefined, given?: TurnOutcome): void {
    const owner = typeof ownerOrOutcome === 'string' ? ownerOrOutcome : this.#defaultOwner
    const outcome = typeof ownerOrOutcome === 'object' ? ownerOrOutcome : given
    if (typeof outcome?.accepted !== 'boolean') {
      throw new InvalidInputError('outcome.accepted', outcome?.accepted, 'true or false')
    }
    const reminder = this.#leases.get(owner)
    this.#leases.delete(owner)
    if (outcome.accepted) reminder?.acknowledge()
    else reminder?.release()
  }
}
