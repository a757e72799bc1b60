/** The deadlines of runs, and the grace periods after them. */
import { DueTimes } from '../due-times.js'
import { dueOf, type Due } from '../start-queue.js'
import type { TaskEntry } from '../task-entry.js'
import type { BudgetTimes } from './budget-times.js'
import type { Handlers, RegistryCore, RegistryPart, Scope } from './part.js'

export class DeadlinesPart implements RegistryPart {
  readonly #core: RegistryCore
  readonly #budgets: BudgetTimes
  readonly #deadlines = new DueTimes<TaskEntry>()

  constructor(core: RegistryCore, budgets: BudgetTimes) {
    this.#core = core
    this.#budgets = budgets
  }

  readonly on: Handlers<'task.stopping'> = {
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
      if (entry.graceMs === undefined) deferSend(entry, 'grace.passed', scope)
      else this.pass(entry, entry.graceMs, now, scope)
    }
  }

  /** Asks a run to stop. Even a grace period of 0 ms ends only when the timer fires again, so that the run is asked first. */
  pass(entry: TaskEntry, graceMs: number, now: number, scope: Scope): void {
    entry.graceMs = undefined
    this.#deadlines.set(entry, now + graceMs)
    deferSend(entry, 'deadline.passed', scope)
  }
}

function deferSend({ ref }: TaskEntry, type: 'deadline.passed' | 'grace.passed', { defer }: Scope): void {
  defer(() => ref?.send({ type }))
}
