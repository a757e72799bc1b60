/** Limits how often the runs of a durable task may be interrupted: without limit while they make progress, and a few times otherwise. */
import type { StoredJson, StoredTask } from '../../store/store.js'
import { storedQuestions } from '../recovery/stored-questions.js'
import type { StepLog } from './step-log.js'

/** The maximum of interruptions in a row without progress. After that the task fails. */
export const MAX_FRUITLESS = 5

/** The interruption of a run, as the next process finds it. */
export interface Interruption {
  readonly progress: number
  /** The number of interruptions in a row without progress. */
  readonly fruitless: number
  /** Whether the run only waited, so that the task is queued until the wait is over. */
  readonly isWaiting: boolean
}

/**
 * Returns the interruption of a run that is found in the store. A run with open waits may have continued after another step (`Promise.race`), so it
 * starts again. It counts as waiting when it has made no progress as often as would otherwise fail it.
 */
export function interruptionOf(task: StoredTask, log: StepLog | undefined): Interruption {
  const before = readInterruption(task.run)
  const progress = log?.progress ?? 0
  const fruitless = progress > before.progress ? 0 : before.fruitless + 1
  const isWaiting = log !== undefined && isWaitingFor(task, log) && (log.endsOpen || fruitless >= MAX_FRUITLESS)
  return { progress, fruitless: isWaiting ? 0 : fruitless, isWaiting }
}

/** Whether the wait for which a task was queued is still open. */
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
