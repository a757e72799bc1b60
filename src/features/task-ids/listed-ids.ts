/**
 * Remembers the short ids that were displayed to a model or person. A short id refers to the same task while its record is kept, even if a later task
 * has a similar id.
 */
import type { TaskEntry } from '../../../machines/task-entry.js'
import type { Feature } from '../../async-tasks/feature.js'

export class ListedIds implements Feature {
  readonly #idOf = new Map<string, string>()
  readonly #shortOf = new Map<string, string>()

  /** Returns the short id with which a task was displayed; undefined if it was not displayed. */
  shortOf(id: string): string | undefined {
    return this.#shortOf.get(id)
  }

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

export const listedIds = (): ListedIds => new ListedIds()
