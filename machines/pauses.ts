/** The current pauses, of all tasks or of single owners. Only the registry's transitions change them. */
import { runOfOwner } from './families.js'

/** A pause. While it lasts, tasks of the paused owners do not start. Running tasks and the tasks that they launch continue. */
export interface TaskPause {
  /** The owner whose tasks are paused. Absent for all owners. */
  readonly owner?: string
  /** Whether results are delivered during the pause (`send`), or held back until it ends (`hold`). */
  readonly deliveries: 'hold' | 'send'
  /** When the pause began, in ms since the epoch. */
  readonly since: number
  /** Who began the pause, as passed to `pause`. */
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

  /**
   * Returns the pauses that concern the tasks of an owner. Returns none for a run as owner: the run continues, and may wait for the tasks that it has
   * launched.
   */
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
