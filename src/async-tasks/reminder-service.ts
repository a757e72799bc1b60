/** The texts that the model reads about its background tasks: status summary and reminders. */
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import { boundLines, checkMaxMessageChars, maxWholeChars, messageLength } from './bounded-text.js'
import { checkOptions } from '../protocol/option-checks.js'
import { DEFAULT_OWNER, registryOf, type AsyncTaskManager } from './manager.js'
import type { TaskRegistry } from './registry.js'
import { fittingNotifications, formatCompletionNotification, type FittingNotification } from './notifications.js'
import { toTree } from './families.js'
import { shortTaskIds, visibleTasks } from './task-lookup.js'

/** Options of `AsyncTaskReminderService`. */
export interface ReminderServiceOptions {
  /**
   * The maximum length of the text about one task, in characters. Default 20000. The rest can be read with a cursor. A whole message has
   * at most 20000 characters too (more if one task may have more): what does not fit goes into the next one.
   */
  readonly maxMessageChars?: number
}

/** A reminder and its lease: no other message carries its tasks until the lease ends. */
export interface LeasedReminder {
  /** The lease's id. */
  readonly deliveryId: string
  /** The text for the model. */
  readonly text: string
  /** The ids of its tasks, in the order in which they ended. */
  readonly taskIds: readonly string[]
  /** At least one of its results may have been delivered before; its text says which. */
  readonly isRepeat?: boolean
  /** The model's turn accepted the text. May also be called after `release`, when the text was accepted late. */
  readonly acknowledge: () => void
  /** The turn did not accept the text: its tasks are owed again. */
  readonly release: () => void
}

/** The status in summaries and lists. */
export const STATUS_ICONS = {
  queued: '[QUEUED]',
  running: '[RUNNING]',
  completed: '[DONE]',
  failed: '[FAILED]',
  cancelled: '[CANCELLED]',
} as const satisfies Record<AsyncTaskInfo['status'], string>

/** The room for what a message has besides notifications, in characters. */
const FRAME_CHARS = 300

/** Creates the texts about an owner's tasks, and leases the results that they carry. */
export class AsyncTaskReminderService {
  readonly #manager: AsyncTaskManager
  readonly #registry: TaskRegistry
  readonly #maxChars: number
  /** The owed tasks that `generateReminder` had no room for. */
  #leftOut: ReadonlySet<string> = new Set()

  /** @throws InvalidSettingError when `maxMessageChars` is not an integer >= 200; InvalidInputError for an unknown option */
  constructor(manager: AsyncTaskManager, options: ReminderServiceOptions = {}) {
    checkOptions(options, { maxMessageChars: messageLength })
    this.#manager = manager
    this.#registry = registryOf(manager)
    this.#maxChars = checkMaxMessageChars(options.maxMessageChars)
  }

