/**
 * Tasks that run after other tasks (promise F15). Such a task waits in the queue without a slot until all tasks in its `after` have ended.
 *
 * - It starts only when all of them have ended and their results are stored in its row.
 * - With `onFailed: 'fail'` it fails as soon as one of them fails or is cancelled. With `run` it starts whatever their outcome.
 * - The end of a task and its effect on waiting tasks are one write.
 * - The record of a task is kept while a waiting task names it in `after`.
 *
 * While no task waits, each end of a task costs one look-up in an empty map.
 */
import { TaskData } from '../../../machines/task-data.js'
import type { WaitEvent } from '../../../machines/registry-events.js'
import { isTerminal, type TaskEntry } from '../../../machines/task-entry.js'
import type { DependencyResult, RunInput } from '../../engine/runner.js'
import type { OnFailedDependency } from '../../protocol/async-tasks.js'
import type { Feature, NameOf, WaitReason } from '../../async-tasks/feature.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import { dependencyFailure, LOST_RESULT, resultChars, toDependencyResult } from './dependency-result.js'
import { namedTasks, type NamingLaunch } from './named-tasks.js'
import { failedOf, pendingIds, toStoredWait, type DependencyResults } from './stored-wait.js'
import { isWaiting } from '../../../machines/task-status.js'

export interface Wait extends DependencyResults {
  /** Those of the tasks in `after` whose records are kept, by id. */
  readonly entries: ReadonlyMap<string, TaskEntry>
}

const MAX_NAMED = 3

type Apply = (event: WaitEvent) => void

/** The results of the tasks in `after`, until the task itself ends. */
const dependencyResults = new TaskData<DependencyResults>()

export function resultsFor(entry: TaskEntry): RunInput['results'] {
  const results = dependencyResults.get(entry)?.results
  if (results === undefined) return undefined
  const ended = [...results].filter((pair): pair is [string, DependencyResult] => pair[1] !== undefined)
  return Object.freeze(Object.fromEntries(ended))
}

export const isHeldBack = (wait: DependencyResults): boolean =>
  pendingIds(wait).length > 0 || failedOf(wait) !== undefined

export class Dependencies implements Feature {
  readonly #registry: TaskRegistry
  readonly #waits = new Map<TaskEntry, Wait>()
  readonly #waiting = new Map<TaskEntry, Set<TaskEntry>>()
  /** The ids of the tasks that restored tasks will wait for. */
  #expected: ReadonlySet<string> = new Set()

  constructor(registry: TaskRegistry) {
    this.#registry = registry
  }

