/** Waits until a launch is stored, before the model receives the id of the task. */
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { endedAs } from '../../machines/task-status.js'
import { StoreError } from '../store/store-errors.js'

/**
 * Waits until the launch of a task is stored.
 * @throws StoreError when the launch cannot be stored; the task has failed without running
 */
export async function untilStored(manager: AsyncTaskManager, taskId: string): Promise<void> {
  try {
    await manager.stored()
  } finally {
    checkStored(manager, taskId)
  }
}

/** @throws StoreError when the launch of the task could not be stored */
export function checkStored(manager: AsyncTaskManager, taskId: string): void {
  const record = manager.getTask(taskId)
  if (endedAs(record, 'failed') && record.errorCode === 'NOT_STORED') {
    throw new StoreError('STORE_FAILED', record.error)
  }
}
