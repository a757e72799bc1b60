/** Transfers single tasks to another owner. `releaseOwner` of the manager transfers all tasks of an owner, and its schedules. */
import type { TaskRegistry } from '../../async-tasks/registry.js'

/** Transfers those of the tasks that are active, owed or leased, with their open questions, from one owner to another. */
export function transferTasks(
  { registry }: { readonly registry: TaskRegistry },
  { from, to, ids }: { readonly from: string; readonly to: string; readonly ids: ReadonlySet<string> },
): void {
  registry.send({ type: 'tasks.transfer', owner: from, heir: to, ids })
}
