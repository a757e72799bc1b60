/** Determines what a task needs besides a slot of its pool, because of its subagent and key (promise F18). */
import type { Requirements } from '../../../machines/task-admission.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import type { ResolvedRunner } from '../../engine/runner.js'
import { FamilyError } from '../../errors.js'
import { tasksAbove } from '../families/families.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import { slotText } from './limit-text.js'
import { runWaits } from './run-waits.js'

interface Keyed {
  readonly subagentName: string
  readonly concurrencyKey?: string | undefined
}

/** Returns undefined if the task needs nothing but a slot of its pool. */
export function needsOf(
  { keyLimits }: Pick<TaskRegistry, 'keyLimits'>,
  { subagentName, concurrencyKey: key }: Keyed,
  { maxConcurrent, rate }: Pick<ResolvedRunner, 'maxConcurrent' | 'rate'>,
): Requirements | undefined {
  if (key === undefined && maxConcurrent === undefined && rate === undefined) return undefined
  const ofKey = key !== undefined && Object.hasOwn(keyLimits, key) ? keyLimits[key] : undefined
  return {
    slots: [
      ...(key === undefined ? [] : [{ kind: 'key', name: key, max: ofKey ?? 1 } as const]),
      ...(maxConcurrent === undefined ? [] : [{ kind: 'subagent', name: subagentName, max: maxConcurrent } as const]),
    ],
    ...(rate && { rate: { ...rate, name: subagentName } }),
  }
}

/**
 * Refuses a child that needs a slot which its parent, or a task above it, holds: the child would wait for that task.
 * @throws AgentTasksError `HELD_BY_PARENT`
 */
export function checkAbove(
  registry: TaskRegistry,
  parent: TaskEntry,
  needs: Requirements,
  isForeground: boolean | undefined,
): void {
  const { limits, history } = registry
  const above = tasksAbove(history, parent)
  for (const slot of needs.slots) {
    const holders = limits.holdersOf(slot)
    const holder = above.find((entry) => holders.includes(entry))
    if (holder === undefined) continue
    throw new FamilyError(
      'HELD_BY_PARENT',
      parent.record.id,
      `Task ${holder.record.id} holds ${slotText(slot)} until it ends. The new task needs it too and would be a descendant of that task, so it could not start while that task waits for it. Do this work in the run that launches it, or use another subagent or no concurrency key.`,
    )
  }
  if (isForeground === true) registry.use(runWaits).checkInPlace(parent, needs)
}
