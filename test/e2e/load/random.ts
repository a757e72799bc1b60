/** Choices from a seed. What races decides is not repeated by a seed, what was tried is. */

export interface Random {
  /** An integer from 0 to `below` - 1. */
  below(below: number): number
  chance(probability: number): boolean
  pick<T>(from: readonly T[]): T | undefined
  /** Another one, so that what one actor draws does not depend on when the others draw. */
  fork(): Random
}

/** mulberry32 */
export function createRandom(seed: number): Random {
  let state = seed | 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    below: (below) => Math.floor(next() * below),
    chance: (probability) => next() < probability,
    pick: (from) => from[Math.floor(next() * from.length)],
    fork: () => createRandom(Math.floor(next() * 2 ** 32)),
  }
}
