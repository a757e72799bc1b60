/** Tracks which results a model has been shown. A record whose text was cut is kept until the model has read the rest. */
import { acknowledgePulled, noteShown } from '../async-tasks/delivery/leases.js'
import { pushSubscribers } from '../async-tasks/delivery/push-subscribers.js'
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import { isOfOtherRun } from '../async-tasks/families/families.js'
import { isTerminal, isUndelivered } from '../../machines/task-entry.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { fittingNotifications, type NotificationFrame } from '../async-tasks/delivery/notifications.js'
import { defined } from '../defined.js'
import { StoreError } from '../store/store-errors.js'
import type { TaskView } from './task-view.js'

/** What the metadata of a result contains about the task results in it. */
export interface ShownDelivery {
  /** The delivery id, with a store. */
  readonly deliveryId?: string
  /** Whether one of them may have been delivered before. */
  readonly isRepeat?: true
}

/** The metadata for the result of a call with these tasks. */
export function shownDelivery(tasks: readonly AsyncTaskInfo[], deliveryId: string | undefined): ShownDelivery {
  return {
    ...defined({ deliveryId }),
    ...(tasks.some(({ isRepeat }) => isRepeat) && { isRepeat: true }),
  }
}

/**
 * Marks a task's text as read, to its end or in part. For an owner without a push subscriber, reading to the end delivers it, because no
 * message would. Resolves when that is stored.
 * @throws StoreError when it cannot be stored: the text must not be shown, and is still owed
 */
export async function markShown(
  { manager, owner, hold }: TaskView,
  task: AsyncTaskInfo,
  isWhole: boolean,
): Promise<ShownDelivery> {
  // The result of a child goes to the run that waits for it.
  if (!isTerminal(task) || isOfOtherRun(task, owner)) return {}
  const { reads } = manager
  if (!isWhole) {
    if (!isUndelivered(task)) noteShown(manager, task.id, false)
    return shownDelivery([task], undefined)
  }
  const markRead = (): void => noteShown(manager, task.id, true)
  if (hold === undefined && reads.persistence === undefined) {
    reads.batch(() => {
      markRead()
      acknowledgePulled(manager, [task.id])
    })
    return {}
  }
  // Undefined when another message has the result, or will have it.
  const lease = reads.use(pushSubscribers).has(task.owner) ? undefined : manager.lease({ taskIds: [task.id] })
  if (lease?.stored !== undefined) await lease.stored
  const acknowledge = (): void =>
    reads.batch(() => {
      markRead()
      lease?.acknowledge()
    })
  if (hold === undefined) acknowledge()
  else hold({ taskIds: [task.id], acknowledge, release: () => lease?.release() })
  return shownDelivery([task], reads.persistence && lease?.deliveryId)
}

/** Marks the open questions of these tasks as asked, because the result of the call contains them. If the result is lost, a message asks them. */
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
    const { acknowledge, release, stored } = lease
    if (stored !== undefined) await stored
    if (hold === undefined) acknowledge()
    else hold({ taskIds: [], acknowledge, release })
  } catch (error) {
    // The questions stay owed. The manager has reported the error.
    if (!(error instanceof StoreError)) throw error
  }
}

/** The limits of a message with several ends. */
export interface WordLimits extends NotificationFrame {
  /** The maximum about one task, in characters. */
  readonly maxChars: number
  /** The maximum for all tasks, in characters. */
  readonly room: number
}

/** The notifications that fit, and their tasks; both in the order of the given tasks. */
export interface WordedEnds {
  readonly texts: readonly string[]
  readonly shown: readonly SettledTaskInfo[]
}

/** Words the ends that are about to be acknowledged: undelivered ones first, and of those the oldest. */
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
