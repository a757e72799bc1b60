/** Which of the tasks that are shown an action is for. */
import type { BulkRequest, PageTask } from '../../wire.js'

export type BulkAction = BulkRequest['action']

/** A task that runs is not run again in bulk: what it does would be done twice. */
export function bulkKeys(tasks: readonly PageTask[], action: BulkAction): readonly string[] {
  return tasks.filter(({ endedAt }) => (endedAt === undefined) === (action === 'cancel')).map(({ key }) => key)
}
