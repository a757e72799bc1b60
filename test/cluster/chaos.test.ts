/**
 * Nodes, workers and hosts are killed and paused, sockets cut and Redis killed, at random from a seed, while clients submit and hosts launch. What clients
 * were told, and what instances and runs did, must agree: nothing lost, nothing twice, in order, one at a time. `npm run chaos -- --minutes 30` goes on for
 * longer.
 */
import { expect, it } from 'vitest'
import { createRandom } from '../bench/soak/random.js'
import { startClients } from '../support/chaos/clients.js'
import { Faults, type Slot } from '../support/chaos/faults.js'
import { judge } from '../support/chaos/judge.js'
import { faultLines, reportLines } from '../support/chaos/report.js'
import { createRuns } from '../support/chaos/runs.js'
import { LOCK_MS, startCluster } from '../support/cluster.js'
import { connectTo, startFront } from '../support/front.js'

const seconds = Number(process.env['CHAOS_SECONDS'] ?? 20)
const seed = Number(process.env['CHAOS_SEED'] ?? 1)

/** A lock of this test, in ms: a machine that is busy with all its processes is not to lose any by itself. */
const LOCK = 2 * LOCK_MS

/** How long all may take to end when nothing strikes any more, in ms. */
const REST_MS = 30_000 + seconds * 100

it(
  'N1, N2, N4, W1, W2, W4, W5, W6: nothing is lost, runs twice, out of order or two at once, whatever dies',
  async () => {
    const cluster = await startCluster(0)
    const redisFront = await startFront(() => connectTo(cluster.redis.port))
    const connection = `redis://127.0.0.1:${redisFront.port}`
    const runs = createRuns({ redisUrl: connection, lockMs: LOCK, seed, hosts: 2, workers: 5 })
    const startNode = () =>
      cluster.startNode({
        cluster: { connection, lockMs: LOCK },
        server: { tasks: { instanceGraceMs: 600_000, retentionMs: seconds * 2000 + 600_000, maxRetained: 1_000_000 } },
      })
    const nodes = Array.from({ length: 3 }, (): Slot => ({ target: 'node', start: startNode }))
    const faults = new Faults({
      random: createRandom(seed),
      slots: [...nodes, ...runs.slots],
      pauseMs: LOCK,
      redis: cluster.redis,
      cut: { clients: cluster.cut, redis: redisFront.cut },
    })
    await faults.ready()
    const clients = await startClients({ url: cluster.url, seed, instances: 20, clients: 10, heartbeatMs: 1000 })
    const startedAt = Date.now()
    await faults.strike(seconds * 1000)
    await faults.ready()
    const [tasks, { works, silences }] = await Promise.all([clients.finish(REST_MS), runs.finish(REST_MS)])
    const told = [
      { title: '20 instances on 3 nodes, 10 clients', works: tasks, verdict: judge(tasks, faults.all, []) },
      { title: 'Runs of 2 hosts on 5 workers', works, verdict: judge(works, faults.all, silences) },
    ]
    const lines = [...faultLines(faults.all, startedAt), `seed ${seed}, ${seconds} s, ${faults.all.length} faults`]
    console.log([...lines, ...told.flatMap(reportLines)].join('\n'))
    expect(faults.crashes, 'processes that have ended by themselves').toEqual([])
    for (const { works: all, verdict } of told) {
      const { lost, twice, outOfOrder, twoAtOnce } = verdict
      expect({ lost, twice, outOfOrder, twoAtOnce }).toEqual({ lost: [], twice: [], outOfOrder: [], twoAtOnce: [] })
      expect(all.filter(({ ends }) => ends[0]?.status === 'completed').length).toBeGreaterThan(20)
    }
  },
  seconds * 1000 + REST_MS + 120_000,
)
