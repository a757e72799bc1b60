/** How often the runs of a durable task may be interrupted: as often as they get on, and a few times when they do not. */
import type { StoredJson, StoredTask } from '../../store/store.js'
import type { StepLog } from './step-log.js'

/** A task that was interrupted as many times, one after the other, without having saved anything new is not run again. */
export const MAX_FRUITLESS = 5

/** What is stored of it with the task. */
export interface Interruption {
  /** How far its steps had come. */
  readonly progress: number
  /** How many interruptions in a row were without progress. */
  readonly fruitless: number
}

/** The interruption of a run that is found in the store. */
export function interruptionOf({ run = {} }: Pick<StoredTask, 'run'>, log: StepLog | undefined): Interruption {
  const { progress: before = 0, fruitless = 0 } = readInterruption(run)
  const progress = log?.progress ?? 0
  return { progress, fruitless: progress > before ? 0 : fruitless + 1 }
}

function readInterruption({ interruption }: StoredJson): Partial<Interruption> {
  return typeof interruption === 'object' && interruption !== null ? interruption : {}
}
