/** How often the runs of a durable task may be interrupted: as often as they get on, and a few times when they do not. */
import type { StoredJson, StoredTask } from '../../store/store.js'
import { storedQuestions } from '../recovery/stored-questions.js'
import type { StepLog } from './step-log.js'

/** A task that was interrupted as many times, one after the other, without having saved anything new is not run again. */
export const MAX_FRUITLESS = 5

/** The interruption of a run, as the next process finds it. */
export interface Interruption {
  /** How far its steps had come. */
  readonly progress: number
  /** How many interruptions in a row were without progress. */
  readonly fruitless: number
  /** Whether it only waited: it is queued until something has come. */
  readonly isWaiting: boolean
}

/**
 * The interruption of a run that is found in the store. A run with open waits may have gone on after another one of its steps had ended (`Promise.race`):
 * it starts again, and is taken to wait when it has come no further as often as would fail it otherwise.
 */
export function interruptionOf(task: StoredTask, log: StepLog | undefined): Interruption {
  const before = readInterruption(task.run)
  const progress = log?.progress ?? 0
  const fruitless = progress > before.progress ? 0 : before.fruitless + 1
  const isWaiting = log !== undefined && isWaitingFor(task, log) && (log.endsOpen || fruitless >= MAX_FRUITLESS)
  return { progress, fruitless: isWaiting ? 0 : fruitless, isWaiting }
}

/** Whether nothing has come of what a task waits for since it was queued for that. */
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
