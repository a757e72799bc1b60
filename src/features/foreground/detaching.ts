/** Moves tasks from the foreground to the background. */
import { poolOf } from '../../../machines/slots.js'
import { TaskLimitError } from '../../errors.js'
import { preview } from '../../data/preview.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'

/** Whether a task was moved to the background; if not, the reason, in words. */
export type DetachResult = { readonly detached: true } | { readonly detached: false; readonly reason: string }

/**
 * Moves a task to the background. The call that waits for it returns, and the task takes a slot like a task launched in the background.
 * @throws TASK_LIMIT if no slot is free; the task stays in the foreground then
 */
export function detachTask(registry: TaskRegistry, id: string): DetachResult {
  const entry = registry.history.get(id)
  if (entry === undefined) return { detached: false, reason: `There is no task ${preview(id)}.` }
  const name = `Task ${preview(id)}`
  switch (registry.ask({ type: 'task.detach', entry, mayExceed: false })) {
    case 'detached':
      return { detached: true }
    case 'no-room': {
      const { record } = entry
      const { owner } = record
      const slots = registry.pools.ofTask(record)
      const use = slots.hasRoom() ? { owner, running: slots.heldBy(owner) } : undefined
      const max = use === undefined ? slots.max : slots.maxOfOwner
      throw new TaskLimitError(max, undefined, poolOf(record), undefined, use)
    }
    case 'background':
      return { detached: false, reason: `${name} is in the background already.` }
    default:
      return { detached: false, reason: `${name} has ended: it is ${entry.record.status}.` }
  }
}

/** Moves an active task to the background even if no slot is free, because the call that launched it no longer waits for it. */
export function leaveInBackground({ registry }: { readonly registry: TaskRegistry }, id: string): void {
  const entry = registry.history.get(id)
  if (entry?.record.isForeground === true) registry.ask({ type: 'task.detach', entry, mayExceed: true })
}
