/** Tells the registry what a model was shown of ended tasks: a record whose text was cut stays until it was read. */
import type { AsyncTaskInfo, SettledTaskInfo } from '../../machines/records.js'
import type { RegistryCore } from '../async-tasks/core.js'
import { boundNotification } from '../async-tasks/notifications.js'

/**
 * The model asked for a task itself and was shown the end of its text, or not. Reading to the end counts as told for an
 * owner that only pulls; nothing else would ever bring it the rest.
 */
export function noteShown(core: RegistryCore, task: AsyncTaskInfo, isWhole: boolean): void {
  if (task.status === 'running') return
  const isKept = task.delivery === 'owed' || task.delivery === 'leased'
  core.transact(() => {
    if (isWhole) {
      core.send({ type: 'text.read', taskId: task.id })
      core.acknowledgePulled([task.id])
    } else if (!isKept) core.send({ type: 'text.cut', taskIds: [task.id] })
  })
}

/** The notifications of tasks whose end is being acknowledged, each of at most `maxChars` characters. */
export function wordEnds(core: RegistryCore, tasks: readonly SettledTaskInfo[], maxChars: number): string[] {
  return tasks.map((task) => {
    const { text, isCut } = boundNotification(task, maxChars)
    core.transact(() =>
      core.send(isCut ? { type: 'text.cut', taskIds: [task.id] } : { type: 'text.read', taskId: task.id }),
    )
    return text
  })
}
