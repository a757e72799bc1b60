/** Waits for a launch to be stored before the model receives its id. */
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { StoreError } from '../store/store-errors.js'

/**
 * Waits until the launch of a task is stored.
 * @throws StoreError when it cannot be stored: the task has failed, and has not run
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
  if (record?.status === 'failed' && record.errorCode === 'NOT_STORED') {
    throw new StoreError('STORE_FAILED', record.error)
  }
}
