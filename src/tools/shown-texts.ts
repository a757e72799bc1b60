/** Tracks which results were shown to a model. If the text of a result was cut, its record is kept until the model has read the rest. */
import { noteShown } from '../features/delivery/leases.js'
import { pushSubscribers } from '../features/delivery/push-subscribers.js'
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import { isOfOtherRun } from '../features/families/families.js'
import { isTerminal, isUndelivered } from '../../machines/task-entry.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { fittingNotifications, type NotificationFrame } from '../features/delivery/notifications.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { StoreError } from '../store/store-errors.js'
import type { TaskView } from './task-view.js'

/** The part of a result's metadata that is about delivered task results. */
export interface ShownDelivery {
  /** The id of the delivery; only with a store. */
  readonly deliveryId?: string
  /** Whether one of the results may have been delivered before. */
  readonly isRepeat?: true
}

/** The metadata of a tool's result that contains the results of these tasks. */
export function shownDelivery(tasks: readonly AsyncTaskInfo[], deliveryId: string | undefined): ShownDelivery {
  return {
    ...omitUndefined({ deliveryId }),
    ...(tasks.some(({ isRepeat }) => isRepeat) && { isRepeat: true }),
  }
}

/**
 * Marks the text of a task as read, in part or to its end. If no host receives messages for the owner, reading the text to its end delivers the result.
 * Resolves when the delivery is stored.
 * @throws StoreError when the delivery cannot be stored; then the text must not be shown, because the result is still owed
 */
export async function markShown(
  { manager, owner, hold }: TaskView,
  task: AsyncTaskInfo,
  isWhole: boolean,
): Promise<ShownDelivery> {
  // The result of a child task goes to the run that launched it, so reading it delivers nothing.
  if (!isTerminal(task) || isOfOtherRun(task, owner)) return {}
  const { reads } = manager
  if (!isWhole) {
    if (!isUndelivered(task)) noteShown(manager, task.id, false)
    return shownDelivery([task], undefined)
  }
  // There is no lease if another message has the result, or if a push subscriber will send one.
  const lease = reads.use(pushSubscribers).has(task.owner) ? undefined : manager.lease({ taskIds: [task.id] })
  if (lease?.stored !== undefined) await lease.stored
  const acknowledge = (): void =>
    reads.batch(() => {
      noteShown(manager, task.id, true)
      lease?.acknowledge()
    })
  const { deliveryId } = lease ?? {}
  hold({ deliveryId, taskIds: [task.id], acknowledge, release: (how) => lease?.release(how) })
  return shownDelivery([task], reads.persistence && lease?.deliveryId)
}

/**
 * Marks the open questions of these tasks as asked, because the result of the call contains them. If the result does not arrive, a later message asks
 * them.
 */
export async function markAsked(
  { manager, hold }: Pick<TaskView, 'manager' | 'hold'>,
  tasks: readonly AsyncTaskInfo[],
): Promise<void> {
  const questions = tasks.flatMap(({ id: taskId, questions: asked = [] }) =>
    asked.map(({ id }) => ({ taskId, questionId: id })),
  )
  if (questions.length === 0) return
  try {
    const lease = manager.lease({ taskIds: [], questions })
    if (lease === undefined) return
    const { deliveryId, acknowledge, release, stored } = lease
    if (stored !== undefined) await stored
    hold({ deliveryId, taskIds: [], acknowledge, release })
  } catch (error) {
    // The questions are still owed. The manager has reported the error.
    if (!(error instanceof StoreError)) throw error
  }
}

/** The length limits of a message about several ended tasks. */
export interface WordLimits extends NotificationFrame {
  /** The maximum length of the text about one task, in characters. */
  readonly maxChars: number
  /** The maximum length of all texts together, in characters. */
  readonly room: number
}

/** The texts that fit, and their tasks. Both are in the order of the given tasks. */
export interface WordedEnds {
  readonly texts: readonly string[]
  readonly shown: readonly SettledTaskInfo[]
}

/**
 * Writes the texts about ended tasks, which the caller then acknowledges. If not all fit, undelivered results come first, and the oldest of them before
 * the others.
 */
export function wordEnds(
  manager: AsyncTaskManager,
  tasks: readonly SettledTaskInfo[],
  { maxChars, room, ...frame }: WordLimits,
): WordedEnds {
  const byUrgency = [...tasks].sort((a, b) => Number(isDelivered(a)) - Number(isDelivered(b)) || a.seq - b.seq)
  const fitting = fittingNotifications(byUrgency, maxChars, room, frame)
  for (const { task, isCut } of fitting) noteShown(manager, task.id, !isCut)
  const textOf = new Map(fitting.map(({ task, text }) => [task, text]))
  const shown = tasks.filter((task) => textOf.has(task))
  return { shown, texts: shown.map((task) => textOf.get(task) ?? '') }
}

const isDelivered = ({ delivery }: SettledTaskInfo): boolean => delivery === 'delivered'
