/** Next-turn reminders: what a host adds to a turn that it starts itself, and what became of it. */
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { AsyncTaskReminderService, LeasedReminder } from '../async-tasks/reminder-service.js'
import { InvalidInputError } from '../errors.js'

/** What a turn must know about background tasks. */
export interface Turn {
  /** The status of every task of the owner; `''` when there is none. */
  readonly systemInstruction: string
  /** What the owner is owed; absent when nothing is. Its lease ends with `afterTurn`, or by its own methods. */
  readonly reminder?: LeasedReminder
}

/** How a turn went. */
export interface TurnOutcome {
  /** Whether the model got the reminder. */
  readonly accepted: boolean
}

/** Tells how a turn went; without an owner it is the host's own. */
export interface AfterTurn {
  (outcome: TurnOutcome): void
  (owner: string | undefined, outcome: TurnOutcome): void
}

/** Keeps each owner's reminder until its turn is over. */
export function createTurns(manager: AsyncTaskManager, reminders: AsyncTaskReminderService, defaultOwner: string) {
  const { registry } = manager
  const leases = new Map<string, LeasedReminder>()
  return {
    before(owner = defaultOwner): Turn {
      if (!registry.isPushed(owner)) registry.addPushSubscriber(owner)
      // One batch: no other lease can take what a forgotten one releases.
      return registry.batch(() => {
        leases.get(owner)?.release()
        const reminder = reminders.leaseReminder({ owner })
        if (reminder === undefined) leases.delete(owner)
        else leases.set(owner, reminder)
        return { systemInstruction: reminders.generateStatusSummary(owner), ...(reminder && { reminder }) }
      })
    },
    after(ownerOrOutcome: string | TurnOutcome | undefined, given?: TurnOutcome): void {
      const owner = typeof ownerOrOutcome === 'string' ? ownerOrOutcome : defaultOwner
      const outcome = typeof ownerOrOutcome === 'object' ? ownerOrOutcome : given
      if (typeof outcome?.accepted !== 'boolean') {
        throw new InvalidInputError('outcome.accepted', outcome?.accepted, 'true or false')
      }
      const reminder = leases.get(owner)
      leases.delete(owner)
      if (outcome.accepted) reminder?.acknowledge()
      else reminder?.release()
    },
  }
}
