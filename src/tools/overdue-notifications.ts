/** Adds overdue results to the results of other tools, because a busy agent starts no turn in which it would receive them (promise F11). */
import type { HoldLease } from '../features/delivery/leases.js'
import { notes } from '../features/notes/notes.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { AsyncTaskReminderService, LeasedReminder } from '../features/delivery/reminder-service.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { StoreError } from '../store/store-errors.js'
import { receiverOf } from './call-leases.js'
import { refuseContext, withDeliveries, type Tool, type ToolContext, type ToolResult } from './tool.js'

/** Which results are added, and when. */
export interface OverdueOptions {
  readonly manager: AsyncTaskManager
  readonly reminders: AsyncTaskReminderService
  readonly owner: string
  /** How long a result may wait for its delivery before the result of a tool carries it, in ms. Infinity turns this off, except for notes. */
  readonly maxDelayMs: number
}

/** Returns the tool with this addition: its results also carry the overdue results of the owner. */
export function withOverdue<T extends Tool>(tool: T, options: OverdueOptions): T {
  const execute = async (input: never, context: ToolContext = {}): Promise<ToolResult> => {
    const refusal = refuseContext(tool.name, context)
    if (refusal !== undefined) return refusal
    // The call belongs to the turn in which it was made.
    const hold = receiverOf(context.hold)
    return addOverdue(await tool.execute(input, context), { ...context, hold }, options)
  }
  // The description and the schema are getters. A spread would evaluate them now.
  return Object.defineProperties(
    {},
    { ...Object.getOwnPropertyDescriptors(tool), execute: { value: execute, enumerable: true } },
  ) as T
}

async function addOverdue(
  result: ToolResult,
  { signal, detach, hold }: ToolContext & { readonly hold: HoldLease },
  options: OverdueOptions,
): Promise<ToolResult> {
  const isReceived = (): boolean => signal?.aborted !== true && detach?.aborted !== true
  if (!isReceived() || !isOverdue(options)) return result
  const reminder = await leaseOwed(options.reminders, options.owner)
  if (reminder === undefined) return result
  if (!isReceived()) {
    reminder.release()
    return result
  }
  const { text, deliveryId, taskIds, questions } = reminder
  hold(reminder)
  const notification = { deliveryId, taskIds, ...omitUndefined({ questions }) }
  const llmContent = `${result.llmContent}\n\n${text}`
  return withDeliveries({ ...result, llmContent, metadata: { ...result.metadata, notification } }, [deliveryId])
}

function isOverdue({ manager, owner, maxDelayMs }: OverdueOptions): boolean {
  const { ledger, clock } = manager.reads
  if (!ledger.isOwing(owner)) return false
  const [result] = ledger.owed(owner)
  const [question] = ledger.questions.owed(owner)
  const asked = question?.entry.record.questions?.find(({ id }) => id === question.id)
  // A note (a message of a schedule or monitor) is added at once, because the agent asked to be woken.
  if (manager.reads.use(notes).isOwed(owner)) return true
  if (maxDelayMs === Infinity) return false
  const waits = [result?.record.completedAt, asked?.askedAt].map((since = Infinity) => clock.now() - since)
  // A wait is negative if the clock was set back since. Such a result counts as overdue.
  return waits.some((ms) => ms >= maxDelayMs || (ms < 0 && ms !== -Infinity))
}

/**
 * Leases the undelivered results of an owner. If the lease cannot be stored, returns undefined, and the results stay owed. The manager has reported the
 * error.
 */
export async function leaseOwed(
  reminders: AsyncTaskReminderService,
  owner: string,
): Promise<LeasedReminder | undefined> {
  const reminder = reminders.leaseReminder({ owner })
  try {
    await reminder?.stored
    return reminder
  } catch (error) {
    if (error instanceof StoreError) return undefined
    throw error
  }
}
