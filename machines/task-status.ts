/**
 * The statuses of a task. All types, lists, checks and schemas of statuses come from this table. A status added here is known everywhere, and the
 * compiler reports each `switch` that does not handle it.
 */

interface StatusTraits {
  /** `active`: the task may still change. `ended`: it will not. */
  readonly phase: 'active' | 'ended'
  /** Whether the task holds a slot. */
  readonly holdsSlot: boolean
  /** The part of the owner's account that counts the task; `undefined` if only its owed result counts. */
  readonly account: 'queued' | 'running' | undefined
  /** For summaries and lists for people. */
  readonly icon: string
  /** For lists for a model. */
  readonly mark: string
  /** Whether lists show the count even if it is zero. */
  readonly isAlwaysCounted: boolean
}

const TABLE = {
  queued: { phase: 'active', holdsSlot: false, account: 'queued', icon: '[QUEUED]', mark: '', isAlwaysCounted: false },
  running: { phase: 'active', holdsSlot: true, account: 'running', icon: '[RUNNING]', mark: '', isAlwaysCounted: true },
  completed: {
    phase: 'ended',
    holdsSlot: false,
    account: undefined,
    icon: '[DONE]',
    mark: '[OK]',
    isAlwaysCounted: true,
  },
  failed: {
    phase: 'ended',
    holdsSlot: false,
    account: undefined,
    icon: '[FAILED]',
    mark: '[ERROR]',
    isAlwaysCounted: true,
  },
  cancelled: {
    phase: 'ended',
    holdsSlot: false,
    account: undefined,
    icon: '[CANCELLED]',
    mark: '',
    isAlwaysCounted: true,
  },
} as const satisfies Record<string, StatusTraits>

type StatusIn<Phase extends StatusTraits['phase']> = {
  [S in keyof typeof TABLE]: (typeof TABLE)[S]['phase'] extends Phase ? S : never
}[keyof typeof TABLE]

/**
 * The status of a task.
 * @useDeclaredType
 */
export type AsyncTaskStatus = keyof typeof TABLE

/** The status of a task that has not ended. */
export type ActiveStatus = StatusIn<'active'>

/**
 * The status of a task that has ended.
 * @useDeclaredType
 */
export type TerminalStatus = StatusIn<'ended'>

/** All statuses, in the order of lists. */
export const STATUSES = Object.keys(TABLE) as [AsyncTaskStatus, ...AsyncTaskStatus[]]

/** The statuses of tasks that have ended. */
export const TERMINAL_STATUSES = STATUSES.filter(hasEnded)

/** Whether a status is that of an ended task. */
export function hasEnded(status: AsyncTaskStatus): status is TerminalStatus {
  return TABLE[status].phase === 'ended'
}

/** Whether a task with this status holds a slot, that is, its run is under way. */
export const holdsSlot = (status: AsyncTaskStatus): boolean => TABLE[status].holdsSlot

/** Whether a run starts with this change, or has ended and the task waits. */
export const isOtherRun = (from: AsyncTaskStatus | null, to: AsyncTaskStatus): boolean =>
  !hasEnded(to) && (from !== null && holdsSlot(from)) !== holdsSlot(to)

/** The status for people, such as `[DONE]`. */
export const iconOf = (status: AsyncTaskStatus): string => TABLE[status].icon

/** The status for a model, such as `[OK]`. */
export const markOf = (status: AsyncTaskStatus): string => TABLE[status].mark

/** The number of tasks with each status that a list counts. */
export function countsOf(statuses: Iterable<AsyncTaskStatus>): [AsyncTaskStatus, number][] {
  const counts = new Map(STATUSES.map((status) => [status, 0]))
  for (const status of statuses) counts.set(status, (counts.get(status) ?? 0) + 1)
  return [...counts].filter(([status, count]) => count > 0 || TABLE[status].isAlwaysCounted)
}

/** The part of the owner's account that counts a task with this status. */
export const accountOf = (status: ActiveStatus): 'queued' | 'running' => TABLE[status].account
