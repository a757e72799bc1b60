/** Nodes that die or are paused, instances that are lost and come back, and Redis that goes away. */
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { LOCK_MS, startCluster, startMortalCluster } from '../support/cluster.js'
import { connectWatched } from '../support/cluster-instance.js'
import { call, holderOf, post, submit, taskFor, taskOf, until, untilEnded } from '../support/cluster-client.js'
import { openEvents } from '../support/event-source.js'

/** The texts of the events of a task, from the first. */
async function eventsOf(url: string, taskId: string): Promise<string[]> {
  const events = await (await openEvents(`${url}/tasks/${taskId}/events`, { 'last-event-id': '0' })).rest()
  return events.map(({ event, data }) => `${event} ${String(data['status'])}`)
}

describe('a node that dies', () => {
  it('N4: fails what it had in flight, and what was queued runs where the instance connects next, each once and in order', async () => {
    const { url, nodes } = await startMortalCluster(2)
    const worker = await connectWatched(url, 'w')
    const inFlight = await submit(url, taskFor('w', 'hold', { mark: 'in flight' }))
    await worker.untilStarted('in flight')
    const queued: string[] = []
    for (let n = 0; n < 10; n += 1) queued.push(await submit(url, taskFor('w', 'do', { mark: `q${n}`, ms: 5 })))
    // Whichever has it: the other one goes on.
    const holder = await holderOf(nodes.map(({ httpUrl }) => httpUrl))
    await nodes[holder]?.kill()
    const other = nodes[1 - holder]?.httpUrl ?? ''
    expect(await untilEnded(other, inFlight)).toMatchObject({
      status: 'failed',
      error: { code: 'INSTANCE_DISCONNECTED' },
    })
    for (const id of queued) expect(await untilEnded(other, id)).toMatchObject({ status: 'completed' })
    expect(worker.started()).toEqual(['in flight', ...queued.map((_, n) => `q${n}`)])
    expect(await eventsOf(other, inFlight)).toEqual(['task_progress running', 'task_complete failed'])
  })

  it('N4: fails what it had in flight at most lockMs later, also when the instance does not come back', async () => {
    const { nodes } = await startMortalCluster(2, { cluster: { publicUrl: undefined } })
    const [first, second] = nodes
    const worker = await connectWatched(first?.httpUrl ?? '', 'w')
    const id = await submit(second?.httpUrl ?? '', taskFor('w', 'hold', { mark: 'one' }))
    await worker.untilStarted('one')
    await first?.kill()
    const since = Date.now()
    const { error } = await untilEnded(second?.httpUrl ?? '', id)
    expect(error).toMatchObject({ code: 'INSTANCE_DISCONNECTED' })
    // Not a measure of speed: the promise. The rest is for a machine that is busy.
    expect(Date.now() - since).toBeLessThan(LOCK_MS + 2000)
    const { body } = await call(second?.httpUrl ?? '', '/instances')
    expect(body['instances']).toMatchObject([{ id: 'w', isConnected: false }])
    expect(await post(second?.httpUrl ?? '', '/tasks', taskFor('w', 'do', { mark: 'x' }))).toMatchObject({
      status: 409,
      body: { code: 'NOT_CONNECTED' },
    })
  })

  it('N2: a task that was answered with 201 runs, although the node that took it was killed at once', async () => {
    const { nodes } = await startMortalCluster(3, { cluster: { publicUrl: undefined } })
    const last = nodes[2]?.httpUrl ?? ''
    const worker = await connectWatched(last, 'w')
    const ids: string[] = []
    for (const node of nodes.slice(0, 2)) {
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, n) => submit(node.httpUrl, taskFor('w', 'do', { mark: `${ids.length}.${n}` }))),
      )
      await node.kill()
      ids.push(...answers)
    }
    for (const id of ids) expect(await untilEnded(last, id)).toMatchObject({ status: 'completed' })
    expect(worker.started()).toHaveLength(40)
    expect(new Set(worker.started()).size).toBe(40)
    expect(worker.mostAtOnce).toBe(1)
  })

  it('N5: is dead already when its task is cancelled: the task ends as cancelled', async () => {
    const { nodes } = await startMortalCluster(2, { cluster: { publicUrl: undefined } })
    const [first, second] = nodes
    const worker = await connectWatched(first?.httpUrl ?? '', 'w')
    const other = second?.httpUrl ?? ''
    const id = await submit(other, taskFor('w', 'hold', { mark: 'one' }))
    await worker.untilStarted('one')
    await first?.kill()
    expect(await post(other, `/tasks/${id}/cancel`)).toMatchObject({ status: 200 })
    expect(await taskOf(other, id)).toMatchObject({ status: 'cancelled', error: { code: 'CANCELLED' } })
    // Whether the node has written the start before it died is its luck.
    const ends = (await eventsOf(other, id)).filter((event) => event !== 'task_progress running')
    expect(ends).toEqual(['task_complete cancelled'])
  })

  it('N4: leaves its own instance to the node that stands by with the same', async () => {
    const { nodes, url, startNode } = await startMortalCluster(1, { local: 'tools' })
    const task = {
      ...taskFor('tools', 'do', { mark: 'x' }),
      commands: [{ tool_name: 'echo', intention: '', args: {} }],
    }
    const accepted = (): Promise<string> =>
      until(async () => {
        const { status, body } = await post(url, '/tasks', task)
        return status === 201 && String(body['taskId'])
      })
    await untilEnded(url, await accepted())
    const standby = await startNode()
    expect((await call(standby.httpUrl, '/instances')).body['instances']).toMatchObject([{ id: 'tools' }])
    await nodes[0]?.kill()
    expect(await untilEnded(url, await accepted())).toMatchObject({ status: 'completed' })
  })
})

