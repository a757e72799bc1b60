/** The contract of what runs tasks, on a worker. */
import { describe, it } from 'vitest'
import { setTimeout as pause } from 'node:timers/promises'
import { engineContract } from '../../src/testing/engine-contract.js'
import { startFleet } from '../support/fleet.js'

describe('on a worker', () => {
  const cases = engineContract(async () => {
    const fleet = await startFleet()
    const manager = fleet.manager({ maxAsyncTasks: -1, onError: () => undefined })
    return {
      manager,
      runnerOf: async (run) => {
        await fleet.worker(run, { concurrency: 1, lockMs: 30_000 })
        return fleet.runnerOf({ lockMs: 3000 })
      },
      restart: async () => {
        await fleet.redis.kill()
        await pause(500)
        await fleet.redis.start()
      },
      dispose: () => manager.dispose(),
    }
  })
  for (const { name, run } of cases) it(name, run)
})
