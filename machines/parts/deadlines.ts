/** The deadlines of runs, and the grace periods after them. */
import { DueTimes } from '../due-times.js'
import { dueOf, type Due } from '../start-queue.js'
import type { ActiveTimes } from '../active-times.js'
import type { TaskEntry } from '../task-entry.js'
import { limitedRecord } from '../task-record.js'
import { holdsSlot } from '../task-status.js'
import type { BudgetTimes } from './budget-times.js'
import type { EventOf, Handlers, RegistryCore, RegistryPart, Scope } from './part.js'

export interface DeadlinesOptions {
  readonly times: BudgetTimes
  /** How long durable tasks have worked. */
  readonly active: ActiveTimes
  /** Called when the record of a task has changed. */
  readonly onNoted: ((entry: TaskEntry) => void) | undefined
}

export class DeadlinesPart implements RegistryPart {
  readonly #core: RegistryCore
  readonly #options: DeadlinesOptions
  readonly #budgets: BudgetTimes
  readonly #deadlines = new DueTimes<TaskEntry>()

  constructor(core: RegistryCore, options: DeadlinesOptions) {
    this.#core = core
    this.#options = options
    this.#budgets = options.times
  }

  readonly on: Handlers<'deadline.change' | 'task.stopping'> = {
    'deadline.change': (event) => {
      this.#change(event)
    },
    'task.stopping': ({ taskId, excess }) => {
      const entry = this.#core.history.get(taskId)
      if (entry === undefined) return
      this.#core.changes.limit(entry, 'stopping')
      this.#core.effects.push({ type: 'stopping', entry, excess })
    },
  }

  begin(entry: TaskEntry, now: number, limitMs: number | undefined): void {
    if (limitMs !== undefined) this.#deadlines.set(entry, now + limitMs)
  }

  waits(entry: TaskEntry): void {
    this.#deadlines.delete(entry)
  }

  proceed(entry: TaskEntry, now: number, limitMs: number | undefined): void {
    this.begin(entry, now, limitMs)
  }

  stop(entry: TaskEntry): void {
    this.#deadlines.delete(entry)
  }

  next(): Due | undefined {
    return dueOf(this.#deadlines)
  }

  due(now: number, scope: Scope): void {
    for (const entry of this.#deadlines.takeAll(now)) {
      this.#budgets.conclude(entry)
      if (entry.graceMs === undefined) scope.defer(() => entry.ref?.send({ type: 'grace.passed' }))
      else this.pass(entry, entry.graceMs, now, scope)
    }
  }

  /** Asks a run to stop. Even a grace period of 0 ms ends only when the timer fires again, so that the run is asked first. */
  pass(entry: TaskEntry, graceMs: number, now: number, scope: Scope): void {
    entry.graceMs = undefined
    this.#deadlines.set(entry, now + graceMs)
    const { timeoutMs } = entry.record
    scope.defer(() => entry.ref?.send({ type: 'deadline.passed', timeoutMs }))
  }

  /** Gives a run another deadline. `inMs` counts from now; undefined for no deadline. */
  #change({ entry, inMs }: EventOf<'deadline.change'>): void {
    if (!hasRun(entry)) return
    const now = this.#core.elapsed()
    const { startedAt, launchedAt } = entry.record
    const { active, onNoted } = this.#options
    const ranMs = active.has(entry)
      ? active.of(entry, now)
      : Math.max(0, this.#core.changes.now() - (startedAt ?? launchedAt))
    entry.record = limitedRecord(entry.record, inMs === undefined ? undefined : ranMs + inMs)
    if (inMs === undefined) this.#deadlines.delete(entry)
    else if (active.isWorking(entry)) this.#deadlines.set(entry, now + inMs)
    onNoted?.(entry)
  }
}

/** Whether a task has a run that was not asked to stop. */
const hasRun = ({ record, graceMs }: TaskEntry): boolean => holdsSlot(record.status) && graceMs !== undefined
