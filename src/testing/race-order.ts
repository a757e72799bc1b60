/**
 * The order of a race as a value: fast-check generates and shrinks it, and it makes the same choices each time it is used.
 * Choice 0 means that the actor of the last turn goes on. Shrinking turns choices into 0, so what is left is an order with few
 * interruptions, which a person can follow.
 */
import fc from 'fast-check'

/** Chooses the next turn. */
export interface Chooser {
  /** @returns the index of the chosen name; there are at least two names */
  choose(names: readonly string[]): number
  /** Called with the name of the next turn when there was nothing to choose. */
  follow?(name: string): void
}

/** One order. Made by `raceOrders`; a counterexample prints it as the expression that makes it again. */
export class RaceOrder {
  /** The seed of its choices. */
  readonly seed: number
  /** How many choices it makes; after them the actor of the last turn goes on. */
  readonly length: number
  /** The numbers of choices, counted from 0, at which the actor of the last turn goes on. */
  readonly calm: ReadonlySet<number>

  constructor(seed: number, length = Infinity, calm: ReadonlySet<number> = new Set()) {
    this.seed = seed
    this.length = length
    this.calm = calm
  }

  /** The expression that fast-check prints in a counterexample. */
  [fc.toStringMethod](): string {
    const calm = this.calm.size > 0 ? `, new Set([${[...this.calm].join(', ')}])` : ''
    return `new RaceOrder(${this.seed}, ${this.length}${calm})`
  }
}

/** A chooser that follows an order from its start. */
export function chooserOf(order: RaceOrder): Chooser {
  let at = 0
  return { choose: ({ length }) => choiceOf(order, at++, length) }
}

/** The choice number `at` among `of` possibilities, an integer from 0 to `of` - 1. */
export function choiceOf({ seed, length, calm }: RaceOrder, at: number, of: number): number {
  return at >= length || calm.has(at) ? 0 : randomAt(seed, at) % of
}

/** The number at a position of an endless random sequence (the finalizer of MurmurHash3). */
function randomAt(seed: number, at: number): number {
  let hash = Math.imul(seed ^ Math.imul(at + 1, 0x9e3779b9), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  hash ^= hash >>> 16
  hash = Math.imul(hash, 0x85ebca6b)
  return (hash ^ (hash >>> 15)) >>> 0
}

/**
 * An arbitrary of orders, for a property that does its own scheduling with `createRaceScheduler`. `exploreRaces` uses it for you.
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
    return fc.stream(simplerOrders(order, (context as ShrinkingFrom | undefined) ?? { length: 0, choice: 0 }))
  }
}

/** Where shrinking continues: shorter lengths and earlier choices have been tried. */
interface ShrinkingFrom {
  readonly length: number
  readonly choice: number
}

/** The longest order whose lengths and choices shrinking tries one by one. */
const LONGEST_SHRUNK = 1024

/** First shorter orders, then orders with one more calm choice. */
function* simplerOrders({ seed, length, calm }: RaceOrder, from: ShrinkingFrom): Generator<fc.Value<RaceOrder>> {
  const longest = Math.min(length, LONGEST_SHRUNK)
  let tried = from.length
  for (let shorter = tried; shorter < longest; shorter = nextLength(shorter)) {
    // fast-check takes this value only if all shorter ones held.
    yield new fc.Value(new RaceOrder(seed, shorter, calm), { length: tried, choice: 0 } satisfies ShrinkingFrom)
    tried = shorter + 1
  }
  if (length === Infinity) return
  for (let choice = from.choice; choice < longest; choice += 1) {
    if (calm.has(choice)) continue
    const calmer = new RaceOrder(seed, length, new Set([...calm, choice]))
    yield new fc.Value(calmer, { length, choice: choice + 1 } satisfies ShrinkingFrom)
  }
}

/** 0, 1, 2, … 8, 10, 12, 15, …: short lengths one by one, long ones in growing steps. */
const nextLength = (length: number): number => (length < 8 ? length + 1 : Math.floor(length * 1.25))
