/** Families in any order: launches, ends, deadlines and cancellations of three generations. */
import { describe, expect, it } from 'vitest'
import { exploreRaces } from '../../src/testing/index.js'
import { propertyParameters } from '../support/property.js'
import { familyRace, type FamilyScript, type FamilyWorld } from './families.property.js'

describe('any race of a family', () => {
  it('F5: nothing of a cancelled family runs, and every end is delivered once', async () => {
    const { numRuns, seed, path } = propertyParameters()
    await exploreRaces({ ...familyRace(), numRuns, seed, ...(path !== undefined && { path }) })
  })

  it('F5: a cancellation in any of all orders ends a family of three generations', async () => {
    const { inputs: _, setup, actors: _actors, ...race } = familyRace()
    const script: FamilyScript = {
      children: [1, 1],
      waits: true,
      timeoutMs: undefined,
      notifyCancelled: false,
      user: [{ do: 'cancel', nth: 0 }],
    }
    const { orders } = await exploreRaces({
      ...race,
      mode: 'exhaustive',
      setup: (each) => setup(each, script),
      actors: {
        host: [(world) => world.launch()],
        user: script.user.map((step) => (world: FamilyWorld) => world.take(step)),
      },
    })
    expect(orders).toBeGreaterThan(5)
  })
})
