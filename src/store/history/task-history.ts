/** The history of a store: ended tasks that a manager no longer keeps. Their results are not owed to any owner. */
import { InvalidInputError } from '../../errors.js'

/** A task of the history. */
export interface PastTask {
  /** Unique among the past tasks of its kind. */
  readonly id: string
  /** `task`: a background task. `command task`: a task of commands on an instance. */
  readonly kind: 'task' | 'command task'
  /** The owner; for a command task the instance. */
  readonly owner: string
  /** The name of its subagent; for a command task its name. */
  readonly name: string
  /** The terminal status. */
  readonly status: string
  /** When it ended, in ms since the epoch. */
  readonly completedAt: number
  /** Whether the record was too large and was shortened. */
  readonly isCut?: boolean
  /** The record of the task. */
  readonly record: Readonly<Record<string, unknown>>
  /** The params that it was launched with; null when they were too large, absent when there were none. */
  readonly params?: Readonly<Record<string, unknown>> | null | undefined
}

/** A place in the history, which is sorted from the latest end to the earliest. */
export interface HistoryPlace {
  /** When the task ended, in ms since the epoch. */
  readonly completedAt: number
  /** Its id. */
  readonly id: string
}

/** A query of the history. */
export interface PastTaskQuery {
  /** The kind of task. */
  readonly kind: PastTask['kind']
  /** The owner; for command tasks the instance. */
  readonly owner?: string | undefined
  /** The name of the subagent; for command tasks the name of the task. */
  readonly name?: string | undefined
  /** The terminal status. */
  readonly status?: string | undefined
  /** A search text. A word of three characters or more matches the beginnings of words, a shorter one matches whole words. All words must match. */
  readonly text?: string | undefined
  /** Only tasks that ended before this place. */
  readonly before?: HistoryPlace | undefined
  /** The maximum number of tasks to return. */
  readonly limit: number
}

/** Keeps past tasks within limits; the earliest are dropped. */
export interface TaskHistory {
  /** Adds tasks, or replaces those of the same kind and id. @throws StoreError */
  add(tasks: readonly PastTask[]): Promise<void>
  /** Returns the task with this id. @throws StoreError */
  find(kind: PastTask['kind'], id: string): Promise<PastTask | undefined>
  /** Returns the latest matching tasks, the latest first. @throws StoreError */
  query(query: PastTaskQuery): Promise<readonly PastTask[]>
}

/** The limits of a history. They are approximate, because sweeps run only now and then. */
export interface RetentionLimits {
  /** The maximum number of tasks; 0 for no history. Default 10000. */
  readonly maxTasks?: number
  /** The maximum age of a task's end, in ms. Default 604800000 (7 days). */
  readonly maxAgeMs?: number
  /** The maximum size of all records, in bytes. Default 268435456 (256 MiB). */
  readonly maxBytes?: number
}

const DEFAULT_LIMITS = { maxTasks: 10_000, maxAgeMs: 7 * 86_400_000, maxBytes: 256 * 1024 * 1024 } as const

/** The number of added tasks between two sweeps, and the maximum number of tasks that one sweep drops. */
export const SWEEP = { every: 100, most: 1000 } as const

/** The limits with their defaults. @throws InvalidInputError */
export function retentionLimits(given: RetentionLimits = {}): Required<RetentionLimits> {
  for (const [name, value] of Object.entries(given) as [string, unknown][]) {
    if (!Object.hasOwn(DEFAULT_LIMITS, name)) {
      throw new InvalidInputError(
        `options.retention.${name}`,
        value,
        `one of ${Object.keys(DEFAULT_LIMITS).join(', ')}`,
      )
    }
    if (typeof value !== 'number' || !(value >= 0)) {
      throw new InvalidInputError(`options.retention.${name}`, value, 'a number >= 0')
    }
  }
  return { ...DEFAULT_LIMITS, ...given }
}

/** The number of earliest tasks to drop. @param earliest the earliest tasks, in order */
export function excessOf(
  earliest: readonly { readonly completedAt: number; readonly bytes: number }[],
  total: { readonly tasks: number; readonly bytes: number },
  { maxTasks, maxAgeMs, maxBytes }: Required<RetentionLimits>,
  now: number,
): number {
  let { tasks, bytes } = total
  const at = earliest.findIndex((task) => {
    if (tasks <= maxTasks && bytes <= maxBytes && task.completedAt >= now - maxAgeMs) return true
    tasks -= 1
    bytes -= task.bytes
    return false
  })
  return at === -1 ? earliest.length : at
}

/** The order of the history. */
export const byEnd = (a: HistoryPlace, b: HistoryPlace): number =>
  b.completedAt - a.completedAt || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0)

export const isBefore = (task: HistoryPlace, place: HistoryPlace | undefined): boolean =>
  place === undefined || byEnd(place, task) < 0
