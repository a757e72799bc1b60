/** The short ids that were shown: each means the same task for as long as its record is kept, whichever tasks come later. */

export class ListedIds {
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
    this.delete(id)
    this.#idOf.set(short, id)
    this.#shortOf.set(id, short)
  }

  /** The record of a task is gone. */
  delete(id: string): void {
    const short = this.#shortOf.get(id)
    if (short === undefined) return
    this.#shortOf.delete(id)
    if (this.#idOf.get(short) === id) this.#idOf.delete(short)
  }
}
