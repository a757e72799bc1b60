/** Several nodes behind one address: each answers for every task, and tells its subscribers of all. */
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startCluster, type NodeProcess } from '../support/cluster.js'
import { connectWatched } from '../support/cluster-instance.js'
import { call, post, submit, taskFor, taskOf, until, untilEnded } from '../support/cluster-client.js'
import { openEvents, type ServerSentEvent } from '../support/event-source.js'
import { startNearCluster } from '../support/near-cluster.js'
import { openSocket, type Received, type SocketClient } from '../support/socket-client.js'

async function open(node: NodeProcess): Promise<SocketClient> {
  const client = await openSocket(node.wsUrl)
  onTestFinished(() => client.close())
  await client.skipTo('welcome')
  return client
}

/** What an event says, without times. */
const shortOf = (event: Readonly<Record<string, unknown>>): string => {
  const { type, status, progress } = event as { type: string; status: string; progress?: number }
  return progress === undefined ? `${type} ${status}` : `${type} ${status} ${progress}`
}

const reports = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, n) => `task_progress running ${from + n}`)

describe('several nodes', () => {
  it('N3: each answers for every task, over REST and WebSocket', async () => {
    const { url, nodes } = await startCluster(3)
    const worker = await connectWatched(url, 'w')
    for (const [index, node] of nodes.entries()) {
      const id = await submit(node.httpUrl, taskFor('w', 'hold', { mark: `t${index}` }))
      await worker.untilStarted(`t${index}`)
      for (const other of nodes) {
        expect(await taskOf(other.httpUrl, id)).toMatchObject({ status: 'running' })
        const client = await open(other)
        expect(await client.ask({ type: 'task_status', taskId: id, requestId: 1 })).toMatchObject({ task: { id } })
        expect((await call(other.httpUrl, '/instances')).body['instances']).toMatchObject([{ id: 'w', queued: 1 }])
      }
      worker.finish(`t${index}`)
      for (const other of nodes) expect(await untilEnded(other.httpUrl, id)).toMatchObject({ status: 'completed' })
    }
    const [first, second, third] = nodes.map(({ httpUrl }) => httpUrl)
    const lists = await Promise.all([first, second, third].map((node) => call(node ?? '', '/tasks')))
    expect(lists[1]?.body).toEqual(lists[0]?.body)
    expect(lists[2]?.body).toEqual(lists[0]?.body)
    // A cursor of one node is good on another.
    const page = await call(first ?? '', '/tasks?limit=1')
    const rest = await call(second ?? '', `/tasks?cursor=${String(page.body['nextCursor'])}`)
    expect([...(page.body['tasks'] as []), ...(rest.body['tasks'] as [])]).toEqual(lists[0]?.body['tasks'])
  })

  it('N3: sends each subscriber each event once, in order, complete last, on every node', async () => {
    const { url, nodes } = await startCluster(2)
    const worker = await connectWatched(url, 'w')
    const clients = await Promise.all([...nodes, ...nodes].map(open))
    for (const client of clients) await client.ask({ type: 'subscribe_instance', instanceId: 'w', requestId: 0 })
    const heard: Received[][] = clients.map(() => [])
    const task = { ...taskFor('w', 'hold', { mark: 'one', reports: 20 }), type: 'task_submit', requestId: 1 }
    const [submitter] = clients
    submitter?.send(task)
    const answer = await submitter?.next()
    // The answer precedes the first event, also for a subscriber of the instance.
    expect(answer).toMatchObject({ type: 'task_submit_response', success: true })
    const taskId = String(answer?.['taskId'])
    await worker.untilStarted('one')
    // A second subscription to the same events, in the middle of them.
    for (const client of clients.slice(1)) client.send({ type: 'subscribe_task', taskId, requestId: 2 })
    worker.finish('one')
    for (const [index, client] of clients.entries()) {
      for (;;) {
        const message = await client.next()
        if (message.type !== 'subscribe_ack') heard[index]?.push(message)
        if (message.type === 'task_complete') break
      }
      await client.ask({ type: 'task_list', requestId: 3 })
      heard[index]?.push(...client.takeAll().filter(({ type }) => type !== 'subscribe_ack'))
    }
    const all = ['task_progress running', ...reports(1, 20), 'task_progress success', 'task_complete completed']
    for (const messages of heard) expect(messages.map(shortOf)).toEqual(all)
  })

  it.each([
    ['have been removed', (redis: Redis) => redis.incr('{agent-tasks}:cluster:n')],
    // The numbers go back when Redis restarts from an older copy of its data.
    ['have been lost', (redis: Redis) => redis.set('{agent-tasks}:cluster:n', 0)],
  ])(
    'N3: a node whose events %s reads those of tasks, and lets the subscribers of instances begin anew',
    async (_what, change) => {
      const { url, nodes, redis } = await startNearCluster(2)
      const worker = await connectWatched(url, 'w')
      const id = await submit(url, taskFor('w', 'hold', { mark: 'one' }))
      await worker.untilStarted('one')
      const { wsUrl } = nodes[0]!
      const [ofTask, ofInstance] = [await openSocket(wsUrl), await openSocket(wsUrl)]
      onTestFinished(() => ofTask.close())
      for (const client of [ofTask, ofInstance]) await client.skipTo('welcome')
      await ofTask.ask({ type: 'subscribe_task', taskId: id })
      await ofInstance.ask({ type: 'subscribe_instance', instanceId: 'w' })
      const admin = new Redis(redis.url)
      onTestFinished(() => admin.disconnect())
      await change(admin)
      worker.finish('one')
      expect(await ofTask.skipTo('task_complete')).toMatchObject({ status: 'completed' })
      expect(await ofInstance.closed).toEqual({
        code: 1013,
        reason: 'Events may be missing. Reconnect and subscribe again.',
      })
    },
  )

  it('N3: a subscriber that comes back to another node misses nothing', async () => {
    const { nodes } = await startCluster(2, { cluster: { publicUrl: undefined } })
    const [first, second] = nodes
    const worker = await connectWatched(second?.httpUrl ?? '', 'w')
    const id = await submit(first?.httpUrl ?? '', taskFor('w', 'hold', { mark: 'one', reports: 30 }))
    const heard: ServerSentEvent[] = []
    const before = await openEvents(`${first?.httpUrl ?? ''}/tasks/${id}/events`, { 'last-event-id': '0' })
    while (heard.length < 10) {
      const event = await before.next()
      if (event !== undefined) heard.push(event)
    }
    await first?.kill()
    const after = await openEvents(`${second?.httpUrl ?? ''}/tasks/${id}/events`, {
      'last-event-id': String(heard.at(-1)?.id),
    })
    await worker.untilStarted('one')
    worker.finish('one')
    heard.push(...(await after.rest()))
    expect(heard.map(({ id: place }) => Number(place))).toEqual(heard.map((_, index) => index + 1))
    expect(heard.slice(0, 31).map(({ data }) => shortOf(data))).toEqual(['task_progress running', ...reports(1, 30)])
    expect(heard.at(-1)?.event).toBe('task_complete')
    // All was seen: nothing follows, on any node.
    const again = await fetch(`${second?.httpUrl ?? ''}/tasks/${id}/events`, {
      headers: { 'last-event-id': String(heard.at(-1)?.id) },
    })
    expect(again.status).toBe(204)
  })

  it('N1: a worker that says hello to another node is there from then on, and may come back', async () => {
    const { nodes } = await startCluster(2, { cluster: { publicUrl: undefined } })
    const [first, second] = nodes.map(({ httpUrl }) => httpUrl) as [string, string]
    const { body } = await post(first, '/register', { instanceId: 'w', tools: [{ name: 'do' }] })
    const hello = { type: 'hello', instanceId: 'w', secret: body['secret'] }
    const connectTo = async (url: string, more = {}): Promise<SocketClient> => {
      const worker = await openSocket(`${url.replace('http', 'ws')}/worker`)
      onTestFinished(() => worker.close())
      worker.send({ ...hello, ...more })
      return worker
    }
    const wrong = await connectTo(second, { secret: 'wrong' })
    expect((await wrong.closed).code).toBe(4401)
    // A worker that was started again proves with its secret that it is the same, at any node.
    for (const [secret, status] of [
      ['wrong', 409],
      [body['secret'], 201],
    ]) {
      const resumed = await post(second, '/register', { instanceId: 'w', secret })
      expect(resumed.status).toBe(status)
      if (status === 201) expect(resumed.body).toMatchObject({ instanceId: 'w', secret: body['secret'] })
    }
    let before: SocketClient | undefined
    for (const [index, url] of [first, second, first, second].entries()) {
      const worker = await connectTo(url)
      await worker.skipTo('welcome')
      // The node that had it hears of that, and lets the old socket go; its call fails.
      if (before !== undefined) expect([4409, 4410]).toContain((await before.closed).code)
      const submitted = await post(
        index % 2 === 0 ? second : first,
        '/tasks',
        taskFor('w', 'do', { mark: `m${index}` }),
      )
      const called = await worker.skipTo('tool_call')
      expect(called['arguments']).toMatchObject({ mark: `m${index}` })
      before = worker
      // The third call is in flight when the worker moves.
      if (index === 2) continue
      worker.send({ type: 'tool_result', callId: called['callId'], result: { content: [] } })
      expect(await untilEnded(first, String(submitted.body['taskId']))).toMatchObject({ status: 'completed' })
    }
    const { tasks } = (await call(second, '/tasks')).body as { tasks: { name: string; status: string }[] }
    expect(tasks.map(({ name, status }) => `${name} ${status}`)).toEqual([
      ...['m3 completed', 'm2 failed', 'm1 completed', 'm0 completed'],
    ])
  })

  it('N1: a worker that is welcomed is known to every node', async () => {
    const { nodes } = await startNearCluster(2, { hasOwnAddresses: true, firstDelayMs: 50 })
    const [slow, other] = nodes.map(({ httpUrl }) => httpUrl) as [string, string]
    const worker = await connectWatched(slow, 'w')
    const id = await submit(other, taskFor('w', 'do', { mark: 'one' }))
    expect((await call(other, '/instances')).body).toMatchObject({
      instances: [{ id: 'w', isConnected: true, tools: [{ name: 'do' }, { name: 'hold' }] }],
    })
    expect(await untilEnded(other, id)).toMatchObject({ status: 'completed' })
    expect(worker.started()).toEqual(['one'])
  })

  it('N5: a cancel reaches the task on whichever node runs it', async () => {
    const { url, nodes } = await startCluster(3)
    const worker = await connectWatched(url, 'w')
    for (const [index, { httpUrl }] of nodes.entries()) {
      const id = await submit(url, taskFor('w', 'hold', { mark: `t${index}` }))
      await worker.untilStarted(`t${index}`)
      expect(await post(httpUrl, `/tasks/${id}/cancel`)).toMatchObject({ status: 200 })
      expect(await taskOf(url, id)).toMatchObject({ status: 'cancelled', error: { message: 'Task cancelled' } })
    }
    await until(() => Promise.resolve(worker.deeds.filter(({ step }) => step === 'end').length === 3))
  })

  it('N5: the limit of a queue is that of all nodes, and so is an idempotency key', async () => {
    const { url, nodes } = await startCluster(3, { server: { tasks: { maxQueueSize: 10 } } })
    const worker = await connectWatched(url, 'w')
    const id = await submit(url, taskFor('w', 'hold', { mark: 'first' }))
    await worker.untilStarted('first')
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        post(nodes[n % 3]?.httpUrl ?? '', '/tasks', taskFor('w', 'do', { mark: `m${n}` })),
      ),
    )
    const accepted = answers.filter(({ status }) => status === 201)
    expect(accepted).toHaveLength(9)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(21)
    expect(accepted.map(({ body }) => body['queuePosition']).toSorted()).toEqual([10, 2, 3, 4, 5, 6, 7, 8, 9])
    worker.finish('first')
    await untilEnded(url, id)
    for (const { body } of accepted) await untilEnded(url, String(body['taskId']))
    expect(worker.started()).toHaveLength(10)
    const key = { 'idempotency-key': 'k' }
    const same = await Promise.all(
      nodes.map(({ httpUrl }) => post(httpUrl, '/tasks', taskFor('w', 'do', { mark: 'once' }), key)),
    )
    expect(new Set(same.map(({ body }) => body['taskId'])).size).toBe(1)
    await untilEnded(url, String(same[0]?.body['taskId']))
    expect(worker.started().filter((mark) => mark === 'once')).toHaveLength(1)
    expect(await post(url, '/tasks', taskFor('w', 'do', { mark: 'another' }), key)).toMatchObject({
      status: 422,
      body: { code: 'IDEMPOTENCY_KEY_REUSED' },
    })
  })
})
