/** The short ids that were displayed. Each refers to the same task while its record is kept, even if similar ids are added later. */
import type { TaskEntry } from '../../machines/task-entry.js'
import type { Feature } from './feature.js'

export class ListedIds implements Feature {
  readonly #idOf = new Map<string, string>()
  readonly #shortOf = new Map<string, string>()

  /** The displayed short id of a task; undefined if there is none. */
  shortOf(id: string): string | undefined {
    return this.#shortOf.get(id)
  }

  /** Finds a task by a short id that was displayed. */
  idOf(short: string): string | undefined {
    return this.#idOf.get(short)
  }

  set(id: string, short: string): void {
    this.#delete(id)
    this.#idOf.set(short, id)
    this.#shortOf.set(id, short)
  }

  pruned({ record }: TaskEntry): void {
    this.#delete(record.id)
  }

  #delete(id: string): void {
    const short = this.#shortOf.get(id)
    if (short === undefined) return
    this.#shortOf.delete(id)
    if (this.#idOf.get(short) === id) this.#idOf.delete(short)
  }
}

/** The displayed short ids of a registry. */
export const listedIds = (): ListedIds => new ListedIds()
