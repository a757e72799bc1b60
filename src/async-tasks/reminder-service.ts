/** What the model reads about its background tasks: summary, reminders and leased reminders (seed 003). */
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import { checkMaxMessageChars } from './bounded-text.js'
import { coreOf, type RegistryCore } from './core.js'
import { DEFAULT_OWNER, type AsyncTaskManager } from './manager.js'
import { boundNotification, formatCompletionNotification } from './notifications.js'
import { shortIds } from './short-ids.js'

/** Options of `AsyncTaskReminderService`. */
export interface ReminderServiceOptions {
  /** The most a message says about one task, in characters (default 20000); the rest can be read by cursor. */
  readonly maxMessageChars?: number
}

/** A reminder that is on its way: nobody else tells of its tasks until it ends. */
export interface LeasedReminder {
  /** The lease's id. */
  readonly deliveryId: string
  /** For the model. */
  readonly text: string
  /** The tasks whose ends it tells, in the order in which they ended. */
  readonly taskIds: readonly string[]
  /** The model's turn accepted the text. After `release`: it did after all. */
  readonly acknowledge: () => void
  /** It did not: the tasks are owed again. */
  readonly release: () => void
}

/** How summaries and lists for people show a status. */
export const STATUS_ICONS = {
  running: '[RUNNING]',
  completed: '[DONE]',
  failed: '[FAILED]',
  cancelled: '[CANCELLED]',
} as const satisfies Record<AsyncTaskInfo['status'], string>

/** Words what is owed for a model, under leases (seed 003). */
export class AsyncTaskReminderService {
  readonly #manager: AsyncTaskManager
  readonly #core: RegistryCore
  readonly #maxChars: number

  /** @throws InvalidSettingError when `maxMessageChars` is not an integer >= 200 */
  constructor(manager: AsyncTaskManager, options: ReminderServiceOptions = {}) {
    this.#manager = manager
    this.#core = coreOf(manager)
    this.#maxChars = checkMaxMessageChars(options.maxMessageChars)
  }

  /** Every task with its status, for the system instruction; `''` when there are none. Without an owner: everyone's. */
  generateStatusSummary(owner?: string): string {
    const all = this.#manager.getAllTasks()
    const tasks = owner === undefined ? all : all.filter((task) => task.owner === owner)
    if (tasks.length === 0) return ''
    const short = shortIds(all.map((task) => task.id))
    const lines = tasks.map((task, index) => {
      return `[${index + 1}] ${task.subagentName} - ${STATUS_ICONS[task.status]} (${short.get(task.id) ?? task.id}...)`
    })
    return [`[ASYNC TASKS: ${tasks.length} total]`, ...lines].join('\n')
  }

  /** What is owed and how many tasks run, for the next turn; `''` for nothing. It takes no lease and marks nothing. */
  generateReminder(owner?: string): string {
    const pending = this.#manager.getPendingNotifications(owner)
    return this.#reminder(pending, this.#core.table.countOf('running', owner))
  }

  /**
   * Takes what is owed to an owner into a lease and words it.
   * @param request `owner` (default `main`); `exclusive`: refuse while another exclusive delivery of the owner is in flight
   * @returns undefined when nothing is owed
   */
  leaseReminder(request: { readonly owner?: string; readonly exclusive?: boolean } = {}): LeasedReminder | undefined {
    const { owner = DEFAULT_OWNER, exclusive = false } = request
    const lease = this.#manager.lease({ owner, exclusive })
    if (lease === undefined) return undefined
    const cut: string[] = []
    const text = this.#reminder(lease.tasks, this.#core.table.countOf('running', owner), (task) => cut.push(task.id))
    if (cut.length > 0) this.#core.transact(() => this.#core.send({ type: 'text.cut', taskIds: cut }))
    return Object.freeze({
      deliveryId: lease.deliveryId,
      text,
      taskIds: Object.freeze(lease.tasks.map((task) => task.id)),
      acknowledge: lease.acknowledge,
      release: lease.release,
    })
  }

  /** The whole text about one ended task, in the fields of a synchronous task's result; `''` for one that runs. */
  formatCompletionNotification(task: AsyncTaskInfo): string {
    return formatCompletionNotification(task)
  }

  /** Whether something is owed that is not on its way. */
  hasPendingNotifications(owner?: string): boolean {
    return this.#core.table.countOf('owed', owner) > 0
  }

  /**
   * Marks everything that is owed as told, whether or not it was in a text: for a host that holds the turn itself and
   * knows that nothing ended since its `generateReminder` (seed 003). Others lease.
   */
  markAllNotified(): void {
    this.markNotified(this.#manager.getPendingNotifications().map((task) => task.id))
  }

  /** Marks these tasks as told. */
  markNotified(ids: readonly string[]): void {
    for (const id of ids) this.#manager.markNotified(id)
  }

  #reminder(pending: readonly SettledTaskInfo[], running: number, onCut?: (task: SettledTaskInfo) => void): string {
    const parts: string[] = []
    if (pending.length > 0) {
      parts.push(
        `${pending.length} async task(s) completed:`,
        ...pending.map((task) => this.#boundedNotification(task, onCut)),
      )
    }
    if (running > 0) parts.push(`${running} async task(s) still running.`)
    return parts.length === 0 ? '' : `---\nSystem Note: Async Task Status\n\n${parts.join('\n\n')}\n---`
  }

  #boundedNotification(task: SettledTaskInfo, onCut: ((task: SettledTaskInfo) => void) | undefined): string {
    const { text, isCut } = boundNotification(task, this.#maxChars)
    if (isCut) onCut?.(task)
    return text
  }
}
