/** Every order of a race, one after the other, depth first: each run changes the last choice that has possibilities left. */
import { AgentTasksError } from '../errors.js'
import type { Chooser } from './race-order.js'

export class Enumeration implements Chooser {
  readonly #choices: { taken: number; readonly of: number }[] = []
  #at = 0

  choose({ length }: readonly string[]): number {
    const choice = this.#choices[this.#at]
    this.#at += 1
    if (choice === undefined) {
      this.#choices.push({ taken: 0, of: length })
      return 0
    }
    if (choice.of !== length) {
      throw new AgentTasksError(
        'RACE_NOT_DETERMINISTIC',
        `the same order led to ${choice.of} possibilities before and to ${length} now. ${NOT_DETERMINISTIC_HINT}`,
      )
    }
    return choice.taken
  }

  /** Moves to the next order. Returns false when every order was run. */
  next(): boolean {
    // A run that stopped early made fewer choices than the order has.
    this.#choices.length = Math.min(this.#choices.length, this.#at)
    this.#at = 0
    for (let last = this.#choices.at(-1); last !== undefined; last = this.#choices.at(-1)) {
      if (last.taken + 1 < last.of) {
        last.taken += 1
        return true
      }
      this.#choices.pop()
    }
    return false
  }
}

export const NOT_DETERMINISTIC_HINT =
  'Look for what decides besides the race: real time, Math.random, I/O, or state that an earlier run left behind.'
