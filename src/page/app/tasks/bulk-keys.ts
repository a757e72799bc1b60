/** Selects the tasks to which a bulk action applies. */
import type { BulkRequest, PageTask } from '../../wire.js'

export type BulkAction = BulkRequest['action']

/** `cancel` applies to tasks that have not ended, and `run-again` to those that have, because a running task's side effects would happen twice. */
export function bulkKeys(tasks: readonly PageTask[], action: BulkAction): readonly string[] {
  return tasks.filter(({ endedAt }) => (endedAt === undefined) === (action === 'cancel')).map(({ key }) => key)
}
