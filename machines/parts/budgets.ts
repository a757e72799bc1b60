/** What tasks have used, and the limits of it (promise F10). */
import { BUDGET_EXCEEDED } from '../async-task.js'
import type { TaskBudget } from '../records.js'
import { addSpent, budgetMessage, overspent, type Usage } from '../usage.js'
import type { Due } from '../start-queue.js'
import { isTerminal, type TaskEntry } from '../task-entry.js'
import { changedRecord } from '../task-record.js'
import type { BudgetTimes, TimeBudget } from './budget-times.js'
import type { DeadlinesPart } from './deadlines.js'
import type { Earlier, Handlers, RegistryCore, RegistryPart, Scope } from './part.js'

export interface BudgetsOptions {
  readonly times: BudgetTimes
  readonly deadlines: DeadlinesPart
  /** Called when a task has used something, and when a task with earlier usage is restored. */
  readonly onSpent: ((owner: string, amount: Usage, isEarlier?: boolean) => void) | undefined
  /** Called when the record of a task has changed. */
  readonly onNoted: ((entry: TaskEntry) => void) | undefined
}

/** How long a run may take to conclude after a budget is exceeded, in ms. */
const DEFAULT_WRAP_UP_MS = 30_000

export class BudgetsPart implements RegistryPart {
  readonly #core: RegistryCore
  readonly #options: BudgetsOptions
  readonly #times: BudgetTimes

  constructor(core: RegistryCore, options: BudgetsOptions) {
    this.#core = core
    this.#options = options
    this.#times = options.times
  }

  readonly on: Handlers<'task.spend' | 'limit.exceeded' | 'task.wrapping'> = {
    'task.spend': ({ entry, amount }, scope) => {
      this.#spend(entry, amount)
      this.#options.onNoted?.(entry)
      check(entry, scope)
    },
    'limit.exceeded': ({ entry, message, errorCode }, scope) => {
      exceed(entry, message, scope, errorCode)
    },
    'task.wrapping': ({ taskId, excess }) => {
      const entry = this.#core.history.get(taskId)
      if (entry === undefined) return
      if (entry.record.budget === undefined) this.#times.add(entry, timesOf({}), 0)
      this.#times.wrapUp(entry, this.#core.elapsed())
      this.#core.changes.limit(entry, 'wrapping')
      this.#core.effects.push({ type: 'wrapping', entry, excess })
    },
  }

  add(entry: TaskEntry, scope: Scope, earlier?: Earlier): void {
    const { budget, owner, spent } = entry.record
    if (spent !== undefined) this.#options.onSpent?.(owner, spent, true)
    if (budget === undefined || isTerminal(entry.record)) return
    this.#times.add(entry, timesOf(budget), (spent?.seconds ?? 0) * 1000 + (earlier?.ranMs ?? 0))
    check(entry, scope)
  }

  begin(entry: TaskEntry, now: number): void {
    this.#times.start(entry, now)
  }

  waits(entry: TaskEntry, now: number): void {
    this.#times.pause(entry, now)
  }

  proceed(entry: TaskEntry, now: number): void {
    this.#times.resume(entry, now)
  }

  stop(entry: TaskEntry, now: number, isLast: boolean): void {
    const ranMs = this.#times.stop(entry, now)
    if (ranMs !== undefined) this.#spend(entry, { seconds: ranMs / 1000 - (entry.record.spent?.seconds ?? 0) })
    if (isLast) this.#times.delete(entry)
  }

  next(): Due | undefined {
    const { next: at, nextEntry: entry } = this.#times
    return at === undefined ? undefined : { at, entry }
  }

  /** Handles tasks whose time limit has passed, or whose time to conclude is over. */
  due(now: number, scope: Scope): void {
    for (let due = this.#times.take(now); due !== undefined; due = this.#times.take(now)) {
      const { entry, isWrapping } = due
      const { budget, spent } = entry.record
      if (!isWrapping) exceed(entry, budgetMessage('seconds', budget?.seconds ?? 0, spent), scope)
      else if (entry.graceMs !== undefined) this.#options.deadlines.pass(entry, entry.graceMs, now, scope)
    }
  }

  #spend(entry: TaskEntry, amount: Usage): void {
    entry.record = changedRecord(entry.record, { spent: addSpent(entry.record.spent, amount) })
    this.#options.onSpent?.(entry.record.owner, amount)
  }
}

function check(entry: TaskEntry, scope: Scope): void {
  const message = overspent(entry.record.budget, entry.record.spent)
  if (message !== undefined) exceed(entry, message, scope)
}

function exceed({ ref }: TaskEntry, message: string, { defer }: Scope, errorCode = BUDGET_EXCEEDED): void {
  defer(() => ref?.send({ type: 'budget.exceeded', message, errorCode }))
}

function timesOf({ seconds, wrapUpMs = DEFAULT_WRAP_UP_MS }: TaskBudget): TimeBudget {
  return { runMs: seconds === undefined ? undefined : seconds * 1000, wrapUpMs }
}
