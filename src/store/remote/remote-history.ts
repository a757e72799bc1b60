/** The history of a session on a server. */
import type { Clock } from '../../system/clock.js'
import { toHistoryRow, toPastTask } from '../history/history-rows.js'
import { excessOf, SWEEP, type RetentionLimits, type TaskHistory } from '../history/task-history.js'
import { keyOf } from './rows.js'
import type { StoreDatabase } from './store-database.js'

export interface HistoryOptions {
  readonly database: StoreDatabase
  readonly session: string
  readonly clock: Clock
  /** The name of the store in errors. */
  readonly name: string
  readonly limits: Required<RetentionLimits>
}

export function remoteHistory({ database, session, clock, name, limits }: HistoryOptions): TaskHistory {
  const { history } = database
  // The first added task starts a sweep, because a process may end before it has added enough tasks for one.
  let sinceSweep: number = SWEEP.every
  const attempt = async <Result>(result: Promise<Result>): Promise<Result> => {
    try {
      return await result
    } catch (error) {
      throw database.toStoreError(name, error)
    }
  }
  const sweep = async (): Promise<void> => {
    sinceSweep = 0
    while ((await removeExcess()) === SWEEP.most);
  }
  /** Removes the earliest tasks beyond the limits, as many as one step allows. Returns how many it has removed. */
  const removeExcess = async (): Promise<number> => {
    const earliest = await attempt(history.earliest(session, SWEEP.most))
    const [first] = earliest
    if (first === undefined) return 0
    const excess = excessOf(earliest, { tasks: first.tasks, bytes: first.total }, limits, clock.now())
    if (excess > 0) await attempt(history.remove(session, earliest.slice(0, excess)))
    return excess
  }
  return {
    add: async (tasks) => {
      // One insert may contain an id only once, so only the last task of each id is added.
      const last = new Map(tasks.map((task) => [`${task.kind} ${task.id}`, task]))
      const rows = Array.from(last.values(), (task) => toHistoryRow(task, keyOf(task.id)))
      await attempt(history.add(session, rows))
      sinceSweep += last.size
      if (sinceSweep >= SWEEP.every) await sweep()
    },
    find: async (kind, id) => {
      const row = await attempt(history.find(session, { kind, id: keyOf(id) }))
      return row && toPastTask(row, name)
    },
    query: async (query) => {
      const rows = await attempt(history.query(session, query, clock.now() - limits.maxAgeMs))
      return rows.map((row) => toPastTask(row, name))
    },
  }
}
