/** To whom the questions of a task are delivered. */
import { runOfOwner } from '../../../machines/families.js'
import type { AsyncTaskInfo } from '../../../machines/records.js'
import { pushSubscribers } from '../delivery/push-subscribers.js'
import type { TaskRegistry } from '../registry.js'

/** How far up a question goes: what an earlier version has stored may be a circle of owners. */
const MAX_STEPS = 100

/** The owner of the task. When that is a run to which nothing delivers, it is the owner of that run's task, and so on. */
export function addresseeOf(registry: Pick<TaskRegistry, 'history' | 'use'>, task: AsyncTaskInfo): string {
  const { history } = registry
  const subscribers = registry.use(pushSubscribers)
  let { owner } = task
  for (let step = 0; step < MAX_STEPS && !subscribers.has(owner); step += 1) {
    const runId = runOfOwner(owner)
    const parent = runId === undefined ? undefined : history.get(runId)
    if (parent === undefined) return owner
    owner = parent.record.owner
  }
  return owner
}
