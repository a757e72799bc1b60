/** One node of a cluster: its tasks stand in Redis. */
import { describe, expect, it } from 'vitest'
import { startCluster } from '../support/cluster.js'
import { connectWatched } from '../support/cluster-instance.js'
import { call, post, submit, taskFor, taskOf, until, untilEnded } from '../support/cluster-client.js'

describe('one node', () => {
  it('N1: runs the tasks of an instance one at a time, in the order of submission', async () => {
    const { url } = await startCluster(1)
    const worker = await connectWatched(url, 'w')
    const ids: string[] = []
    for (let n = 0; n < 30; n += 1) ids.push(await submit(url, taskFor('w', 'do', { mark: `m${n}`, ms: n % 3 })))
    for (const id of ids) expect((await untilEnded(url, id)).status).toBe('completed')
    expect(worker.started()).toEqual(Array.from({ length: 30 }, (_, n) => `m${n}`))
    expect(worker.mostAtOnce).toBe(1)
    const { body } = await call(url, `/tasks/${String(ids[3])}`)
    expect(body['task']).toMatchObject({
      status: 'completed',
      instanceId: 'w',
      name: 'm3',
      commands: [{ status: 'success', result: { content: [{ type: 'text', text: 'm3' }] } }],
    })
  })

  it('N1: runs what it took at once in the order of the places that it answered', async () => {
    const { url } = await startCluster(1)
    const worker = await connectWatched(url, 'w')
    const first = await submit(url, taskFor('w', 'hold', { mark: 'first' }))
    await worker.untilStarted('first')
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, n) => post(url, '/tasks', taskFor('w', 'do', { mark: `m${n}` }))),
    )
    worker.finish('first')
    for (const { body } of answers) await untilEnded(url, String(body['taskId']))
    await untilEnded(url, first)
    const places = answers.map(({ body }, n) => ({ mark: `m${n}`, place: Number(body['queuePosition']) }))
    const marks = places.toSorted((one, other) => one.place - other.place).map(({ mark }) => mark)
    expect(worker.started()).toEqual(['first', ...marks])
  })

  it('cancels a queued and a running task, and says why a request is refused', async () => {
    const { url } = await startCluster(1, { server: { tasks: { maxQueueSize: 2 } } })
    const worker = await connectWatched(url, 'w')
    const running = await submit(url, taskFor('w', 'hold', { mark: 'running' }))
    await worker.untilStarted('running')
    const queued = await submit(url, taskFor('w', 'do', { mark: 'queued' }))
    expect(await post(url, '/tasks', taskFor('w', 'do', { mark: 'too many' }))).toMatchObject({
      status: 429,
      body: { code: 'QUEUE_FULL' },
    })
    expect(await post(url, '/tasks', taskFor('nobody', 'do', { mark: 'x' }))).toMatchObject({ status: 404 })
    expect(await post(url, `/tasks/${queued}/cancel`)).toMatchObject({ status: 200 })
    expect(await post(url, `/tasks/${queued}/cancel`)).toMatchObject({ status: 409, body: { code: 'TASK_ENDED' } })
    expect(await post(url, `/tasks/${running}/cancel`)).toMatchObject({ status: 200 })
    expect(await taskOf(url, running)).toMatchObject({ status: 'cancelled', error: { code: 'CANCELLED' } })
    expect(await post(url, '/tasks/task_1/cancel')).toMatchObject({ status: 404 })
    const next = await submit(url, taskFor('w', 'do', { mark: 'next' }))
    expect((await untilEnded(url, next)).status).toBe('completed')
    expect(worker.started()).toEqual(['running', 'next'])
  })

  it('lists tasks in pages, newest first, and its instances with their tools', async () => {
    const { url } = await startCluster(1)
    await connectWatched(url, 'w')
    const ids: string[] = []
    for (let n = 0; n < 5; n += 1) ids.push(await submit(url, taskFor('w', 'do', { mark: `m${n}` })))
    await untilEnded(url, String(ids[4]))
    const first = await call(url, '/tasks?limit=3&status=completed')
    const second = await call(url, `/tasks?limit=3&status=completed&cursor=${String(first.body['nextCursor'])}`)
    const listed = [first, second].flatMap(({ body }) => (body['tasks'] as { id: string }[]).map(({ id }) => id))
    expect(listed).toEqual(ids.toReversed())
    expect(second.body['nextCursor']).toBeUndefined()
    await until(async () => {
      const [instance] = (await call(url, '/instances')).body['instances'] as Record<string, unknown>[]
      return instance?.['tools'] !== undefined && instance
    })
    const [instance] = (await call(url, '/instances')).body['instances'] as Record<string, unknown>[]
    expect(instance).toMatchObject({
      id: 'w',
      kind: 'websocket',
      isConnected: true,
      tools: [{ name: 'do' }, { name: 'hold' }],
    })
  })
})