describe('a node that is paused for longer than its lock', () => {
  it('N1: loses its instance to the node where it connects next, and what it reports later changes nothing', async () => {
    const { url, nodes } = await startMortalCluster(2)
    const worker = await connectWatched(url, 'w', 500)
    const id = await submit(url, taskFor('w', 'hold', { mark: 'one' }))
    await worker.untilStarted('one')
    const queued = await submit(url, taskFor('w', 'do', { mark: 'two' }))
    const holder = await holderOf(nodes.map(({ httpUrl }) => httpUrl))
    nodes[holder]?.pause()
    const other = nodes[1 - holder]?.httpUrl ?? ''
    expect(await untilEnded(other, id)).toMatchObject({ error: { code: 'INSTANCE_DISCONNECTED' } })
    expect(await untilEnded(other, queued)).toMatchObject({ status: 'completed' })
    const before = await taskOf(other, id)
    nodes[holder]?.resume()
    const resumed = nodes[holder]?.httpUrl ?? ''
    await until(async () => (await call(resumed, '/health')).status === 200)
    const after = await submit(resumed, taskFor('w', 'do', { mark: 'three' }))
    expect(await untilEnded(resumed, after)).toMatchObject({ status: 'completed' })
    await pause(LOCK_MS)
    expect(await taskOf(resumed, id)).toEqual(before)
    expect(await eventsOf(resumed, id)).toEqual(['task_progress running', 'task_complete failed'])
    expect(worker.started()).toEqual(['one', 'two', 'three'])
    expect(worker.mostAtOnce).toBe(1)
  })
})

describe('an instance that is lost', () => {
  it('N1: comes back on any node: its command fails, and what is queued runs in order', async () => {
    const { url, cut } = await startMortalCluster(3)
    const worker = await connectWatched(url, 'w')
    for (let round = 0; round < 4; round += 1) {
      const inFlight = await submit(url, taskFor('w', 'hold', { mark: `held ${round}` }))
      await worker.untilStarted(`held ${round}`)
      const queued: string[] = []
      for (let n = 0; n < 5; n += 1) queued.push(await submit(url, taskFor('w', 'do', { mark: `${round}.${n}` })))
      cut()
      expect(await untilEnded(url, inFlight)).toMatchObject({ error: { code: 'INSTANCE_DISCONNECTED' } })
      for (const id of queued) expect(await untilEnded(url, id)).toMatchObject({ status: 'completed' })
    }
    const rounds = [0, 1, 2, 3].flatMap((round) => [
      `held ${round}`,
      ...Array.from({ length: 5 }, (_, n) => `${round}.${n}`),
    ])
    expect(worker.started()).toEqual(rounds)
    expect(worker.mostAtOnce).toBe(1)
  })

  it('N4: its queued tasks fail when it does not come back within instanceGraceMs', async () => {
    const { url, redis } = await startMortalCluster(2, { server: { tasks: { instanceGraceMs: 500 } } })
    const worker = await connectWatched(url, 'w')
    const inFlight = await submit(url, taskFor('w', 'hold', { mark: 'one' }))
    await worker.untilStarted('one')
    const queued = await submit(url, taskFor('w', 'do', { mark: 'two' }))
    await worker.instance.close()
    for (const id of [inFlight, queued]) {
      expect(await untilEnded(url, id)).toMatchObject({ status: 'failed', error: { code: 'INSTANCE_DISCONNECTED' } })
    }
    await until(async () => ((await call(url, '/instances')).body['instances'] as unknown[]).length === 0)
    // Its queue leaves nothing behind.
    const client = new Redis(redis.url)
    onTestFinished(() => client.disconnect())
    expect(await client.keys('{agent-tasks}:i-w:*')).toEqual([])
    expect(worker.started()).toEqual(['one'])
  })
})

