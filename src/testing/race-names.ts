/** Makes unique names for the promises, writes and messages of one run. */

export class RaceNames {
  readonly #uses = new Map<string, number>()

  /** Reserves names. A promise, write or message with such a label gets a number. */
  reserve(names: readonly string[]): void {
    for (const name of names) this.#uses.set(name, Math.max(this.#uses.get(name) ?? 0, 1))
  }

  /** Returns a unique name, which is the same in every run that reaches this point in the same order. */
  next(label: string): string {
    const uses = (this.#uses.get(label) ?? 0) + 1
    this.#uses.set(label, uses)
    return uses === 1 ? label : `${label} #${uses}`
  }
}
