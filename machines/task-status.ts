/**
 * The statuses of a task. All types, lists, checks and schemas of statuses come from this table, and what is said about an ended task from its outcome.
 * So a new status is added only here. The compiler asks for its final state (async-task.ts) and its look on the page.
 */

/** How a task has ended: its run reached its goal, it did not, or the task was stopped on purpose. */
export type TaskOutcome = 'succeeded' | 'failed' | 'stopped'

interface StatusTraits {
  /** Whether the task may still change (`active`) or has ended for good (`ended`). */
  readonly phase: 'active' | 'ended'
  /** Whether a task with this status holds a slot. */
  readonly holdsSlot: boolean
  /** How a task with this status has ended. Undefined for active tasks. */
  readonly outcome: TaskOutcome | undefined
  /** The part of the owner's account that counts such tasks. Undefined for ended tasks: only their owed results are counted. */
  readonly account: 'queued' | 'running' | undefined
  /** The mark in summaries and lists for people, such as `[DONE]`. */
  readonly icon: string
  /** The mark in lists for a model, such as `[OK]`. */
  readonly mark: string
  /** Whether lists show the number of such tasks even if it is zero. */
  readonly isAlwaysCounted: boolean
}

const TABLE = {
  queued: {
    phase: 'active',
    holdsSlot: false,
    outcome: undefined,
    account: 'queued',
    icon: '[QUEUED]',
    mark: '',
    isAlwaysCounted: false,
  },
  running: {
    phase: 'active',
    holdsSlot: true,
    outcome: undefined,
    account: 'running',
    icon: '[RUNNING]',
    mark: '',
    isAlwaysCounted: true,
  },
  completed: {
    phase: 'ended',
    holdsSlot: false,
    outcome: 'succeeded',
    account: undefined,
    icon: '[DONE]',
    mark: '[OK]',
    isAlwaysCounted: true,
  },
  failed: {
    phase: 'ended',
    holdsSlot: false,
    outcome: 'failed',
    account: undefined,
    icon: '[FAILED]',
    mark: '[ERROR]',
    isAlwaysCounted: true,
  },
  cancelled: {
    phase: 'ended',
    holdsSlot: false,
    outcome: 'stopped',
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
 * The status of a task: `queued` waits to start (for a slot, a limit, other tasks, the end of a pause, or its next run), `running` has a run,
 * and the others are final.
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

/** The statuses of tasks that have ended in this way. */
export type StatusOf<Outcome extends TaskOutcome> = {
  [S in TerminalStatus]: (typeof TABLE)[S]['outcome'] extends Outcome ? S : never
}[TerminalStatus]

/** All statuses, in the order of lists. */
export const STATUSES = Object.keys(TABLE) as [AsyncTaskStatus, ...AsyncTaskStatus[]]

/** The statuses of tasks that have ended. */
export const TERMINAL_STATUSES = STATUSES.filter(hasEnded)

/** Whether a status is that of an ended task. */
export function hasEnded(status: AsyncTaskStatus): status is TerminalStatus {
  return TABLE[status].phase === 'ended'
}

/** Whether a task with this status holds a slot, because its run is under way. */
export const holdsSlot = (status: AsyncTaskStatus): boolean => TABLE[status].holdsSlot

/** Whether a task with this status waits to start. */
export const isWaiting = (status: AsyncTaskStatus): boolean => !hasEnded(status) && !holdsSlot(status)

/** How a task with this status has ended; undefined for an active one. */
export const outcomeOf = <S extends AsyncTaskStatus>(status: S): (typeof TABLE)[S]['outcome'] => TABLE[status].outcome

/** Whether a task has ended in this way. The compiler then knows the fields of its record. */
export const endedAs = <Task extends { readonly status: AsyncTaskStatus } | undefined, Outcome extends TaskOutcome>(
  task: Task,
  outcome: Outcome,
): task is Extract<Task, { readonly status: StatusOf<Outcome> }> =>
  task !== undefined && outcomeOf(task.status) === outcome

/** Whether a task with this status has reached its goal. */
export const hasSucceeded = (status: AsyncTaskStatus): boolean => outcomeOf(status) === 'succeeded'

/**
 * Whether a task with this status was stopped on purpose, by its owner or by the host. Its run must be aborted, and its owner gets a message only with
 * `notifyCancelled`.
 */
export const wasStopped = (status: AsyncTaskStatus): boolean => outcomeOf(status) === 'stopped'

/** Whether this change of status begins a run, or ends a run so that the task waits for another one. */
export const startsOrEndsRun = (from: AsyncTaskStatus | null, to: AsyncTaskStatus): boolean =>
  !hasEnded(to) && (from !== null && holdsSlot(from)) !== holdsSlot(to)

/** The status for people, such as `[DONE]`. */
export const iconOf = (status: AsyncTaskStatus): string => TABLE[status].icon

/** The status for a model, such as `[OK]`. */
export const markOf = (status: AsyncTaskStatus): string => TABLE[status].mark

/** Counts the tasks with each status. Leaves out statuses without tasks, except those with `isAlwaysCounted`. */
export function countsOf(statuses: Iterable<AsyncTaskStatus>): [AsyncTaskStatus, number][] {
  const counts = new Map(STATUSES.map((status) => [status, 0]))
  for (const status of statuses) counts.set(status, (counts.get(status) ?? 0) + 1)
  return [...counts].filter(([status, count]) => count > 0 || TABLE[status].isAlwaysCounted)
}

/** The part of the owner's account that counts a task with this status. */
export const accountOf = (status: ActiveStatus): 'queued' | 'running' => TABLE[status].account
