/**
 * Tests of what subscribers receive over WebSocket and Server-Sent Events. They must pass with one server, and with several servers behind one address.
 */
import { describe, expect, it } from 'vitest'
import { until } from './cluster-client.js'
import { connectWatched } from './cluster-instance.js'
import { command, openServed, type OpenServers } from './served-tasks.js'
import type { Received, SocketClient } from './socket-client.js'

/** An event as a short text without times. */
const shortOf = (event: Readonly<Record<string, unknown>>): string => {
  const { type, commandIndex = '', status, progress } = event as Record<string, string | number>
  return [type, commandIndex, status, ...(progress === undefined ? [] : [progress])].join(' ')
}

const STEPS = [
  'task_progress 0 running',
  ...[1, 2, 3, 4, 5].map((count) => `task_progress 0 running ${count}`),
  'task_progress 0 success',
  'task_progress 1 running',
  'task_progress 1 success',
  'task_complete  completed',
]

/** Returns all messages that a client receives until this many tasks have ended and another request was answered. */
async function allOf(client: SocketClient, ends = 1): Promise<Received[]> {
  const all: Received[] = []
  while (all.filter(({ type }) => type === 'task_complete').length < ends) all.push(await client.next())
  await client.ask({ type: 'task_list' })
  return [...all, ...client.takeAll()]
}

const toIds = (list: unknown): string[] => (list as { id: string }[]).map(({ id }) => id)

