/** Finds out who receives the questions of a task. */
import { runOfOwner } from '../../../machines/run-owner.js'
import type { AsyncTaskInfo } from '../../../machines/records.js'
import { pushSubscribers } from '../delivery/push-subscribers.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'

/** The maximum number of steps from a run to the owner of its task. Records of an earlier version may contain a circle of owners. */
const MAX_STEPS = 100

/** Returns the owner of the task. If that owner is a run without a subscriber, the owner of the task of that run is tried instead, and so on. */
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
