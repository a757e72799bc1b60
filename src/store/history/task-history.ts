/** The history of a store: ended tasks that no manager holds in memory any more. Their results have been delivered. */
import { InvalidInputError } from '../../errors.js'

/** A task in the history. */
export interface PastTask {
  /** The id of the task. It is unique among the past tasks of the same kind. */
  readonly id: string
  /** `task`: a background task. `command task`: a task of commands on an instance. */
  readonly kind: 'task' | 'command task'
  /** The owner of the task. For a command task, its instance. */
  readonly owner: string
  /** The name of the subagent. For a command task, the name of the task. */
  readonly name: string
  /** The terminal status. */
  readonly status: string
  /** When the task ended, in ms since the epoch. */
  readonly completedAt: number
  /** Whether the record was shortened, because it was too large. */
  readonly isCut?: boolean
  /** The record of the task. */
  readonly record: Readonly<Record<string, unknown>>
  /** The params of the launch. Null when they were too large to keep, absent when there were none. */
  readonly params?: Readonly<Record<string, unknown>> | null | undefined
}

/** A position in the history, which is sorted from the latest end to the earliest. */
export interface HistoryPlace {
  /** When the task ended, in ms since the epoch. */
  readonly completedAt: number
  readonly id: string
}

/** A query of the history. */
export interface PastTaskQuery {
  /** The kind of task. */
  readonly kind: PastTask['kind']
  /** The owner. For command tasks, the instance. */
  readonly owner?: string | undefined
  /** The name of the subagent. For command tasks, the name of the task. */
  readonly name?: string | undefined
  /** The terminal status. */
  readonly status?: string | undefined
  /** A search text. A task must have all of its words. A word of three characters or more also finds longer words that begin with it. */
  readonly text?: string | undefined
  /** Only tasks that ended before this position. */
  readonly before?: HistoryPlace | undefined
  /** The maximum number of tasks to return. */
  readonly limit: number
}

/** Keeps past tasks within limits. Beyond a limit, the earliest tasks are dropped. */
export interface TaskHistory {
  /**
   * Adds tasks. A task replaces one of the same kind and id.
   * @throws StoreError when the tasks cannot be stored
   */
  add(tasks: readonly PastTask[]): Promise<void>
  /**
   * Returns the task with this id; undefined when there is none.
   * @throws StoreError when the history cannot be read
   */
  find(kind: PastTask['kind'], id: string): Promise<PastTask | undefined>
  /**
   * Returns the matching tasks, the latest end first.
   * @throws StoreError when the history cannot be read
   */
  query(query: PastTaskQuery): Promise<readonly PastTask[]>
}

/** The limits of a history. A history may exceed them for a while, because it drops tasks only after every 100 added ones. */
export interface RetentionLimits {
  /** The maximum number of tasks; 0 keeps no history. Default 10000. */
  readonly maxTasks?: number
  /** How long a task is kept after its end, in ms. Default 604800000 (7 days). */
  readonly maxAgeMs?: number
  /** The maximum size of all records, in bytes. Default 268435456 (256 MiB). */
  readonly maxBytes?: number
}

const DEFAULT_LIMITS = { maxTasks: 10_000, maxAgeMs: 7 * 86_400_000, maxBytes: 256 * 1024 * 1024 } as const

/** A sweep drops the tasks beyond the limits. `every`: it runs after this many added tasks. `most`: it drops this many in one step. */
export const SWEEP = { every: 100, most: 1000 } as const

/**
 * Returns the limits with their defaults.
 * @throws INVALID_INPUT for an unknown limit, or one that is not a number >= 0
 */
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

/**
 * Returns how many of the earliest tasks to drop.
 * @param earliest the earliest tasks, in order
 */
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

/** Compares two positions: the latest end comes first. */
export const byEnd = (a: HistoryPlace, b: HistoryPlace): number =>
  b.completedAt - a.completedAt || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0)

export const isBefore = (task: HistoryPlace, place: HistoryPlace | undefined): boolean =>
  place === undefined || byEnd(place, task) < 0
