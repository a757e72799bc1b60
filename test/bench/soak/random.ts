/** Random choices that a seed determines. */
export interface Random {
  /** An integer from 0 to `below` - 1. */
  below(below: number): number
  /** True with this probability. */
  chance(share: number): boolean
  pick<T>(from: readonly T[]): T
}

/** Mulberry32, a small generator. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    below: (below) => Math.floor(next() * below),
    chance: (share) => next() < share,
    pick: (from) => from[Math.floor(next() * from.length)]!,
  }
}
