/** The files of one run, which may be those of a program that survives its host. */
import { PerTask } from '../../../machines/per-task.js'
import { endSurvivor } from '../../engine/program-folder.js'
import type { Outcome } from '../../engine/engine.js'
import type { StartedProgram } from '../../engine/reap.js'
import { nodeBuiltin } from '../../node-builtins.js'
import type { Feature } from '../feature.js'

/** Which run is meant. */
export interface RunName {
  readonly id: string
  readonly launchedAt: number
  /** Default: the first. */
  readonly attempt?: number
}

/** The name of the folder of a run. */
export function folderName({ id, launchedAt, attempt = 1 }: RunName): string {
  // An id may have any characters, and be too long for the name of a file. As JSON it has no lone surrogates.
  const hash = nodeBuiltin('node:crypto').createHash('sha256').update(JSON.stringify(id)).digest('hex')
  return `${hash.slice(0, 32)}-${launchedAt}-${attempt}`
}

/** Removes the files when the run has settled and the end of its task has been stored: until then both need them. */
export class RunFiles {
  readonly folder: string | undefined
  readonly #programOf: () => StartedProgram | undefined
  #hasSettled = false
  #isStored = false

  /** @param programOf finds the program that the run has stored */
  constructor(folder: string | undefined, programOf: () => StartedProgram | undefined) {
    this.folder = folder
    this.#programOf = programOf
  }

  /** The run has settled. */
  setSettled(outcome: Outcome, isResumed: boolean): void {
    this.#hasSettled = true
    // Nobody follows the program any longer: it did not stop in time, or its task was cancelled before it could be followed.
    const isLeft = outcome.type === 'abandoned' || (outcome.type === 'skipped' && isResumed)
    if (isLeft && this.folder !== undefined) endSurvivor(this.folder, this.#programOf())
    this.#removeIfDone()
  }

  /** The end of the task has been stored. */
  setStored(): void {
    this.#isStored = true
    this.#removeIfDone()
  }

  #removeIfDone(): void {
    if (!this.#hasSettled || !this.#isStored || this.folder === undefined) return
    // What cannot be removed takes space, and does no harm.
    nodeBuiltin('node:fs').rm(this.folder, { recursive: true, force: true }, () => undefined)
  }
}

/** Called when the end of a run has been stored. */
export const storedEnds = new PerTask<() => void>()

/** Removes the files of runs whose ends are stored. */
export const runFiles = (): Feature => ({ ended: (entry) => storedEnds.get(entry)?.() })
