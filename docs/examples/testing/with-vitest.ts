import { test } from 'vitest'
import { exploreRaces } from 'agent-tasks/testing'
import { autoTrigger } from './lost-completion.js'

test('no completion is lost in 200 random orders', async () => {
  await exploreRaces({ ...autoTrigger, numRuns: 200 })
})

test('no completion is lost in any order', async ({ annotate }) => {
  const { orders } = await exploreRaces({ ...autoTrigger, mode: 'exhaustive' })
  await annotate(`${orders} orders`)
})
