/** Adds what has been owed for too long to the results of tools: an agent that is never idle hears of it there (F11). */
import { notes } from '../async-tasks/notes.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { AsyncTaskReminderService, LeasedReminder } from '../async-tasks/delivery/reminder-service.js'
import { defined } from '../defined.js'
import { StoreError } from '../store/store-errors.js'
import { refuseContext, type Tool, type ToolContext, type ToolResult } from './tool.js'

/** Whose notifications are added, and when. */
export interface OverdueOptions {
  readonly manager: AsyncTaskManager
  readonly reminders: AsyncTaskReminderService
  readonly owner: string
  /** How long something may be owed before a result carries it, in ms; Infinity for ever. */
  readonly maxDelayMs: number
}

/** The tool; its results also carry what the owner has been owed for too long. */
export function withOverdue<T extends Tool>(tool: T, options: OverdueOptions): T {
  const execute = async (input: never, context: ToolContext = {}): Promise<ToolResult> =>
    refuseContext(tool.name, context) ?? (await addOverdue(await tool.execute(input, context), context, options))
  // Its description and its schema are getters.
  return Object.defineProperties(
    {},
    { ...Object.getOwnPropertyDescriptors(tool), execute: { value: execute, enumerable: true } },
  ) as T
}

async function addOverdue(
  result: ToolResult,
  { signal, detach, hold }: ToolContext,
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
  if (hold === undefined) reminder.acknowledge()
  else hold(reminder)
  const notification = { deliveryId, taskIds, ...defined({ questions }) }
  return { ...result, llmContent: `${result.llmContent}\n\n${text}`, metadata: { ...result.metadata, notification } }
}

function isOverdue({ manager, owner, maxDelayMs }: OverdueOptions): boolean {
  const { ledger, clock } = manager.reads
  if (!ledger.isOwing(owner)) return false
  const [result] = ledger.owed(owner)
  const [question] = ledger.questions.owed(owner)
  const asked = question?.entry.record.questions?.find(({ id }) => id === question.id)
  // A note does not wait, because it has ended a wait of the agent.
  if (manager.reads.use(notes).isOwed(owner)) return true
  if (maxDelayMs === Infinity) return false
  const waits = [result?.record.completedAt, asked?.askedAt].map((since = Infinity) => clock.now() - since)
  // A wait below 0 began before the clock was set back.
  return waits.some((ms) => ms >= maxDelayMs || (ms < 0 && ms !== -Infinity))
}

/** What cannot be stored as sent stays owed: the result is not to be lost for it. The manager has reported the error. */
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