  /**
   * Returns what a new task waits for.
   * @throws INVALID_INPUT for a task that it cannot wait for
   */
  plan(after: readonly string[], onFailed: OnFailedDependency, launch: NamingLaunch): Wait {
    const entries = namedTasks(this.#registry, after, launch)
    const maxChars = resultChars(entries.size)
    const results = new Map(Array.from(entries, ([id, { record }]) => [id, endOf(record, maxChars)]))
    return { onFailed, entries, results }
  }

  /** Begins the wait of a queued task. If all tasks in its `after` have ended well, it needs only a slot. */
  begin(entry: TaskEntry, wait: Wait): void {
    if (entry.ref === undefined) return
    dependencyResults.set(entry, wait)
    if (!isWaiting(entry.record.status) || !isHeldBack(wait)) return
    this.#waits.set(entry, wait)
    for (const task of wait.entries.values()) {
      const waiting = this.#waiting.get(task)
      if (waiting === undefined) this.#waiting.set(task, new Set([entry]))
      else waiting.add(entry)
      this.#registry.history.keep(task)
    }
    // Some tasks may have ended since `plan`.
    const maxChars = resultChars(wait.results.size)
    for (const id of pendingIds(wait)) {
      const record = wait.entries.get(id)?.record
      wait.results.set(id, record === undefined ? LOST_RESULT : endOf(record, maxChars))
    }
    const ids = pendingIds(wait)
    const isAsLaunched = ids.length > 0 && ids.join('\n') === entry.record.waitsFor?.join('\n')
    if (!isAsLaunched || failedOf(wait) !== undefined) this.#note(entry, wait, (event) => this.#registry.send(event))
  }

  /** Restores the results that a task of an earlier process has received. Its wait continues when all tasks are restored. */
  restore(entry: TaskEntry, results: DependencyResults): void {
    dependencyResults.set(entry, results)
  }

  /** Restores tasks in one change. Until the tasks that `restore` returns wait, the records with these ids are kept for them. */
  restoring(ids: ReadonlySet<string>, restore: () => readonly TaskEntry[]): void {
    const { history } = this.#registry
    this.#expected = ids
    for (const entry of restore()) {
      const wait = dependencyResults.get(entry)
      const named = [...(wait?.results.keys() ?? [])].flatMap((id) => history.get(id) ?? [])
      if (wait !== undefined) {
        this.begin(entry, { ...wait, entries: new Map(named.map((task) => [task.record.id, task])) })
      }
    }
    this.#expected = new Set()
    this.#offer([...ids].flatMap((id) => this.#registry.history.get(id) ?? []))
  }

  keeps(entry: TaskEntry): boolean {
    return this.#waiting.has(entry) || this.#expected.has(entry.record.id)
  }

  ending(task: TaskEntry, apply: Apply): void {
    const waiting = this.#waiting.get(task)
    if (waiting === undefined) return
    for (const entry of waiting) {
      const wait = this.#waits.get(entry)
      if (wait === undefined || entry.ref === undefined) continue
      wait.results.set(task.record.id, endOf(task.record, resultChars(wait.results.size)))
      this.#note(entry, wait, apply)
    }
  }

  waitReason({ record: { waitsFor } }: TaskEntry, nameOf: NameOf): WaitReason | undefined {
    if (waitsFor === undefined) return undefined
    const names = waitsFor.slice(0, MAX_NAMED).map((id) => nameOf({ id }))
    const more = waitsFor.length - names.length
    return { kind: 'dependency', text: `waits for ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}` }
  }

  start(entry: TaskEntry): void {
    this.#leave(entry)
  }

  ended(entry: TaskEntry): void {
    this.#leave(entry)
    dependencyResults.take(entry)
  }

  /** Handles the result of a task in `after`: the waiting task fails, continues to wait, or needs only a slot. */
  #note(entry: TaskEntry, wait: Wait, apply: Apply): void {
    const { persistence } = this.#registry
    const ids = pendingIds(wait)
    persistence?.setRun(entry, { after: toStoredWait(wait) })
    const failed = failedOf(wait)
    if (failed !== undefined) {
      const [id, result] = failed
      apply({ type: 'task.unmet', entry, failure: dependencyFailure(id, result, wait.entries.get(id)?.record) })
      return
    }
    // The task now waits only for a slot, so the time limit of that wait begins.
    if (ids.length === 0) persistence?.setDelay(entry, 0)
    apply({ type: 'task.waits', entry, ids })
  }

  /** Ends the wait of a task. The records that it was waiting for may then be pruned. */
  #leave(entry: TaskEntry): void {
    const wait = this.#waits.get(entry)
    if (wait === undefined) return
    this.#waits.delete(entry)
    for (const task of wait.entries.values()) {
      const waiting = this.#waiting.get(task)
      waiting?.delete(entry)
      if (waiting?.size === 0) this.#waiting.delete(task)
    }
    this.#offer([...wait.entries.values()])
  }

  /** Lets the history prune these records, unless a task still waits for them. */
  #offer(tasks: readonly TaskEntry[]): void {
    const { history } = this.#registry
    for (const task of tasks) if (!this.keeps(task)) history.offer(task)
    if (history.hasExcess()) this.#registry.send({ type: 'history.prune' })
  }
}

export const dependencies = (registry: TaskRegistry): Dependencies => new Dependencies(registry)

const endOf = (record: TaskEntry['record'], maxChars: number): DependencyResult | undefined =>
  isTerminal(record) ? toDependencyResult(record, maxChars) : undefined
