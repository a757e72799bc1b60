/** The files of one run, including those of a program that survives its host. */
import { PerTask } from '../../../machines/per-task.js'
import { endSurvivor } from '../../engine/program-folder.js'
import type { Outcome } from '../../engine/engine.js'
import type { StartedProgram } from '../../engine/reap.js'
import { nodeBuiltin } from '../../node-builtins.js'
import type { Feature } from '../feature.js'

export interface RunName {
  readonly id: string
  readonly launchedAt: number
  /** Default: the first attempt. */
  readonly attempt?: number
}

export function folderName({ id, launchedAt, attempt = 1 }: RunName): string {
  // A hash, because an id may contain any character and be too long for a file name. JSON escapes lone surrogates.
  const hash = nodeBuiltin('node:crypto').createHash('sha256').update(JSON.stringify(id)).digest('hex')
  return `${hash.slice(0, 32)}-${launchedAt}-${attempt}`
}

/** Removes the files when the run has settled and the end of its task was stored, because both steps need the files. */
export class RunFiles {
  readonly folder: string | undefined
  readonly #programOf: () => StartedProgram | undefined
  #hasSettled = false
  #isStored = false

  /** @param programOf finds the stored program of the run */
  constructor(folder: string | undefined, programOf: () => StartedProgram | undefined) {
    this.folder = folder
    this.#programOf = programOf
  }

  setSettled(outcome: Outcome, isResumed: boolean): void {
    this.#hasSettled = true
    // The program is no longer followed: it did not stop in time, or its task was cancelled before it could be followed.
    const isLeft = outcome.type === 'abandoned' || (outcome.type === 'skipped' && isResumed)
    if (isLeft && this.folder !== undefined) endSurvivor(this.folder, this.#programOf())
    this.#removeIfDone()
  }

  setStored(): void {
    this.#isStored = true
    this.#removeIfDone()
  }

  #removeIfDone(): void {
    if (!this.#hasSettled || !this.#isStored || this.folder === undefined) return
    // Files that cannot be removed take space but do no harm.
    nodeBuiltin('node:fs').rm(this.folder, { recursive: true, force: true }, () => undefined)
  }
}

/** Called when the end of a run was stored. */
export const storedEnds = new PerTask<() => void>()

/** Removes the files of runs whose ends are stored. */
export const runFiles = (): Feature => ({ ended: (entry) => storedEnds.get(entry)?.() })
