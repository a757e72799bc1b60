/** The files of one run, such as those of a program that survives its host. */
import { TaskData } from '../../../machines/task-data.js'
import { endSurvivor } from '../../engine/program-folder.js'
import type { Outcome } from '../../engine/engine.js'
import type { StartedProgram } from '../../engine/reap.js'
import { nodeBuiltin } from '../../system/node-builtins.js'
import type { Feature } from '../../async-tasks/feature.js'

export interface RunName {
  readonly id: string
  readonly launchedAt: number
  /** The number of the run of the task, from 1. Default 1. */
  readonly attempt?: number
}

export function folderName({ id, launchedAt, attempt = 1 }: RunName): string {
  // The name contains a hash of the id, because an id may contain any character and be too long for a file name. JSON escapes lone surrogates, which
  // UTF-8 cannot represent.
  const hash = nodeBuiltin('node:crypto').createHash('sha256').update(JSON.stringify(id)).digest('hex')
  return `${hash.slice(0, 32)}-${launchedAt}-${attempt}`
}

/** Removes the files of a run when the run has settled and the end of its task is stored. Until then the files may still be needed. */
export class RunFiles {
  readonly folder: string | undefined
  readonly #programOf: () => StartedProgram | undefined
  #hasSettled = false
  #isStored = false

  /** @param programOf returns the program of the run that is recorded in the store */
  constructor(folder: string | undefined, programOf: () => StartedProgram | undefined) {
    this.folder = folder
    this.#programOf = programOf
  }

  setSettled(outcome: Outcome, isResumed: boolean): void {
    this.#hasSettled = true
    // Nobody follows the program any more: it did not stop in time, or the task was cancelled before the new process followed the program.
    const isUnfollowed = outcome.type === 'abandoned' || (outcome.type === 'skipped' && isResumed)
    if (isUnfollowed && this.folder !== undefined) endSurvivor(this.folder, this.#programOf())
    this.#removeIfDone()
  }

  setStored(): void {
    this.#isStored = true
    this.#removeIfDone()
  }

  #removeIfDone(): void {
    if (!this.#hasSettled || !this.#isStored || this.folder === undefined) return
    // Errors are ignored: a file that cannot be removed takes space but does no harm.
    nodeBuiltin('node:fs').rm(this.folder, { recursive: true, force: true }, () => undefined)
  }
}

/** For each task, the function to call when the end of its run is stored. */
export const storedEnds = new TaskData<() => void>()

/** Removes the files of runs whose ends are stored. */
export const runFiles = (): Feature => ({ ended: (entry) => storedEnds.get(entry)?.() })
