/** Schedules, monitors, dependencies, keys and pauses of a host that crashes (F15 to F19). */
import { describe, expect, it } from 'vitest'
import { exploreRaces, RaceError } from '../../src/testing/index.js'
import { propertyParameters } from '../support/property.js'
import { wakingFaults } from './waking-faults.js'
import { wakingRace } from './waking.property.js'

describe('any race of what wakes an agent and holds tasks back', () => {
  it('F15, F16, F17, F18, F19: all lives together fire, report and start everything once, and nothing too early', async () => {
    const { numRuns, seed, path } = propertyParameters()
    const race = wakingRace()
    const { runs, orders } = await exploreRaces({ ...race, numRuns, seed, ...(path !== undefined && { path }) })
    console.info(`waking: ${runs} runs, ${orders} different orders, seed ${seed}`)
  })
})

const MAX_STEPS = 20

/** `npm run faults` plants all of them. */
const faults = wakingFaults.slice(0, 2)

describe(`a fault is found, and shrunk to at most ${MAX_STEPS} steps`, () => {
  it.each(faults)('$invariant: $name', async ({ name, description, seed = 3, ...sabotage }) => {
    const error: unknown = await exploreRaces({ ...wakingRace(sabotage), numRuns: 5000, seed }).catch(
      (error: unknown) => error,
    )
    if (!(error instanceof RaceError)) throw new Error('the race did not fail', { cause: error })
    if (process.env['FAULT_SHOW'] !== undefined) {
      console.info(`${name}: ${description}\n${error.message.split('This test')[0]}`)
    }
    expect(error.order.length).toBeLessThanOrEqual(MAX_STEPS)
  })
})
