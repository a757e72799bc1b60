/** Every order there is, one after the other: depth first, the last choice that is not exhausted goes on. */
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
        `the same order led to ${choice.of} possibilities before and to ${length} now. ` +
          'What decides besides the race? Real time, Math.random, I/O, or what an earlier run left behind.',
      )
    }
    return choice.taken
  }

  /** Goes to the next order. False when there is none. */
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
