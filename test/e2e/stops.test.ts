/** Hosts that are stopped in each way, and what the next one finds (`npm run stops` takes more rounds). */
import { beforeAll, expect, it } from 'vitest'
import { buildHost, runWay, WAYS, type Fault, type Way } from '../support/stops/rounds.js'

const SEED = 20261129

let hostFile = ''
beforeAll(async () => {
  hostFile = await buildHost()
})

async function faultsOf(way: Way, rounds: number, fault?: Fault) {
  const { tasks, differences, repeats, losses, left } = await runWay(way, { hostFile, rounds, seed: SEED, fault })
  expect(tasks).toBeGreaterThan(rounds * 10)
  return { differences, repeats, losses, left }
}

it.each(WAYS)('K13: a stop with %s leaves what a kill leaves, and the agent hears each result once', async (way) => {
  expect(await faultsOf(way, 2)).toEqual({ differences: [], repeats: [], losses: [], left: [] })
})

it('K13: a host that cancels what is queued when it is stopped is found', async () => {
  const { differences, losses } = await faultsOf('SIGTERM', 1, 'queued')
  expect(differences.join('\n')).toContain('was queued, and is cancelled')
  expect(losses.join('\n')).toContain('was never told')
})
