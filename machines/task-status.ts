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
}

const TABLE = {
  queued: { phase: 'active', holdsSlot: false, account: 'queued' },
  running: { phase: 'active', holdsSlot: true, account: 'running' },
  completed: { phase: 'ended', holdsSlot: false, account: undefined },
  failed: { phase: 'ended', holdsSlot: false, account: undefined },
  cancelled: { phase: 'ended', holdsSlot: false, account: undefined },
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

/** Whether a task with this status holds a slot. */
export const holdsSlot = (status: AsyncTaskStatus): boolean => TABLE[status].holdsSlot

/** The part of its owner's account that counts a task with this status. */
export const accountOf = (status: ActiveStatus): 'queued' | 'running' => TABLE[status].account
