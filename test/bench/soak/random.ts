/** Random choices that a seed names. */
export interface Random {
  /** From 0 up to, not including, `below`. */
  below(below: number): number
  /** True this often. */
  chance(share: number): boolean
  pick<T>(from: readonly T[]): T
}

/** Mulberry32: small, and good enough to choose what to do next. */
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
