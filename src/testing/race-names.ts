/** Makes unique names for the promises, writes and messages of one run. */

export class RaceNames {
  /** How often each label was used. */
  readonly #uses = new Map<string, number>()

  /** Reserves names. A later use of the same label gets a number. */
  reserve(names: readonly string[]): void {
    for (const name of names) this.#uses.set(name, Math.max(this.#uses.get(name) ?? 0, 1))
  }

  /** A name that is unique in this run, and the same in every run with the same order up to here. */
  next(label: string): string {
    const uses = (this.#uses.get(label) ?? 0) + 1
    this.#uses.set(label, uses)
    return uses === 1 ? label : `${label} #${uses}`
  }
}
