import { test } from 'node:test'
import { exploreRaces } from 'agent-tasks/testing'
import { autoTrigger } from './lost-completion.js'

test('no completion is lost in 200 random orders', async () => {
  await exploreRaces({ ...autoTrigger, numRuns: 200 })
})

test('no completion is lost in any order', async (context) => {
  const { orders } = await exploreRaces({ ...autoTrigger, mode: 'exhaustive' })
  context.diagnostic(`${orders} orders`)
})