  /** Every task with its status, for the system instruction; `''` when there is none. Without an owner: every owner's tasks. */
  generateStatusSummary(owner?: string): string {
    const tasks = visibleTasks(this.#manager, owner)
    if (tasks.length === 0) return ''
    const shortOf = shortTaskIds(this.#manager)
    const lines = toTree(tasks).map(({ task, level }, index) => {
      return `${'  '.repeat(level)}[${index + 1}] ${task.subagentName} - ${STATUS_ICONS[task.status]} (${shortOf(task)}...)`
    })
    const shown = boundLines(lines, maxWholeChars(this.#maxChars) - FRAME_CHARS, () => ': see check_async_tasks')
    return `[ASYNC TASKS: ${tasks.length} total]\n${shown}`
  }

  /**
   * The results that are owed, as many as fit, the oldest first, and the number of running tasks; `''` when there are neither. Takes no
   * lease.
   */
  generateReminder(owner?: string): string {
    const pending = this.#manager.getPendingNotifications(owner)
    const notifications = this.#fitting(pending)
    const shown = new Set(notifications.map(({ task }) => task.id))
    const isOfOwner = (task: SettledTaskInfo): boolean => owner === undefined || task.owner === owner
    const leftOut = this.#manager
      .getPendingNotifications()
      .filter((task) => !shown.has(task.id) && (isOfOwner(task) || this.#leftOut.has(task.id)))
    this.#leftOut = new Set(leftOut.map((task) => task.id))
    return this.#message(notifications, pending.length, owner)
  }

  /**
   * Leases what is owed to an owner, the oldest results first and as many as fit into a message, and returns the lease with the text that
   * carries them.
   * @param request `owner` (default `main`); `exclusive`: refuse while another exclusive lease of the owner is open
   * @returns undefined when nothing is owed
   */
  leaseReminder(request: { readonly owner?: string; readonly exclusive?: boolean } = {}): LeasedReminder | undefined {
    const { owner = DEFAULT_OWNER, exclusive = false } = request
    // The texts come before the lease: what throws here leaves no lease behind.
    const pending = this.#manager.getPendingNotifications(owner)
    const notifications = this.#fitting(pending)
    const lease = this.#manager.lease({ owner, exclusive, taskIds: notifications.map(({ task }) => task.id) })
    if (lease === undefined) return undefined
    const cut = notifications.filter(({ isCut }) => isCut).map(({ task }) => task.id)
    if (cut.length > 0) this.#registry.send({ type: 'text.cut', taskIds: cut })
    const { deliveryId } = lease
    return Object.freeze({
      deliveryId,
      text: this.#message(notifications, pending.length, owner, deliveryId),
      taskIds: Object.freeze(lease.tasks.map((task) => task.id)),
      ...(lease.tasks.some((task) => task.isRepeat) && { isRepeat: true }),
      acknowledge: lease.acknowledge,
      release: lease.release,
    })
  }

  /** The whole text about one ended task, with the fields of a synchronous task's result; `''` for a task that has not ended. */
  formatCompletionNotification(task: AsyncTaskInfo): string {
    return formatCompletionNotification(task)
  }

  /** Whether something is owed that no lease holds. */
  hasPendingNotifications(owner?: string): boolean {
    return this.#registry.ledger.countOf('owed', owner) > 0
  }

  /**
   * Marks everything that is owed as delivered, except what the latest `generateReminder` had no room for: for a host that knows that no
   * task has ended since. Use `leaseReminder` otherwise.
   */
  markAllNotified(): void {
    const pending = this.#manager.getPendingNotifications().map((task) => task.id)
    this.markNotified(pending.filter((id) => !this.#leftOut.has(id)))
  }

  /** Marks the ends of these tasks as delivered. */
  markNotified(ids: readonly string[]): void {
    for (const id of ids) this.#manager.markNotified(id)
  }

  #fitting(pending: readonly SettledTaskInfo[]): FittingNotification[] {
    return fittingNotifications(pending, this.#maxChars, maxWholeChars(this.#maxChars) - FRAME_CHARS)
  }

  /** @param pending how many results are owed, those of the notifications included */
  #message(
    notifications: readonly FittingNotification[],
    pending: number,
    owner: string | undefined,
    deliveryId?: string,
  ): string {
    const left = pending - notifications.length
    const { ledger } = this.#registry
    const [running, queued] = [ledger.countOf('running', owner), ledger.countOf('queued', owner)]
    const parts = [
      ...(notifications.length > 0 ? [heading(notifications.map(({ task }) => task))] : []),
      ...notifications.map(({ text }) => text),
      ...(left > 0 ? [`${left} more async task(s) ended. Their results follow in the next message.`] : []),
      ...(running > 0 ? [`${running} async task(s) still running.`] : []),
      ...(queued > 0 ? [`${queued} async task(s) waiting for a slot.`] : []),
      // A host with a store looks for it in its transcript.
      ...(deliveryId !== undefined && this.#registry.persistence !== undefined ? [`Delivery ID: ${deliveryId}`] : []),
    ]
    return parts.length === 0 ? '' : `---\nSystem Note: Async Task Status\n\n${parts.join('\n\n')}\n---`
  }
}

/** How many tasks have ended, and how, unless all of them completed. */
function heading(ended: readonly SettledTaskInfo[]): string {
  const counts = (['completed', 'failed', 'cancelled'] as const)
    .map((status) => [ended.filter((task) => task.status === status).length, status] as const)
    .filter(([count]) => count > 0)
  const [only] = counts
  return counts.length === 1 && only !== undefined
    ? `${ended.length} async task(s) ${only[1]}:`
    : `${ended.length} async task(s) ended (${counts.map((count) => count.join(' ')).join(', ')}):`
}
