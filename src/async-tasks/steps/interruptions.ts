/** Limits how often the runs of a durable task may be interrupted: without limit while they make progress, otherwise 5 times in a row. */
import type { StoredJson, StoredTask } from '../../store/store.js'
import { storedQuestions } from '../recovery/stored-questions.js'
import type { StepLog } from './step-log.js'

/** After this many interrupted runs in a row without progress, the task fails. */
export const MAX_FRUITLESS = 5

/** An interrupted run, as the next process finds it in the store. */
export interface Interruption {
  readonly progress: number
  /** How many runs in a row were interrupted without progress. */
  readonly fruitless: number
  /** Whether the run was only waiting. The task is then queued until the wait is over. */
  readonly isWaiting: boolean
}

/**
 * Finds out how the last run of a task was interrupted. If a step has ended after the waits began, the run may have continued (`Promise.race`), so it
 * counts as working and the task is run again. But if that has brought no progress `MAX_FRUITLESS` times, the run counts as waiting.
 */
export function interruptionOf(task: StoredTask, log: StepLog | undefined): Interruption {
  const before = readInterruption(task.run)
  const progress = log?.progress ?? 0
  const fruitless = progress > before.progress ? 0 : before.fruitless + 1
  const isWaiting = log !== undefined && isWaitingFor(task, log) && (log.endsOpen || fruitless >= MAX_FRUITLESS)
  return { progress, fruitless: isWaiting ? 0 : fruitless, isWaiting }
}

/** Whether the task was queued for a wait that is still open. */
export function isStillWaiting(task: StoredTask, log: StepLog | undefined): boolean {
  if (task.run?.['isWaiting'] !== true || log === undefined) return false
  return isWaitingFor(task, log) && log.progress <= readInterruption(task.run).progress
}

const isWaitingFor = (task: StoredTask, log: StepLog): boolean => log.waits(storedQuestions(task, log)).length > 0

function readInterruption({ interruption }: StoredJson = {}): Omit<Interruption, 'isWaiting'> {
  const { progress, fruitless }: StoredJson =
    typeof interruption === 'object' && interruption !== null ? { ...interruption } : {}
  return { progress: countOf(progress), fruitless: countOf(fruitless) }
}

const countOf = (value: unknown): number => (typeof value === 'number' ? value : 0)
