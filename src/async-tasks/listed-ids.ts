/** The short ids that were shown: each means the same task for as long as its record is kept, whichever tasks come later. */
import type { TaskEntry } from '../../machines/task-entry.js'
import type { Feature } from './feature.js'

export class ListedIds implements Feature {
  readonly #idOf = new Map<string, string>()
  readonly #shortOf = new Map<string, string>()

  /** The short id under which a task was shown; undefined when it was not. */
  shortOf(id: string): string | undefined {
    return this.#shortOf.get(id)
  }

  /** The id of the task that was shown under a short id. */
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

/** The tasks that the lists of a registry have shown. */
export const listedIds = (): ListedIds => new ListedIds()