export function subscriberSuite(kind: string, open: OpenServers): void {
  const twoSteps = (mark: string) => [command('hold', { mark, reports: 5 }), command('do', { mark: `${mark} again` })]

  describe(`${kind}: subscribers`, () => {
    it('S7: get the answer to a submission, then each step once and in order, the end last', async () => {
      const { url, socket, submission } = await openServed(open)
      const worker = await connectWatched(url, 'w')
      const client = await socket()
      client.send({ type: 'task_submit', requestId: 7, ...submission('w', twoSteps('one')) })
      const answer = await client.next()
      expect(answer).toMatchObject({ type: 'task_submit_response', requestId: 7, success: true, queuePosition: 1 })
      const { taskId } = answer
      // The client receives each event once, however many of its subscriptions match.
      client.send({ type: 'subscribe_instance', instanceId: 'w' })
      client.send({ type: 'subscribe_task', taskId })
      await worker.untilStarted('one')
      worker.finish('one')
      const told = (await allOf(client)).filter(({ type }) => type !== 'subscribe_ack')
      expect(told.map(shortOf)).toEqual(STEPS)
      expect(told.every((message) => message['taskId'] === taskId && message['instanceId'] === 'w')).toBe(true)
      expect(await client.ask({ type: 'task_status', taskId })).toMatchObject({ task: { status: 'completed' } })
    })

    it('S7: of an instance get the events of its tasks, one task after the other, from its next connection too', async () => {
      const { url, socket, submit, cut, ended } = await openServed(open)
      const clients = [await socket(), await socket(), await socket()]
      for (const client of clients) {
        expect(await client.ask({ type: 'subscribe_instance', instanceId: 'w' })).toMatchObject({ instanceId: 'w' })
      }
      const worker = await connectWatched(url, 'w')
      await connectWatched(url, 'v')
      const first = await submit('w', ...twoSteps('one'))
      const second = await submit('w', ...twoSteps('two'))
      await ended(await submit('v', command('do', { mark: 'elsewhere' })))
      for (const mark of ['one', 'two']) {
        await worker.untilStarted(mark)
        worker.finish(mark)
      }
      await ended(second)
      cut()
      await until(() => submit('w', command('do', { mark: 'later' })).catch(() => undefined))
      for (const client of clients) {
        const told = await allOf(client, 3)
        expect(told.slice(0, 20).map((each) => `${String(each['taskId'])} ${shortOf(each)}`)).toEqual(
          [first, second].flatMap((id) => STEPS.map((step) => `${id} ${step}`)),
        )
        expect(told.slice(20).map(shortOf)).toEqual([
          ...['task_progress 0 running', 'task_progress 0 success', 'task_complete  completed'],
        ])
      }
    })

    it('S7: who come late get a snapshot, then what follows it; who come after the end, that', async () => {
      const { url, socket, submit } = await openServed(open)
      const worker = await connectWatched(url, 'w')
      const id = await submit('w', command('do', { mark: 'zero' }), command('hold', { mark: 'one' }))
      await worker.untilStarted('one')
      const late = await socket()
      expect(
        await until(async () => {
          const snapshot = await late.ask({ type: 'subscribe_task', taskId: id })
          if ((snapshot['task'] as { currentCommandIndex: number }).currentCommandIndex === 1) return snapshot
          await late.ask({ type: 'unsubscribe_task', taskId: id })
          late.takeAll()
          return undefined
        }),
      ).toMatchObject({ task: { status: 'running', commands: [{ status: 'success' }, {}] } })
      worker.finish('one')
      const told = (await allOf(late)).filter(({ status }) => status !== 'running')
      expect(told.map(shortOf)).toEqual(['task_progress 1 success', 'task_complete  completed'])
      const later = await socket()
      expect(await later.ask({ type: 'subscribe_task', taskId: id })).toMatchObject({ task: { status: 'completed' } })
      expect(await later.next()).toEqual(told.at(-1))
      expect(await later.ask({ type: 'subscribe_task', taskId: 'task_1_1' })).toMatchObject({
        task: null,
        code: 'TASK_NOT_FOUND',
      })
    })

    it('get nothing after they unsubscribed, and have so many subscriptions', async () => {
      const { url, socket, submit, ended } = await openServed(open, { limits: { subscriptionsPerClient: 2 } })
      const worker = await connectWatched(url, 'w')
      const id = await submit('w', command('hold', { mark: 'one' }))
      await worker.untilStarted('one')
      const client = await socket()
      await client.ask({ type: 'subscribe_task', taskId: id })
      await client.ask({ type: 'subscribe_instance', instanceId: 'w' })
      expect(await client.ask({ type: 'subscribe_instance', instanceId: 'v' })).toMatchObject({
        code: 'TOO_MANY_SUBSCRIPTIONS',
      })
      expect(await client.ask({ type: 'unsubscribe_task', taskId: id })).toMatchObject({ type: 'unsubscribe_ack' })
      await client.ask({ type: 'unsubscribe_instance', instanceId: 'w' })
      client.takeAll()
      worker.finish('one')
      await ended(id)
      const other = await socket()
      await other.ask({ type: 'subscribe_task', taskId: id })
      await other.skipTo('task_complete')
      expect((await client.ask({ type: 'task_list' }))['tasks']).toHaveLength(1)
      expect(client.takeAll()).toEqual([])
    })

    it('S7: over SSE get the same, and resume after Last-Event-ID at any point', async () => {
      const { url, socket, submit, events, fetch: request, post } = await openServed(open)
      const worker = await connectWatched(url, 'w')
      const id = await submit('w', ...twoSteps('one'))
      const client = await socket()
      await client.ask({ type: 'subscribe_task', taskId: id })
      const live = await events(id)
      await worker.untilStarted('one')
      worker.finish('one')
      const fromSnapshot = await live.rest()
      expect(fromSnapshot[0]?.event).toBe('subscribe_ack')
      const all = await (await events(id, '0')).rest()
      expect(all.map(({ data }) => shortOf(data))).toEqual(STEPS)
      expect(all.map(({ event, data }) => event === data['type'])).not.toContain(false)
      const followed = fromSnapshot.slice(1)
      expect(followed).toEqual(all.slice(all.length - followed.length))
      const told = await allOf(client)
      expect(told).toEqual(all.slice(all.length - told.length).map(({ data }) => data))
      for (const [index, { id: place = '' }] of all.entries()) {
        const left = await events(id, place)
        if (index === all.length - 1) expect(left.status).toBe(204)
        else expect(await left.rest()).toEqual(all.slice(index + 1))
      }
      expect((await request(`/tasks/${id}/events`, { method: 'HEAD' })).headers.get('content-type')).toContain('stream')
      expect((await events('task_1_1')).status).toBe(404)
      const held = await submit('w', command('hold', { mark: 'held' }))
      await worker.untilStarted('held')
      const queued = await submit('w', command('do', { mark: 'queued' }))
      await post(`/tasks/${queued}/cancel`)
      expect((await (await events(queued)).rest()).map(({ event, data }) => [event, data['status']])).toEqual([
        ...[
          ['subscribe_ack', undefined],
          ['task_complete', 'cancelled'],
        ],
      ])
      await post(`/tasks/${held}/cancel`)
    })

    it('get a large result as a reference, which any server resolves', async () => {
      const { url, submit, events, get, task, ended } = await openServed(open)
      await connectWatched(url, 'w')
      const id = await submit('w', command('do', { mark: 'large', size: 300_000 }))
      await ended(id)
      const path = `/tasks/${id}/commands/0/result`
      const all = await (await events(id, '0')).rest()
      expect(all.map(({ data }) => data['resultRef'])).toMatchObject([undefined, { path }, undefined])
      expect(await task(id)).toMatchObject({ commands: [{ resultRef: { path } }] })
      for (let n = 0; n < 3; n += 1) expect(JSON.stringify((await get(path)).body).length).toBeGreaterThan(300_000)
    })

    it('list tasks newest first, by instance and status, in pages that miss and repeat none', async () => {
      const { url, submit, get, ended } = await openServed(open)
      await connectWatched(url, 'w')
      await connectWatched(url, 'v')
      const ids: string[] = []
      for (let n = 0; n < 5; n += 1) {
        ids.push(
          await submit(n % 2 === 0 ? 'w' : 'v', command('do', { mark: `m${n}`, ...(n === 4 && { error: 'x' }) })),
        )
      }
      for (const id of ids) await ended(id)
      const listed: string[] = []
      let cursor: string | undefined
      do {
        const { body } = await get(`/tasks?limit=2${cursor === undefined ? '' : `&cursor=${cursor}`}`)
        listed.push(...toIds(body['tasks']))
        cursor = body['nextCursor'] as string | undefined
        // The events in between change nothing.
        await ended(await submit('w', command('do', { mark: 'new' })))
      } while (cursor !== undefined)
      expect(listed).toEqual(ids.toReversed())
      expect(toIds((await get('/tasks?instanceId=v')).body['tasks'])).toEqual([ids[3], ids[1]])
      expect(toIds((await get('/tasks?status=failed')).body['tasks'])).toEqual([ids[4]])
      expect(await get('/tasks?cursor=AAAA')).toMatchObject({ status: 400, body: { code: 'INVALID_CURSOR' } })
    })
  })
}
