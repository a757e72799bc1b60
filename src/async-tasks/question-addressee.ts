/** To whom the questions of a task are delivered. */
import { RUN_OWNER_PREFIX } from '../../machines/families.js'
import type { History } from '../../machines/history.js'
import type { AsyncTaskInfo } from '../../machines/records.js'
import type { PushSubscribers } from './push-subscribers.js'

/** How far up a question goes: owners can be named in a circle. */
const MAX_STEPS = 100

/** The owner of the task. When that is a run to which nothing delivers, it is the owner of that run's task, and so on. */
export function addresseeOf(
  { history, pushSubscribers }: { readonly history: History; readonly pushSubscribers: PushSubscribers },
  task: AsyncTaskInfo,
): string {
  let { owner } = task
  for (let step = 0; step < MAX_STEPS && owner.startsWith(RUN_OWNER_PREFIX) && !pushSubscribers.has(owner); step += 1) {
    const parent = history.get(owner.slice(RUN_OWNER_PREFIX.length))
    if (parent === undefined) return owner
    owner = parent.record.owner
  }
  return owner
}
