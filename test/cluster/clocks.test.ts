/** Machines whose clocks differ by a minute, forwards and backwards. */
import { describe, expect, it } from 'vitest'
import { startMortalCluster } from '../support/cluster.js'
import { call, post, submit, taskFor, taskOf, until, untilEnded } from '../support/cluster-client.js'
import { connectWatched } from '../support/cluster-instance.js'
import { LOCK_MS, startFleet } from '../support/fleet.js'
import { shiftedClock } from '../support/shifted-clock.js'
import { startSpoken } from '../support/spoken-process.js'

const MINUTE = 60_000

const goal = (goalPrompt: string) => ({ subagentName: 'research', goalPrompt })

describe('workers whose clocks differ from that of their host', () => {
  it('W1, W3, W4: run tasks once, stop them when they are cancelled, and are given up only when they die', async () => {
    const fleet = await startFleet()
    const startWorker = async (shiftMs: number) => {
      const worker = startSpoken('fleet-worker', [fleet.redis.url, LOCK_MS, 4], shiftedClock(shiftMs))
      await worker.says('ready')
      return worker
    }
    const first = await startWorker(MINUTE)
    const manager = fleet.manager({ maxAsyncTasks: -1 })
    const run = fleet.runnerOf()
    const retry = { attempts: 2, on: ['interrupted'], backoff: { initialMs: 0 } } as const
    const endOf = async (id: string) => (await manager.waitFor([id], { timeoutMs: 60_000 })).settled[0]
    // Longer than its lock: it is renewed by its own clock.
    const long = manager.launch(goal(`hold ${LOCK_MS}`), run)
    const cancelled = manager.launch(goal('hold 100000'), run)
    const again = manager.launch(goal('again'), { run, retry })
    await first.says('started', ({ started }) => started === cancelled.id)
    manager.cancelTask(cancelled.id)
    await first.says('aborted')
    expect(await endOf(long.id)).toMatchObject({ status: 'completed', output: { final_message: 'attempt 1' } })
    expect(first.said.filter(({ started }) => started === again.id)).toHaveLength(1)
    expect(manager.getTask(again.id)?.status).toBe('running')
    const second = await startWorker(-MINUTE)
    first.signal('SIGKILL')
    expect(await endOf(again.id)).toMatchObject({ status: 'completed', output: { final_message: 'attempt 2' } })
    expect(second.said.flatMap((line) => ('started' in line ? [line['started']] : []))).toEqual([again.id])
  })
})

describe('nodes whose clocks differ', () => {
  it('N1, N2, N4, N5: run tasks once and in order, cancel them, and take over from each other', async () => {
    const { nodes, startNode } = await startMortalCluster(0, {
      cluster: { publicUrl: undefined },
      server: { tasks: { instanceGraceMs: 6000, retentionMs: 30_000 } },
    })
    const fast = await startNode({ clockShiftMs: MINUTE })
    const slow = await startNode({ clockShiftMs: -MINUTE })
    const onFast = await connectWatched(fast.httpUrl, 'f')
    const onSlow = await connectWatched(slow.httpUrl, 's')
    const ids: string[] = []
    for (let n = 0; n < 10; n += 1) {
      for (const lane of ['f', 's']) {
        ids.push(await submit(nodes[n % 2]?.httpUrl ?? '', taskFor(lane, 'do', { mark: `${lane}${n}`, ms: 5 })))
      }
    }
    for (const id of ids) expect(await untilEnded(slow.httpUrl, id)).toMatchObject({ status: 'completed' })
    const marks = (lane: string) => Array.from({ length: 10 }, (_, n) => `${lane}${n}`)
    expect([onFast.started(), onSlow.started()]).toEqual([marks('f'), marks('s')])

    const held = await submit(slow.httpUrl, taskFor('f', 'hold', { mark: 'cancelled' }))
    await onFast.untilStarted('cancelled')
    expect(await post(slow.httpUrl, `/tasks/${held}/cancel`)).toMatchObject({ status: 200 })

    const inFlight = await submit(slow.httpUrl, taskFor('f', 'hold', { mark: 'in flight' }))
    await onFast.untilStarted('in flight')
    const waiting = await submit(slow.httpUrl, taskFor('f', 'do', { mark: 'waiting' }))
    await fast.kill()
    expect(await untilEnded(slow.httpUrl, inFlight)).toMatchObject({ error: { code: 'INSTANCE_DISCONNECTED' } })
    const { startedAt, completedAt } = (await taskOf(slow.httpUrl, inFlight)) as unknown as Record<string, number>
    expect(completedAt).toBeGreaterThanOrEqual(startedAt ?? Infinity)
    // It waits for its instance as long as was said, whatever the clocks say.
    expect(await taskOf(slow.httpUrl, waiting)).toMatchObject({ status: 'queued' })
    const { body } = await call(slow.httpUrl, '/instances')
    expect(body['instances']).toMatchObject([{ id: 'f', isConnected: false, queued: 1 }, { id: 's' }])
    await until(async () => (await taskOf(slow.httpUrl, waiting)).status === 'failed')
    // What has ended is kept.
    expect(await taskOf(slow.httpUrl, ids[0] ?? '')).toMatchObject({ status: 'completed' })
  })
})
