/** Which results a model has been shown: a record whose text was cut is kept until the model has read the rest. */
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import { takeLease, type TaskLease } from '../async-tasks/leases.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { fittingNotifications } from '../async-tasks/notifications.js'
import type { TaskRegistry } from '../async-tasks/registry.js'
import type { TaskView } from './task-view.js'

/**
 * Marks a task's text as read, to its end or in part. For an owner without a push subscriber, reading to the end delivers it, as no
 * message would.
 */
export function markShown({ manager: { registry }, hold }: TaskView, task: AsyncTaskInfo, isWhole: boolean): void {
  if (task.status === 'running') return
  const isKept = task.delivery === 'owed' || task.delivery === 'leased'
  const markRead = (): void => registry.send({ type: 'text.read', taskId: task.id })
  registry.batch(() => {
    if (!isWhole) {
      if (!isKept) registry.send({ type: 'text.cut', taskIds: [task.id] })
    } else if (hold === undefined) {
      markRead()
      registry.acknowledgePulled([task.id])
    } else {
      const lease = registry.pushSubscribers.has(task.owner) ? undefined : leaseRead(registry, task.id)
      hold({
        taskIds: [task.id],
        acknowledge: () => {
          markRead()
          lease?.acknowledge()
        },
        release: () => lease?.release(),
      })
    }
  })
}

/** A lease on a task that a call reads; undefined when another message has it, or it owes nothing. */
function leaseRead(registry: TaskRegistry, taskId: string): TaskLease | undefined {
  return takeLease(registry, { deliveryId: `read-${taskId}`, taskIds: [taskId] })
}

/** What a message about several ends may contain. */
export interface WordLimits {
  /** The maximum about one task, in characters. */
  readonly maxChars: number
  /** The maximum of them all, in characters. */
  readonly room: number
}

/** The notifications that fit, and their tasks; both in the order of the given tasks. */
export interface WordedEnds {
  readonly texts: readonly string[]
  readonly shown: readonly SettledTaskInfo[]
}

/** Puts ends into words that are about to be acknowledged: those that were not delivered first, and of those the oldest. */
export function wordEnds(
  { registry }: AsyncTaskManager,
  tasks: readonly SettledTaskInfo[],
  { maxChars, room }: WordLimits,
): WordedEnds {
  const byUrgency = [...tasks].sort((a, b) => Number(isDelivered(a)) - Number(isDelivered(b)) || a.seq - b.seq)
  const fitting = fittingNotifications(byUrgency, maxChars, room)
  for (const { task, isCut } of fitting) {
    registry.send(isCut ? { type: 'text.cut', taskIds: [task.id] } : { type: 'text.read', taskId: task.id })
  }
  const textOf = new Map(fitting.map(({ task, text }) => [task, text]))
  const shown = tasks.filter((task) => textOf.has(task))
  return { shown, texts: shown.map((task) => textOf.get(task) ?? '') }
}

const isDelivered = ({ delivery }: SettledTaskInfo): boolean => delivery === 'delivered'
