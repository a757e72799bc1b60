/** The history of a manager's store: ended tasks whose records were pruned. `page` merges them with the tasks that are still kept. */
import type { AsyncTaskInfo, SettledTaskInfo } from '../../../machines/records.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { hasEnded } from '../../../machines/task-status.js'
import { PastTasks, readTaskQuery, type HistoryPage, type TaskHistoryQuery } from '../../store/history/past-tasks.js'
import type { PastTask } from '../../store/history/task-history.js'
import type { Feature } from '../../async-tasks/feature.js'
import type { PastIdCheck } from './past-id-check.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { pastParams, pastRecord } from '../../async-tasks/recovery/stored-records.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'

export class AsyncTaskHistory implements Feature {
  readonly #registry: TaskRegistry
  readonly #past: PastTasks

  constructor(registry: TaskRegistry) {
    this.#registry = registry
    this.#past = registry.persistence?.past ?? new PastTasks()
  }

  /** Moves a pruned task to the history. Its row in the store is removed only after that, so that a crash cannot lose the task. */
  pruned(entry: TaskEntry): void {
    const { persistence } = this.#registry
    if (persistence === undefined) return
    const { id, status } = entry.record
    if (this.#past.areKept && hasEnded(status) && !persistence.isWithdrawn(entry)) {
      // The callback below must not refer to `entry`: it may live long, and V8 would keep the entry in memory with it.
      const record = pastRecord(entry.record)
      const params = pastParams(record, persistence.runOf(entry).params)
      const past = { ...toPastTask(entry.record, record), ...omitUndefined({ params }) }
      this.#past.add(past, () => persistence.forget(id))
    } else persistence.forget(id)
  }

  /** Starts to check whether a task in the history has this id. Returns undefined without a history. */
  check(id: string): PastIdCheck | undefined {
    if (!this.#past.areKept) return undefined
    const found: { isInUse: boolean | undefined; settled: Promise<void> } = {
      isInUse: undefined,
      settled: Promise.resolve(),
    }
    found.settled = this.#past.find('task', id).then(
      (task) => void (found.isInUse = task !== undefined),
      (error: unknown) => {
        // A history that cannot be read must not block new tasks.
        found.isInUse = false
        this.#registry.report(error, { source: 'store' })
      },
    )
    return found
  }

  /**
   * Returns a task of the history and the params of its launch.
   * @throws StoreError if the history cannot be read
   */
  async findWithParams(
    id: string,
  ): Promise<(Pick<PastTask, 'params'> & { readonly record: SettledTaskInfo }) | undefined> {
    const task = await this.#past.find('task', id)
    return task && { record: toRecord(task), params: task.params }
  }

  /**
   * Returns a task of the history. Returns undefined if there is none, or if the task belongs to another owner.
   * @throws StoreError if the history cannot be read
   */
  async find(id: string, owner?: string): Promise<SettledTaskInfo | undefined> {
    const task = await this.#past.find('task', id)
    return task === undefined || (owner !== undefined && task.owner !== owner) ? undefined : toRecord(task)
  }

  /**
   * @throws StoreError if the history cannot be read
   * @throws INVALID_INPUT for an invalid query
   */
  async page(query: TaskHistoryQuery): Promise<HistoryPage<SettledTaskInfo>> {
    const wanted = readTaskQuery(query)
    const kept = Array.from(this.#registry.history.entries(), ({ record }) => record)
    const ended = kept.filter(({ status }) => hasEnded(status)).map((record) => toPastTask(record, { ...record }))
    const { tasks, ...page } = await this.#past.page(ended, wanted)
    return { ...page, tasks: tasks.map(toRecord) }
  }
}

export const taskHistory = (registry: TaskRegistry): AsyncTaskHistory => new AsyncTaskHistory(registry)

function toPastTask(task: AsyncTaskInfo, record: PastTask['record']): PastTask {
  const { id, owner, subagentName, status, completedAt = 0 } = task
  return { id, kind: 'task', owner, name: subagentName, status, completedAt, record }
}

const toRecord = ({ record }: PastTask): SettledTaskInfo => Object.freeze(record) as unknown as SettledTaskInfo
