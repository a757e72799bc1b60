/** Describes which named slot or start rate a queued task waits for. */
import type { NamedSlot } from '../../../machines/task-admission.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { elapsedMs } from '../../system/clock.js'
import { toOneLine } from '../../data/control-characters.js'
import type { WaitReason } from '../../async-tasks/feature.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import { plans } from '../../async-tasks/run-plan.js'

export const slotText = ({ kind, name, max }: NamedSlot): string =>
  toOneLine(
    kind === 'key'
      ? `the key "${name}"${max === 1 ? '' : ` (${max} at once)`}`
      : `a place of subagent "${name}" (${max} at once)`,
  )

/**
 * Returns the slot of its key or subagent, or the start rate of its subagent, that a task waits for. The text does not name the tasks that hold the
 * slot, because they may belong to another owner.
 */
export function limitReason({ limits, clock }: TaskRegistry, entry: TaskEntry): WaitReason | undefined {
  const needs = plans.get(entry)?.ticket.needs
  if (needs === undefined) return undefined
  const [slot] = limits.takenOf(needs)
  if (slot !== undefined) return { kind: slot.kind, text: `waits for ${slotText(slot)}` }
  const now = elapsedMs(clock)
  const opensAt = limits.rateOpensAt(needs, now)
  if (opensAt === undefined || needs.rate === undefined) return undefined
  const { name, limit, perMs } = needs.rate
  const seconds = Math.ceil((opensAt - now) / 1000)
  const text = `waits ${seconds} s for the rate of subagent "${name}" (${limit} per ${perMs / 1000} s)`
  return { kind: 'rate', text: toOneLine(text) }
}
