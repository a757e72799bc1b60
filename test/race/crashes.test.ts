/** Crashes and polite ends of a host: all of its lives together keep A1 to A9, K1 to K7, K10 and K13. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { exploreRaces, RaceError, raceOrders, replayRace } from '../../src/testing/index.js'
import { chooserOf } from '../../src/testing/race-order.js'
import { timelineOf } from '../../src/testing/race-report.js'
import { runRace } from '../../src/testing/race-run.js'
import { propertyParameters } from '../support/property.js'
import { crashFaults, stopFaults } from './crash-faults.js'
import { crashScripts, stopScripts } from './crash-script.js'
import { crashRace } from './crashes.property.js'

const failureOf = async (exploration: Promise<unknown>): Promise<RaceError> => {
  const error: unknown = await exploration.catch((error: unknown) => error)
  if (!(error instanceof RaceError)) throw new Error('the race did not fail', { cause: error })
  return error
}

describe('any race with crashes', () => {
  it('K1, K2, K3, K4, K5, K6, K7, K10: all lives together deliver every end once, and lose nothing', async () => {
    const { numRuns, seed, path } = propertyParameters()
    const { runs, orders } = await exploreRaces({ ...crashRace(), numRuns, seed, ...(path !== undefined && { path }) })
    console.info(`crashes: ${runs} runs, ${orders} different orders, seed ${seed}`)
  })

  it('K13, A5, K1, K4, K7: after a polite stop at any point, nothing is worse than after a crash', async () => {
    const { numRuns, seed, path } = propertyParameters()
    const race = crashRace({}, stopScripts)
    const { runs, orders } = await exploreRaces({ ...race, numRuns, seed, ...(path !== undefined && { path }) })
    console.info(`stops: ${runs} runs, ${orders} different orders, seed ${seed}`)
  })

  it.each([
    [
      'K1: a registration that has ended before it could not be stored',
      11,
      '114:4:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:1:2:2:5:5:5:7',
    ],
    [
      'K1: a registration that was cancelled before it could not be stored',
      12,
      '578:2:2:0:0:0:0:0:0:0:0:0:0:0:0:0:2:2:4:4:4:4:5',
    ],
    [
      'K4: two turns that begin while a lease is being stored',
      14,
      '584:1:1:0:0:0:0:0:0:0:0:0:0:0:0:0:0:1:1:1:1:0:0:0:1:1:2:2:2:2',
    ],
  ])('%s: found with seed %i', async (_, seed, path) => {
    await exploreRaces({ ...crashRace({}, stopScripts), seed, path, numRuns: 1, endOnFailure: true })
  })

  it('K1, F5, A5: a child of a registration that could not be stored: found with seed 20260101', async () => {
    const path = '4420:4:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:4:7:14'
    await exploreRaces({ ...crashRace(), seed: 20260101, path, numRuns: 1, endOnFailure: true })
  })

  it('takes the same course with the same seed, byte for byte', async () => {
    const traceOf = async (): Promise<string> => {
      const lines: string[] = []
      for (const [order, script] of fc.sample(fc.tuple(raceOrders(), crashScripts), { seed: 7, numRuns: 100 })) {
        lines.push(timelineOf(await runRace(crashRace(), chooserOf(order), script)))
      }
      return lines.join('\n')
    }
    const trace = await traceOf()
    expect(trace.split('starts').length).toBeGreaterThan(50)
    expect(await traceOf()).toBe(trace)
  })
})

/** Each write is two steps where its answer comes in a turn of its own. */
const MAX_STEPS = 15

/** `npm run faults` plants all of them. */
const faults = [
  ...crashFaults.slice(0, 2).map((fault) => ({ ...fault, scripts: crashScripts })),
  ...stopFaults.slice(0, 1).map((fault) => ({ ...fault, scripts: stopScripts })),
]

describe(`a fault is found, and shrunk to at most ${MAX_STEPS} steps`, () => {
  it.each(faults)('$invariant: $name', async ({ name, description, scripts, seed = 3, ...sabotage }) => {
    const race = crashRace(sabotage, scripts)
    const error = await failureOf(exploreRaces({ ...race, numRuns: 5000, seed }))
    if (process.env['FAULT_SHOW'] !== undefined) {
      console.info(`${name}: ${description}\n${error.message.split('This test')[0]}`)
    }
    expect(error.order.length).toBeLessThanOrEqual(MAX_STEPS)
    const { order, input, timeline } = error
    const replayed = await failureOf(replayRace({ ...race, order, input: input as never }))
    expect(replayed).toMatchObject({ timeline, run: { failure: { message: error.run.failure?.message } } })
  })
})
