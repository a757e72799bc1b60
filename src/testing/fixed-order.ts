/** The order of a replay: a list of names. */
import type { Chooser } from './race-order.js'

export class FixedOrder implements Chooser {
  /** The names that could have taken a turn at some point. */
  readonly offered = new Set<string>()
  /** The names that have not taken their turn yet. */
  readonly #left: string[]

  constructor(order: readonly string[]) {
    this.#left = [...order]
  }

  follow(name: string): void {
    this.offered.add(name)
    if (this.#left[0] === name) this.#left.shift()
  }

  choose(names: readonly string[]): number {
    for (const name of names) this.offered.add(name)
    const at = this.#left.findIndex((name) => names.includes(name))
    if (at === -1) return 0
    const name = this.#left[at] ?? ''
    this.#left.splice(0, at + 1)
    return names.indexOf(name)
  }

  crash(points: readonly string[]): number {
    for (const point of points) this.offered.add(point)
    const at = points.indexOf(this.#left[0] ?? '')
    if (at !== -1) this.#left.shift()
    return at + 1
  }
}
