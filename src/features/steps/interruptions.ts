/** Limits how often the runs of a durable task may be interrupted: without limit while they make progress, otherwise 5 times in a row. */
import type { FoundRow } from '../../async-tasks/recovery/stored-run.js'
import { storedQuestions } from '../../async-tasks/recovery/stored-questions.js'
import type { StepLog } from './step-log.js'

/** After this many interrupted runs in a row without progress, the task fails. */
export const MAX_FRUITLESS = 5

/** Whether the task with this id had ended, or is not in the store. */
export type HasEnded = (taskId: string) => boolean

/** An interrupted run, as the next process finds it in the store. */
export interface Interruption {
  readonly progress: number
  /** How many runs in a row were interrupted without progress. */
  readonly fruitless: number
  /** Whether the run was only waiting. The task is then queued until the wait is over. */
  readonly isWaiting: boolean
}

const NO_INTERRUPTION = { progress: 0, fruitless: 0 } as const

/**
 * Finds out how the last run of a task was interrupted. If a step has ended after the waits began, the run may have continued (`Promise.race`), so it
 * counts as working and the task is run again. But if that has brought no progress `MAX_FRUITLESS` times, the run counts as waiting.
 */
export function interruptionOf(task: FoundRow, log: StepLog | undefined, hasEnded: HasEnded): Interruption {
  const before = task.run.interruption ?? NO_INTERRUPTION
  const progress = log?.progress ?? 0
  const hasBegun = task.run.hasNotBegun !== true
  const fruitless = progress > before.progress ? 0 : before.fruitless + Number(hasBegun)
  const isWaiting =
    log !== undefined && isWaitingFor(task, log, hasEnded) && (log.endsOpen || fruitless >= MAX_FRUITLESS)
  return { progress, fruitless: isWaiting ? 0 : fruitless, isWaiting }
}

/** Whether the task was queued for a wait that is still open. */
export function isStillWaiting(task: FoundRow, log: StepLog | undefined, hasEnded: HasEnded): boolean {
  const { isWaiting, interruption = NO_INTERRUPTION } = task.run
  if (isWaiting !== true || log === undefined) return false
  return isWaitingFor(task, log, hasEnded) && log.progress <= interruption.progress
}

const isWaitingFor = (task: FoundRow, log: StepLog, hasEnded: HasEnded): boolean =>
  log.waits(storedQuestions(task, log), hasEnded).length > 0
