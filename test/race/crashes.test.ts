/** Crashes of a host: all of its lives together keep A1 to A9, K1 to K7 and K10. */
import { describe, expect, it } from 'vitest'
import { exploreRaces, RaceError, replayRace } from '../../src/testing/index.js'
import { propertyParameters } from '../support/property.js'
import { crashFaults } from './crash-faults.js'
import { crashRace } from './crashes.property.js'

const failureOf = async (exploration: Promise<unknown>): Promise<RaceError> => {
  const error: unknown = await exploration.catch((error: unknown) => error)
  if (!(error instanceof RaceError)) throw new Error('the race did not fail', { cause: error })
  return error
}

describe('any race with crashes', () => {
  it('K1, K2, K3, K4, K5, K6, K7, K10: all lives together tell every end once, and lose nothing', async () => {
    const { numRuns, seed, path } = propertyParameters()
    const { runs, orders } = await exploreRaces({ ...crashRace(), numRuns, seed, ...(path !== undefined && { path }) })
    console.info(`crashes: ${runs} runs, ${orders} different orders, seed ${seed}`)
  })
})

describe('a fault is found, and shrunk to at most ten steps', () => {
  it.each(crashFaults)('$invariant: $name', async ({ name, description, ...sabotage }) => {
    const race = crashRace(sabotage)
    const error = await failureOf(exploreRaces({ ...race, numRuns: 5000, seed: 20_260_101 }))
    if (process.env['FAULT_SHOW'] !== undefined)
      console.info(`${name}: ${description}\n${error.message.split('This test')[0]}`)
    expect(error.order.length).toBeLessThanOrEqual(10)
    const { order, input, timeline } = error
    const replayed = await failureOf(replayRace({ ...race, order, input: input as never }))
    expect(replayed).toMatchObject({ timeline, run: { failure: { message: error.run.failure?.message } } })
  })
})
