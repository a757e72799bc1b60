/** Crashes of a host: all of its lives together keep A1 to A9, K1 to K7 and K10. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { exploreRaces, RaceError, raceOrders, replayRace } from '../../src/testing/index.js'
import { chooserOf } from '../../src/testing/race-order.js'
import { timelineOf } from '../../src/testing/race-report.js'
import { runRace } from '../../src/testing/race-run.js'
import { propertyParameters } from '../support/property.js'
import { crashFaults } from './crash-faults.js'
import { crashScripts } from './crash-script.js'
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

describe(`a fault is found, and shrunk to at most ${MAX_STEPS} steps`, () => {
  it.each(crashFaults)('$invariant: $name', async ({ name, description, seed = 3, ...sabotage }) => {
    const race = crashRace(sabotage)
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
