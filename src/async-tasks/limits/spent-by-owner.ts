/** The usage (tokens, cost and so on) of the tasks of each owner. */
import type { SpentTotals } from '../../../machines/records.js'
import { addSpent, type Spending } from '../../../machines/spending.js'
import type { Feature } from '../feature.js'

/**
 * The maximum number of owners whose usage is kept. Beyond it, the owner that has used nothing for the longest time is dropped: its usage then counts
 * only in the total of all owners.
 */
const MAX_OWNERS = 1000

export class SpentByOwner implements Feature {
  readonly #owners = new Map<string, SpentTotals>()
  #all: SpentTotals = Object.freeze({})

  spent(owner: string, amount: Spending): void {
    this.#all = addSpent(this.#all, amount)
    const sum = addSpent(this.#owners.get(owner), amount)
    this.#owners.delete(owner)
    this.#owners.set(owner, sum)
    const [oldest] = this.#owners.keys()
    if (this.#owners.size > MAX_OWNERS && oldest !== undefined) this.#owners.delete(oldest)
  }

  of(owner: string | undefined): SpentTotals {
    return owner === undefined ? this.#all : (this.#owners.get(owner) ?? Object.freeze({}))
  }
}

export const spentByOwner = (): SpentByOwner => new SpentByOwner()
