/** Selects the tasks to which a bulk action applies. */
import type { BulkRequest, PageTask } from '../../wire.js'

export type BulkAction = BulkRequest['action']

/**
 * Returns the keys of the tasks to which an action applies. `cancel` applies to tasks that have not ended. `run-again` applies to tasks that have ended,
 * so that the same work never runs twice at the same time.
 */
export function bulkKeys(tasks: readonly PageTask[], action: BulkAction): readonly string[] {
  return tasks.filter(({ endedAt }) => (endedAt === undefined) === (action === 'cancel')).map(({ key }) => key)
}
