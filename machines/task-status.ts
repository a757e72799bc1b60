/**
 * The statuses of a task, and what each means. The types, the lists, the checks and the schemas of statuses come from this table: a status that is
 * added here is known everywhere, and the compiler names each `switch` that does not handle it.
 */

/** What a status means. */
interface StatusTraits {
  /** `active`: the task may still change. `ended`: it does not. */
  readonly phase: 'active' | 'ended'
  /** Whether its task holds a slot. */
  readonly holdsSlot: boolean
  /** The part of its owner's account that counts its task; `undefined` when only what is owed for it counts. */
  readonly account: 'queued' | 'running' | undefined
  /** In summaries and lists for a person. */
  readonly icon: string
  /** In lists for a model. */
  readonly mark: string
  /** Whether a list of tasks says how many have it even when none has. */
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

/** All statuses, in the order in which lists offer them. */
export const STATUSES = Object.keys(TABLE) as [AsyncTaskStatus, ...AsyncTaskStatus[]]

/** The statuses of tasks that have ended. */
export const TERMINAL_STATUSES = STATUSES.filter(hasEnded)

/** Whether a status is that of an ended task. */
export function hasEnded(status: AsyncTaskStatus): status is TerminalStatus {
  return TABLE[status].phase === 'ended'
}

/** Whether a task with this status holds a slot: its run is under way. */
export const holdsSlot = (status: AsyncTaskStatus): boolean => TABLE[status].holdsSlot

/** Whether a run of an active task starts with this change, or is over and the task waits. */
export const isOtherRun = (from: AsyncTaskStatus | null, to: AsyncTaskStatus): boolean =>
  !hasEnded(to) && (from !== null && holdsSlot(from)) !== holdsSlot(to)

/** A status in summaries and lists for a person, such as `[DONE]`. */
export const iconOf = (status: AsyncTaskStatus): string => TABLE[status].icon

/** A status in lists for a model, such as `[OK]`. */
export const markOf = (status: AsyncTaskStatus): string => TABLE[status].mark

/** How many tasks have each status, of those statuses that a list counts. */
export function countsOf(statuses: Iterable<AsyncTaskStatus>): [AsyncTaskStatus, number][] {
  const counts = new Map(STATUSES.map((status) => [status, 0]))
  for (const status of statuses) counts.set(status, (counts.get(status) ?? 0) + 1)
  return [...counts].filter(([status, count]) => count > 0 || TABLE[status].isAlwaysCounted)
}

/** The part of its owner's account that counts a task with this status. */
export const accountOf = (status: ActiveStatus): 'queued' | 'running' => TABLE[status].account
