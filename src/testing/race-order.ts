/**
 * The order of a race as a value, which fast-check generates and shrinks. An order always makes the same choices. Choice 0 lets the actor of the last
 * turn continue; after a turn of the clock, it takes another actor. Shrinking replaces choices by 0, so that the result changes between actors rarely
 * and is easy to follow.
 */
import fc from 'fast-check'

export interface Chooser {
  /**
   * @param names the names that can take the next turn, at least two
   * @returns the index of the chosen name
   */
  choose(names: readonly string[]): number
  /**
   * Chooses whether the process dies at one of these points.
   * @param site what the points belong to: a turn, a write or a message
   * @returns 0 if the process lives on, and otherwise the number of the point, counted from 1
   */
  crash(points: readonly string[], site: string): number
  /** Called with the name of the next turn if no other name can take it. */
  follow?(name: string): void
}

/** One order of the steps of a race. `raceOrders` draws it. In a counterexample, fast-check prints the expression that creates the order again. */
export class RaceOrder {
  /** The seed of its choices. */
  readonly seed: number
  /** How many choices the order makes. After them, the actor of the last turn goes on. */
  readonly length: number
  /** The numbers of the choices, counted from 0, at which the actor of the last turn goes on, whatever `seed` would choose. */
  readonly calm: ReadonlySet<number>
  /** The numbers of the crashes, counted from 0, that `seed` would cause but that do not happen. */
  readonly spared: ReadonlySet<number>

  constructor(
    seed: number,
    length = Infinity,
    calm: ReadonlySet<number> = new Set(),
    spared: ReadonlySet<number> = new Set(),
  ) {
    this.seed = seed
    this.length = length
    this.calm = calm
    this.spared = spared
  }

  /** The expression that fast-check prints in a counterexample. */
  [fc.toStringMethod](): string {
    const sets = this.spared.size > 0 ? [this.calm, this.spared] : this.calm.size > 0 ? [this.calm] : []
    const fields = [this.seed, this.length, ...sets.map((set) => `new Set([${[...set].join(', ')}])`)]
    return `new RaceOrder(${fields.join(', ')})`
  }
}

/** A chooser that follows an order from its start. */
export function chooserOf(order: RaceOrder): Chooser {
  const { seed, length, calm, spared } = order
  let choices = 0
  let crashes = 0
  return {
    choose: (names) => {
      const at = choices++
      return at >= length || calm.has(at) ? 0 : randomAt(seed, at) % names.length
    },
    // A crash depends only on the seed and the site. So the other crashes stay the same when shrinking removes a crash or a turn.
    crash: (points, site) => {
      const number = randomAt(seed, hashOf(site))
      const odds = oddsOf(seed)
      if (number % odds !== 0 || spared.has(crashes++)) return 0
      return 1 + (Math.floor(number / odds) % points.length)
    },
  }
}

/** Returns after how many sites a crash is expected. The number depends on the seed, so that some orders have many crashes and others few. */
const oddsOf = (seed: number): number => [2, 6, 18, 54][randomAt(seed, -1) % 4] ?? 2

/** Returns the FNV-1a hash of a text. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash
}

/** The number at a position of an infinite random sequence (the finalizer of MurmurHash3). */
function randomAt(seed: number, at: number): number {
  let hash = Math.imul(seed ^ Math.imul(at + 1, 0x9e3779b9), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  hash ^= hash >>> 16
  hash = Math.imul(hash, 0x85ebca6b)
  return (hash ^ (hash >>> 15)) >>> 0
}

/**
 * An arbitrary of orders, for a property that does its own scheduling with `createRaceScheduler`. `exploreRaces` draws its orders by itself.
 * @returns the arbitrary
 * @example
 * fc.asyncProperty(raceOrders(), async (order) => {
 *   const scheduler = createRaceScheduler(order)
 *   scheduler.scheduleSequence([{ label: 'first', builder: async () => first() }])
 *   scheduler.scheduleSequence([{ label: 'second', builder: async () => second() }])
 *   await scheduler.waitIdle()
 * })
 */
export function raceOrders(): fc.Arbitrary<RaceOrder> {
  return new RaceOrderArbitrary()
}

class RaceOrderArbitrary extends fc.Arbitrary<RaceOrder> {
  override generate(random: fc.Random): fc.Value<RaceOrder> {
    return new fc.Value(new RaceOrder(random.nextInt(0, 0x7fffffff)), undefined)
  }

  override canShrinkWithoutContext(value: unknown): value is RaceOrder {
    return value instanceof RaceOrder
  }

  override shrink(order: RaceOrder, context: unknown): fc.Stream<fc.Value<RaceOrder>> {
    return fc.stream(simplerOrders(order, (context as ShrinkingFrom | undefined) ?? { length: 0, crash: 0, choice: 0 }))
  }
}

/** Where shrinking continues: candidates before these positions have been tried. */
interface ShrinkingFrom {
  readonly length: number
  readonly crash: number
  readonly choice: number
}

/** Shrinking tries only lengths and choices below this number. */
const LONGEST_SHRUNK = 1024

/** Shrinking tries to remove only this many of the first crashes. */
const MOST_CRASHES = 16

/**
 * Yields the candidates of shrinking: shorter orders, then orders with one crash less, then orders in which the last actor continues at one more choice.
 */
function* simplerOrders(order: RaceOrder, from: ShrinkingFrom): Generator<fc.Value<RaceOrder>> {
  const { seed, length, calm, spared } = order
  const longest = Math.min(length, LONGEST_SHRUNK)
  let tried = from.length
  for (let shorter = tried; shorter < longest; shorter = nextLength(shorter)) {
    // fast-check takes this candidate only if all shorter orders have passed, so shrinking continues at its length.
    const context: ShrinkingFrom = { length: tried, crash: 0, choice: 0 }
    yield new fc.Value(new RaceOrder(seed, shorter, calm, spared), context)
    tried = shorter + 1
  }
  if (length === Infinity) return
  for (let { crash } = from; crash < MOST_CRASHES; crash += 1) {
    if (spared.has(crash)) continue
    const context: ShrinkingFrom = { length, crash: crash + 1, choice: 0 }
    yield new fc.Value(new RaceOrder(seed, length, calm, new Set([...spared, crash])), context)
  }
  for (let { choice } = from; choice < longest; choice += 1) {
    if (calm.has(choice)) continue
    const context: ShrinkingFrom = { length, crash: MOST_CRASHES, choice: choice + 1 }
    yield new fc.Value(new RaceOrder(seed, length, new Set([...calm, choice]), spared), context)
  }
}

/** Returns the next length to try: 0, 1, 2, … 8, 10, 12, 15, …. Large lengths grow in larger steps. */
const nextLength = (length: number): number => (length < 8 ? length + 1 : Math.floor(length * 1.25))
