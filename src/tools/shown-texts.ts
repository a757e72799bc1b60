/** What a model was shown of ended tasks: a record whose text was cut is kept until it was read. */
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { boundNotification } from '../async-tasks/notifications.js'

/**
 * The model read a task's text, to its end or not. For an owner without a push subscriber, reading to the end is the delivery: no
 * message would bring the rest.
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
