/**
 * The order of a race as a value. fast-check generates and shrinks it, and it makes the same choices each time. Choice 0 means that the actor of the
 * last turn continues; after the clock, another actor. Shrinking turns choices into 0, so the result has few interruptions and is easy to follow.
 */
import fc from 'fast-check'

/** Chooses the next turn. */
export interface Chooser {
  /** @returns the index of the chosen name; there are at least two names */
  choose(names: readonly string[]): number
  /**
   * Chooses whether the process dies at one of these points.
   * @param site what the points belong to: a turn, a write or a message
   * @returns 0 when it lives on, and otherwise the number of the point, counted from 1
   */
  crash(points: readonly string[], site: string): number
  /** Called with the name of the next turn when there was nothing to choose. */
  follow?(name: string): void
}

/** One order of the steps of a race. `raceOrders` draws it. A counterexample prints it as the expression that creates it again. */
export class RaceOrder {
  /** The seed of its choices. */
  readonly seed: number
  /** How many choices it makes; after them the actor of the last turn goes on. */
  readonly length: number
  /** The numbers of choices, counted from 0, at which the actor of the last turn goes on. */
  readonly calm: ReadonlySet<number>
  /** The numbers of crashes, counted from 0, that do not happen. */
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
    // Depends only on the site, so that other crashes stay the same when a crash or turn is removed.
    crash: (points, site) => {
      const number = randomAt(seed, hashOf(site))
      const odds = oddsOf(seed)
      if (number % odds !== 0 || spared.has(crashes++)) return 0
      return 1 + (Math.floor(number / odds) % points.length)
    },
  }
}

/** The inverse probability of a crash at a site. It varies, so that some orders have many crashes and others few. */
const oddsOf = (seed: number): number => [2, 6, 18, 54][randomAt(seed, -1) % 4] ?? 2

/** FNV-1a. */
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
    return fc.stream(simplerOrders(order, (context as ShrinkingFrom | undefined) ?? { length: 0, crash: 0, choice: 0 }))
  }
}

/** Where shrinking continues, because earlier candidates have been tried. */
interface ShrinkingFrom {
  readonly length: number
  readonly crash: number
  readonly choice: number
}

/** The maximum length of orders whose lengths and choices are shrunk one by one. */
const LONGEST_SHRUNK = 1024

/** The maximum of crashes that shrinking tries to remove. */
const MOST_CRASHES = 16

/** First shorter orders, then orders with one crash less, then orders with one more calm choice. */
function* simplerOrders(order: RaceOrder, from: ShrinkingFrom): Generator<fc.Value<RaceOrder>> {
  const { seed, length, calm, spared } = order
  const longest = Math.min(length, LONGEST_SHRUNK)
  let tried = from.length
  for (let shorter = tried; shorter < longest; shorter = nextLength(shorter)) {
    // fast-check takes this value only if all shorter ones have passed.
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

/** 0, 1, 2, … 8, 10, 12, 15, …: small lengths one by one, larger ones in growing steps. */
const nextLength = (length: number): number => (length < 8 ? length + 1 : Math.floor(length * 1.25))
