/** Tracks which tasks wait for which: because of a key, of `after`, or of a wait in a run. Refuses a wait that would never end (promise F18). */
import type { Requirements } from '../../../machines/task-admission.js'
import { isTerminal, type TaskEntry } from '../../../machines/task-entry.js'
import { holdsSlot } from '../../../machines/task-status.js'
import { FamilyError } from '../../errors.js'
import type { Feature, WaitReason } from '../../async-tasks/feature.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import { plans } from '../../async-tasks/run-plan.js'
import { limitReason } from './limit-text.js'

/** A wait of a run for tasks: for all of them, or for any one of them. */
interface RunWait {
  readonly entries: readonly TaskEntry[]
  readonly mode: 'all' | 'any'
}

type Leads = (entry: TaskEntry | undefined) => boolean

/** How many tasks in a chain of waits are examined. A deadlock through a longer chain is not detected. */
const MAX_LEVELS = 1000

export class RunWaits implements Feature {
  readonly #registry: TaskRegistry
  readonly #waits = new Map<TaskEntry, Set<RunWait>>()

  constructor(registry: TaskRegistry) {
    this.#registry = registry
  }

  /**
   * Begins a wait of a run. Call the returned function when the wait ends.
   * @throws AgentTasksError `DEADLOCK` if these tasks wait for the run themselves
   */
  begin(run: TaskEntry, entries: readonly TaskEntry[], mode: RunWait['mode']): () => void {
    const wait = { entries, mode }
    const known = new Map<TaskEntry, boolean>()
    if (isStuck(wait, (entry) => this.#leads(entry, run, known))) {
      const ids = entries.map(({ record }) => record.id).join(', ')
      throw deadlock(run, `waits for ${ids}`)
    }
    const waits = this.#waits.get(run) ?? new Set()
    this.#waits.set(run, waits.add(wait))
    return () => {
      waits.delete(wait)
      if (waits.size === 0) this.#waits.delete(run)
    }
  }

  /**
   * Checks a foreground launch of a run.
   * @throws AgentTasksError `DEADLOCK` if the new task would wait for the run that launches it
   */
  checkInPlace(run: TaskEntry, needs: Requirements): void {
    const known = new Map<TaskEntry, boolean>()
    if (this.#lacks(needs, (entry) => this.#leads(entry, run, known))) throw deadlock(run, 'launches a foreground task')
  }

  /** Whether `entry` cannot continue before `other` has ended. */
  leadsTo(entry: TaskEntry, other: TaskEntry): boolean {
    return this.#leads(entry, other, new Map())
  }

  waitReason(entry: TaskEntry): WaitReason | undefined {
    return limitReason(this.#registry, entry)
  }

  disposed(): void {
    this.#waits.clear()
  }

  #leads(entry: TaskEntry | undefined, to: TaskEntry, known: Map<TaskEntry, boolean>, level = 0): boolean {
    if (entry === to) return true
    if (entry?.ref === undefined || level > MAX_LEVELS) return false
    const found = known.get(entry)
    if (found !== undefined) return found
    // Recorded before the answer is known, so that a cycle of waits does not cause an endless search.
    known.set(entry, false)
    const leads: Leads = (next) => this.#leads(next, to, known, level + 1)
    const result = holdsSlot(entry.record.status) ? this.#runLeads(entry, leads) : this.#placeLeads(entry, leads)
    known.set(entry, result)
    return result
  }

  #runLeads(entry: TaskEntry, leads: Leads): boolean {
    const waits = [...(this.#waits.get(entry) ?? [])]
    if (waits.some((wait) => isStuck(wait, leads))) return true
    return this.#registry.families
      .liveChildren(entry)
      .some((child) => child.record.isForeground === true && leads(child))
  }

  #placeLeads(entry: TaskEntry, leads: Leads): boolean {
    const { history } = this.#registry
    const needs = plans.get(entry)?.ticket.needs
    if (entry.record.waitsFor?.some((id) => leads(history.get(id))) === true) return true
    return needs !== undefined && this.#lacks(needs, leads)
  }

  #lacks(needs: Requirements, leads: Leads): boolean {
    const { limits } = this.#registry
    return limits.takenOf(needs).some((slot) => limits.holdersOf(slot).every(leads))
  }
}

export const runWaits = (registry: TaskRegistry): RunWaits => new RunWaits(registry)

function isStuck({ entries, mode }: RunWait, leads: Leads): boolean {
  if (mode === 'all') return entries.some((entry) => !isTerminal(entry.record) && leads(entry))
  return entries.length > 0 && entries.every((entry) => !isTerminal(entry.record) && leads(entry))
}

const deadlock = ({ record: { id } }: TaskEntry, what: string): FamilyError =>
  new FamilyError(
    'DEADLOCK',
    id,
    `Task ${id} ${what}, which would wait for task ${id} itself, through concurrency keys, limits of subagents, "after" or the waits of other runs. This would be a deadlock.`,
  )