describe('Redis', () => {
  it('N2: is killed and starts again: nothing is lost, and nothing runs twice', async () => {
    const { url, redis } = await startMortalCluster(2)
    const worker = await connectWatched(url, 'w')
    const ids: string[] = []
    for (let n = 0; n < 40; n += 1) ids.push(await submit(url, taskFor('w', 'do', { mark: `m${n}`, ms: 20 })))
    await redis.kill()
    await pause(500)
    await redis.start()
    for (const id of ids) expect(await untilEnded(url, id)).toMatchObject({ status: 'completed' })
    expect(worker.started()).toEqual(ids.map((_, n) => `m${n}`))
  })

  it('K13, N4: a node that is stopped leaves what a killed one leaves, without a wait for its lock', async () => {
    const { url, nodes, startNode } = await startCluster(1, {
      cluster: { lockMs: 120_000 },
      server: { tasks: { drainMs: 200 } },
    })
    const worker = await connectWatched(url, 'w')
    const inFlight = await submit(url, taskFor('w', 'hold', { mark: 'one' }))
    const queued = await submit(url, taskFor('w', 'do', { mark: 'two' }))
    await worker.untilStarted('one')
    const next = (await startNode()).httpUrl
    expect(await nodes[0]?.stop()).toBe(0)
    expect(await taskOf(next, inFlight)).toMatchObject({ status: 'failed', error: { code: 'INSTANCE_DISCONNECTED' } })
    worker.finish('one')
    expect(await untilEnded(next, queued)).toMatchObject({ status: 'completed' })
    expect(worker.started()).toEqual(['one', 'two'])
  })

  it('N6: is away: a node that gets SIGTERM ends all the same, and what it had is settled when Redis is back', async () => {
    const { nodes, redis, startNode } = await startMortalCluster(1, {
      cluster: { publicUrl: undefined, lockMs: 1500 },
      server: { tasks: { drainMs: 200, instanceGraceMs: 1000 } },
    })
    const url = nodes[0]?.httpUrl ?? ''
    const worker = await connectWatched(url, 'w')
    const inFlight = await submit(url, taskFor('w', 'hold', { mark: 'one' }))
    const queued = await submit(url, taskFor('w', 'do', { mark: 'two' }))
    await worker.untilStarted('one')
    await redis.kill()
    expect(await nodes[0]?.stop()).toBe(0)
    await redis.start()
    const next = (await startNode()).httpUrl
    for (const id of [inFlight, queued]) {
      expect(await untilEnded(next, id)).toMatchObject({ status: 'failed', error: { code: 'INSTANCE_DISCONNECTED' } })
    }
    expect(worker.started()).toEqual(['one'])
  })

  it('N2: is away: a submission is refused in time, and does not run later', async () => {
    const { url, redis } = await startMortalCluster(1, { cluster: { sendTimeoutMs: 300, lockMs: 20_000 } })
    const worker = await connectWatched(url, 'w')
    const first = await submit(url, taskFor('w', 'do', { mark: 'first' }))
    await untilEnded(url, first)
    await redis.kill()
    expect(await post(url, '/tasks', taskFor('w', 'do', { mark: 'refused' }))).toMatchObject({
      status: 503,
      body: { code: 'NOT_STORED' },
    })
    await redis.start()
    const after = await until(async () => {
      const { status, body } = await post(url, '/tasks', taskFor('w', 'do', { mark: 'after' }))
      return status === 201 && String(body['taskId'])
    })
    await untilEnded(url, after)
    expect(worker.started()).toEqual(['first', 'after'])
    const { body } = await call(url, '/tasks')
    expect((body['tasks'] as { name: string }[]).map(({ name }) => name)).toEqual(['after', 'first'])
  })
})
