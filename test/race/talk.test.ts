/** Questions, messages to tasks and repeats, in any order and across crashes. */
import { describe, expect, it } from 'vitest'
import { exploreRaces, RaceError } from '../../src/testing/index.js'
import { propertyParameters } from '../support/property.js'
import { talkFaults } from './talk-faults.js'
import { talkRace } from './talk.property.js'

describe('any race of answers, follow-ups and repeats, with crashes', () => {
  it('F6, F7, F11: each question is delivered and answered once, and each message taken at most once, in order', async () => {
    const { numRuns, seed, path } = propertyParameters()
    const { runs, orders } = await exploreRaces({ ...talkRace(), numRuns, seed, ...(path !== undefined && { path }) })
    console.info(`talk: ${runs} runs, ${orders} different orders, seed ${seed}`)
  })

  it.each(talkFaults)('$invariant: finds $name', async ({ breakManager }) => {
    const race = talkRace(breakManager && { breakManager })
    const error: unknown = await exploreRaces({ ...race, numRuns: 2000, seed: 20_260_101 }).catch((e: unknown) => e)
    if (process.env['FAULT_SHOW'] !== undefined) console.info(String(error))
    expect(error).toBeInstanceOf(RaceError)
  })
})
