/** Describes what a queued task waits for, other than a slot of its pool. */
import type { AsyncTaskInfo, NamedSlot } from '../../../machines/records.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { elapsedMs } from '../../clock.js'
import { toOneLine } from '../../text/control-characters.js'
import type { RegistryReads } from '../registry-reads.js'
import { plans } from '../run-plan.js'

/** How many tasks that a task waits for are named in the text. */
const MAX_NAMED = 3

type Reads = Pick<RegistryReads, 'limits' | 'history' | 'clock'>

export const slotText = ({ kind, name, max }: NamedSlot): string =>
  toOneLine(
    kind === 'key'
      ? `the key "${name}"${max === 1 ? '' : ` (${max} at once)`}`
      : `a place of subagent "${name}" (${max} at once)`,
  )

/**
 * Describes what a task waits for: other tasks, a slot of its key or subagent, or the start rate of its subagent. The text does not name the tasks
 * that hold the slot, because they may belong to another owner.
 * @param nameOf returns the id of a task as the reader knows it
 * @returns undefined for a task that does not wait, or that lacks only a slot of its pool
 */
export function waitText(
  reads: Reads,
  task: AsyncTaskInfo,
  nameOf: (task: Pick<AsyncTaskInfo, 'id'>) => string = ({ id }) => id,
): string | undefined {
  const { waitsFor } = task
  if (waitsFor === undefined) return limitText(reads, task)
  const names = waitsFor.slice(0, MAX_NAMED).map((id) => nameOf({ id }))
  const more = waitsFor.length - names.length
  return `waits for ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** Returns the reason why a task waits, for metrics; undefined if it lacks only a slot of its pool. */
export function waitReason(reads: Omit<Reads, 'history'> & Pick<RegistryReads, 'pauses'>, entry: TaskEntry) {
  if (reads.pauses.concern(entry.record.owner)) return 'pause'
  if (entry.record.waitsFor !== undefined) return 'dependency'
  const needs = plans.get(entry)?.ticket.needs
  const [slot] = needs === undefined ? [] : reads.limits.takenOf(needs)
  if (slot !== undefined || needs === undefined) return slot?.kind
  return reads.limits.rateOpensAt(needs, elapsedMs(reads.clock)) === undefined ? undefined : 'rate'
}

function limitText({ limits, history, clock }: Reads, { id, status }: AsyncTaskInfo): string | undefined {
  const entry = status === 'queued' ? history.get(id) : undefined
  const needs = entry && plans.get(entry)?.ticket.needs
  if (needs === undefined) return undefined
  const [slot] = limits.takenOf(needs)
  if (slot !== undefined) return `waits for ${slotText(slot)}`
  const now = elapsedMs(clock)
  const opensAt = limits.rateOpensAt(needs, now)
  if (opensAt === undefined || needs.rate === undefined) return undefined
  const { name, limit, perMs } = needs.rate
  const seconds = Math.ceil((opensAt - now) / 1000)
  return toOneLine(`waits ${seconds} s for the rate of subagent "${name}" (${limit} per ${perMs / 1000} s)`)
}
