// Rounds of random abuse, several at once. FC_SEED replays a run; ABUSE_MINUTES=30 goes on for as long (`docs/tests.md`).
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { countLeftovers } from '../../support/leftovers.js'
import { seed } from '../../support/property.js'
import { abuses, round } from './abuse-run.js'
import { startTestServer, taskOf } from './test-server.js'

const minutes = Number(process.env['ABUSE_MINUTES'] ?? 0)
const ROUNDS = 12
/** How much the heap may grow in the last two thirds of a long run, when everything that is retained is full, in bytes. */
const MOST_GROWTH = 16 * 1024 * 1024

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

function usedHeap(): number {
  // The record of what may be left holds what was removed until it is asked.
  countLeftovers()
  collectGarbage()
  return process.memoryUsage().heapUsed
}

it(
  'serves on after every round of abuse, and nothing of it is left',
  { timeout: 180_000 + minutes * 90_000 },
  async () => {
    const server = await startTestServer({
      limits: { requestsPerMinute: 1e9 },
      tasks: { maxQueueSize: 1000, maxRetained: 20 },
    })
    const startedAt = Date.now()
    const endsAt = startedAt + minutes * 60_000
    let done = 0
    let fullHeap = 0
    for (let batch = 0; done < ROUNDS || Date.now() < endsAt; batch += 1) {
      for (const chosen of fc.sample(round, { numRuns: ROUNDS, seed: seed + batch })) {
        const what = `seed ${seed + batch}: ${JSON.stringify(chosen)}`
        // One after the other: they share the commands of one instance.
        const ends: (() => void)[] = []
        for (const { name, size } of chosen) ends.push(await abuses[name]!(server, { size }))
        const client = await server.client()
        await client.ask({ type: 'task_submit', ...taskOf('add'), instanceId: 'calc' })
        expect([what, (await client.skipTo('task_complete'))['status']]).toEqual([what, 'completed'])
        await client.close()
        for (const end of ends) end()
        const gauges = async (): Promise<string[]> =>
          String((await server.call('/metrics')).body['text'])
            .split('\n')
            .filter((line) => /^agent_tasks_(queued|running|lane_depth|subscribed|connections)\b.* [^0]\S*$/.test(line))
        const state = { left: ['unknown'] }
        for (let tries = 0; tries < 1000 && state.left.length > 0; tries += 1) state.left = await gauges()
        expect([what, state.left]).toEqual([what, []])
        done += 1
      }
      if (fullHeap === 0 && Date.now() >= startedAt + minutes * 20_000) fullHeap = usedHeap()
    }
    if (minutes > 0) {
      const growth = usedHeap() - fullHeap
      console.log(`abuse: ${done} rounds, seed ${seed}, heap ${fullHeap} bytes, growth ${growth} bytes`)
      expect(growth).toBeLessThan(MOST_GROWTH)
    }
  },
)
