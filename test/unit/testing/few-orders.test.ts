/** Random mode runs no order twice: a race with few orders has all of them run. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { exploreRaces, RaceError, type RaceOptions } from 'agent-tasks/testing'

/** Three steps each: 6! / (3! 3!) = 20 orders. */
const race = (atEnd: (order: string) => unknown): RaceOptions<{ order: string }> => ({
  setup: () => ({ order: '' }),
  actors: Object.fromEntries(
    ['a', 'b'].map((name) => [name, Array.from({ length: 3 }, () => (world) => void (world.order += name))]),
  ),
  atEnd: { 'is fine': ({ order }) => atEnd(order) },
})

const ordersOf = async (options: Partial<RaceOptions<{ order: string }>>) => {
  const taken: string[] = []
  const summary = await exploreRaces({ ...race((order) => void taken.push(order)), ...options })
  return { summary, taken, different: new Set(taken).size }
}

it.each([1000, 20])('runs each of 20 orders once with numRuns: %i', async (numRuns) => {
  const { summary, taken, different } = await ordersOf({ numRuns, seed: 7 })
  expect({ taken: taken.length, different }).toEqual({ taken: 20, different: 20 })
  expect(summary).toEqual({ mode: 'random', runs: 20, orders: 20, seed: 7 })
})

it('runs numRuns different orders when the race has more', async () => {
  const { summary, taken, different } = await ordersOf({ numRuns: 19, seed: 7 })
  expect({ taken: taken.length, different }).toEqual({ taken: 19, different: 19 })
  expect(summary).toMatchObject({ runs: 19, orders: 19 })
})

it('finds a failure in whichever order it is, and reports one that no draw has taken by its order', async () => {
  const { taken: all } = await ordersOf({ mode: 'exhaustive' })
  let isOfDraw = 0
  for (const wrong of all) {
    const error: unknown = await exploreRaces({ ...race((order) => order !== wrong), numRuns: 20, seed: 7 }).catch(
      (error: unknown) => error,
    )
    if (!(error instanceof RaceError)) throw new Error(`the failure of ${wrong} was not found`, { cause: error })
    expect(error.order.join('')).toBe(wrong)
    if (error.seed !== undefined) isOfDraw += 1
    else {
      expect(error.message).toContain('1 of 20 order(s) failed; the shortest of them:')
      expect(error.regressionTest).not.toContain('seed')
    }
  }
  expect(isOfDraw).toBeGreaterThan(0)
  expect(isOfDraw).toBeLessThan(20)
})

it('draws all of numRuns when there are inputs, since an order is another run with another input', async () => {
  let runs = 0
  const summary = await exploreRaces({ ...race(() => void (runs += 1)), inputs: fc.constant(undefined), numRuns: 100 })
  expect({ runs, summary: summary.runs }).toEqual({ runs: 100, summary: 100 })
})

it('goes on drawing when what can happen changes from run to run', async () => {
  let runs = 0
  const { actors } = race(() => true)
  const summary = await exploreRaces({
    ...race(() => true),
    // Every second run lacks an actor.
    actors: ({ order }) => (typeof actors === 'function' || (runs += 1) % 2 === 0 ? { c: [() => order] } : actors),
    numRuns: 50,
    seed: 7,
  })
  expect(summary.runs).toBeGreaterThan(20)
})
