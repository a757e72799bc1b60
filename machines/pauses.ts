/** The current pauses, of all tasks or of single owners. Only the registry's transitions change them. */
import { runOfOwner } from './families.js'

/** A pause. The tasks that it covers do not start while it lasts. Running tasks and the tasks that they launch continue. */
export interface TaskPause {
  /** The owner whose tasks are paused. Absent for all owners. */
  readonly owner?: string
  /** Whether results are delivered during the pause or held until it ends. */
  readonly deliveries: 'hold' | 'send'
  /** When it began, in ms since the epoch. */
  readonly since: number
  /** Who began it, as passed to `pause`. */
  readonly by?: string
}

export class Pauses {
  readonly #pauses = new Map<string | undefined, TaskPause>()

  list(): readonly TaskPause[] {
    return [...this.#pauses.values()]
  }

  get(owner: string | undefined): TaskPause | undefined {
    return this.#pauses.get(owner)
  }

  set(pause: TaskPause): void {
    this.#pauses.set(pause.owner, pause)
  }

  delete(owner: string | undefined): void {
    this.#pauses.delete(owner)
  }

  /** The pauses that cover the tasks of an owner. None for a run, because a running task may wait for the tasks that it has launched. */
  of(owner: string): readonly TaskPause[] {
    if (this.#pauses.size === 0 || runOfOwner(owner) !== undefined) return []
    return [this.#pauses.get(undefined), this.#pauses.get(owner)].filter((pause) => pause !== undefined)
  }

  /** Whether the tasks of an owner are paused. */
  concern(owner: string): boolean {
    return this.of(owner).length > 0
  }

  holdResults(owner: string): boolean {
    return this.of(owner).some(({ deliveries }) => deliveries === 'hold')
  }
}
