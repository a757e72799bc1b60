/** Which results a model has been shown: a record whose text was cut is kept until the model has read the rest. */
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { boundNotification } from '../async-tasks/notifications.js'

/**
 * Marks a task's text as read, to its end or in part. For an owner without a push subscriber, reading to the end delivers it, as no
 * message would.
 */
export function markShown({ registry }: AsyncTaskManager, task: AsyncTaskInfo, isWhole: boolean): void {
  if (task.status === 'running') return
  const isKept = task.delivery === 'owed' || task.delivery === 'leased'
  registry.batch(() => {
    if (isWhole) {
      registry.send({ type: 'text.read', taskId: task.id })
      registry.acknowledgePulled([task.id])
    } else if (!isKept) registry.send({ type: 'text.cut', taskIds: [task.id] })
  })
}

/** The notifications of tasks whose ends are being acknowledged, each of at most `maxChars` characters. */
export function wordEnds(
  { registry }: AsyncTaskManager,
  tasks: readonly SettledTaskInfo[],
  maxChars: number,
): string[] {
  return tasks.map((task) => {
    const { text, isCut } = boundNotification(task, maxChars)
    registry.send(isCut ? { type: 'text.cut', taskIds: [task.id] } : { type: 'text.read', taskId: task.id })
    return text
  })
}
