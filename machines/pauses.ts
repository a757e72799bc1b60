/** What is paused: everything, or the tasks of some owners. Only the registry's transitions change it. */
import { runOfOwner } from './families.js'

/** While a pause lasts, no task starts that it concerns. What runs goes on, and so does what that launches. */
export interface TaskPause {
  /** Whose tasks it concerns; absent for those of every owner. */
  readonly owner?: string
  /** Whether results are delivered meanwhile, or held until it ends. */
  readonly deliveries: 'hold' | 'send'
  /** When it began, in ms since the epoch. */
  readonly since: number
  /** Who began it, as `pause` was given. */
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

  /** Those that concern the tasks of an owner. A run that goes on may wait for what it has launched: there are none for it. */
  of(owner: string): readonly TaskPause[] {
    if (this.#pauses.size === 0 || runOfOwner(owner) !== undefined) return []
    return [this.#pauses.get(undefined), this.#pauses.get(owner)].filter((pause) => pause !== undefined)
  }

  /** Whether the tasks of an owner do not start. */
  concern(owner: string): boolean {
    return this.of(owner).length > 0
  }

  holdResults(owner: string): boolean {
    return this.of(owner).some(({ deliveries }) => deliveries === 'hold')
  }
}
