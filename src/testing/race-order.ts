/**
 * An order in which racing steps take turns, as a value: fast-check generates it, shrinks it, and it chooses in the same
 * way however often it is used. Choice 0 always means "whoever went last goes on", so an order whose choices are mostly 0
 * is one with few interruptions, which is the one a person can read (docs/adr: an order is a list of choices).
 */
import fc from 'fast-check'

/** What decides, among things that could happen next, which one does. */
export interface Chooser {
  /** The index of the one of these names that goes next; there are at least two. */
  choose(names: readonly string[]): number
  /** Told of what goes next when there is no choice. */
  follow?(name: string): void
}

/** How many choices an order makes at random before shrinking counts them one by one. */
const LONGEST_COUNTED = 1024

/** One order of whatever there is to order: the same each time it is used. Made by `raceOrders`. */
export class RaceOrder {
  readonly #seed: number
  /** Only so many choices are made by the seed; whoever went last goes on after them. */
  readonly #length: number
  /** Choices within that length at which whoever went last goes on. */
  readonly #quiet: ReadonlySet<number>

  constructor(seed: number, length = Infinity, quiet: ReadonlySet<number> = new Set()) {
    this.#seed = seed
    this.#length = length
    this.#quiet = quiet
  }

  /** The choice number `at` among `of` possibilities: an integer from 0 to `of` - 1. */
  choice(at: number, of: number): number {
    return at >= this.#length || this.#quiet.has(at) ? 0 : mix(this.#seed, at) % of
  }

  /** A chooser that follows this order from its beginning. */
  chooser(): Chooser {
    let at = 0
    return { choose: ({ length }) => this.choice(at++, length) }
  }

  /** Simpler orders, each with where the search for still simpler ones goes on from. */
  *simpler(from: ShrinkingFrom = { shortest: 0, next: 0 }): Generator<[RaceOrder, ShrinkingFrom]> {
    const longest = Math.min(this.#length, LONGEST_COUNTED)
    let { shortest } = from
    for (let length = shortest; length < longest; length = nextLength(length)) {
      // Those up to here will have been found to hold when this one is taken.
      yield [new RaceOrder(this.#seed, length, this.#quiet), { shortest, next: 0 }]
      shortest = length + 1
    }
    for (let at = from.next; at < longest; at += 1) {
      if (this.#quiet.has(at) || this.#length === Infinity) continue
      yield [
        new RaceOrder(this.#seed, this.#length, new Set([...this.#quiet, at])),
        { shortest: this.#length, next: at + 1 },
      ]
    }
  }

  /** How fast-check shows it in a counterexample. */
  [fc.toStringMethod](): string {
    const quiet = this.#quiet.size > 0 ? `, new Set([${[...this.#quiet].join(', ')}])` : ''
    return `new RaceOrder(${this.#seed}, ${this.#length}${quiet})`
  }
}

/** Where the search for simpler orders goes on from. */
export interface ShrinkingFrom {
  /** Every shorter order has been tried. */
  readonly shortest: number
  /** Every choice before this one has been tried. */
  readonly next: number
}

/** 0, 1, 2, … 8, 10, 12, 15, …: the short lengths one by one, the long ones by steps. */
const nextLength = (length: number): number => (length < 8 ? length + 1 : Math.floor(length * 1.25))

/** The number at a place of an endless row of random numbers (the finalizer of MurmurHash3). */
function mix(seed: number, at: number): number {
  let hash = Math.imul(seed ^ Math.imul(at + 1, 0x9e3779b9), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  hash ^= hash >>> 16
  hash = Math.imul(hash, 0x85ebca6b)
  return (hash ^ (hash >>> 15)) >>> 0
}

/**
 * Orders at random, for a property that schedules by itself; `exploreRaces` uses them for you. They shrink to orders in
 * which whoever went last mostly goes on.
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
    return fc.stream(valuesOf(order.simpler(context as ShrinkingFrom | undefined)))
  }
}

function* valuesOf(orders: Generator<[RaceOrder, ShrinkingFrom]>): Generator<fc.Value<RaceOrder>> {
  for (const [order, context] of orders) yield new fc.Value(order, context)
}
