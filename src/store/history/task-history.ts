/** The history of a store: tasks that have ended, and that no manager keeps any longer. Nothing of it is owed to anybody. */
import { InvalidInputError } from '../../errors.js'

/** A task of the history. */
export interface PastTask {
  /** Unique among the past tasks of its kind. */
  readonly id: string
  /** `task`: a background task. `command task`: a task of commands on an instance. */
  readonly kind: 'task' | 'command task'
  /** To whom it belonged; of a command task the instance. */
  readonly owner: string
  /** The name of its subagent; of a command task its name. */
  readonly name: string
  /** How it ended. */
  readonly status: string
  /** When it ended, in ms since the epoch. */
  readonly completedAt: number
  /** Whether the record was too large, and has only a part. */
  readonly isCut?: boolean
  /** The record of the task. */
  readonly record: Readonly<Record<string, unknown>>
}

/** A place in the history, which is read from the latest end to the earliest. */
export interface HistoryPlace {
  /** When the task ended, in ms since the epoch. */
  readonly completedAt: number
  /** Its id. */
  readonly id: string
}

/** Which past tasks are wanted. */
export interface PastTaskQuery {
  /** Their kind. */
  readonly kind: PastTask['kind']
  /** To whom they belonged; of command tasks the instance. */
  readonly owner?: string | undefined
  /** The name of their subagent; of command tasks their name. */
  readonly name?: string | undefined
  /** How they ended. */
  readonly status?: string | undefined
  /** Each of its words of three characters and more is the beginning of a word of the task; each shorter one is a word of it. */
  readonly text?: string | undefined
  /** Only what ended before this place. */
  readonly before?: HistoryPlace | undefined
  /** The most tasks to return. */
  readonly limit: number
}

/** Keeps past tasks, within limits: the earliest are dropped. */
export interface TaskHistory {
  /** Adds tasks, or replaces those of the same kind and id. @throws StoreError */
  add(tasks: readonly PastTask[]): Promise<void>
  /** The task of an id. @throws StoreError */
  find(kind: PastTask['kind'], id: string): Promise<PastTask | undefined>
  /** The latest of the tasks that match, the latest first. @throws StoreError */
  query(query: PastTaskQuery): Promise<readonly PastTask[]>
}

/** How much of the history is kept. All of it is about: it is swept now and then. */
export interface RetentionLimits {
  /** The most tasks; 0 for no history. Default 10000. */
  readonly maxTasks?: number
  /** How long ago a task may have ended, in ms. Default 604800000 (7 days). */
  readonly maxAgeMs?: number
  /** The most bytes of their records. Default 268435456 (256 MiB). */
  readonly maxBytes?: number
}

const DEFAULT_LIMITS = { maxTasks: 10_000, maxAgeMs: 7 * 86_400_000, maxBytes: 256 * 1024 * 1024 } as const

/** So many tasks are added between two sweeps, and so many are dropped by one at most. */
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

/** How many of the earliest tasks are to go. @param earliest those, the earliest first */
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
