// The events of a task as Server-Sent Events: the same events as on the socket, and resuming an interrupted stream.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { openEvents } from '../../support/event-source.js'
import { startTestServer, taskOf, type TestServer } from './test-server.js'

async function submitted(server: TestServer, ...tools: string[]): Promise<{ taskId: string; events: string }> {
  const { body } = await server.post('/tasks', taskOf(...tools))
  const taskId = String(body['taskId'])
  return { taskId, events: `${server.httpUrl}/tasks/${taskId}/events` }
}

describe('GET /tasks/:id/events', () => {
  it('S7: sends a snapshot, each step in order, complete last, and ends', async () => {
    const server = await startTestServer()
    const { taskId, events } = await submitted(server, 'hold', 'add')
    const held = await server.held()
    const stream = await openEvents(events)
    expect([stream.status, stream.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
    expect(await stream.next()).toMatchObject({
      id: '1',
      event: 'subscribe_ack',
      data: { type: 'subscribe_ack', taskId, task: { status: 'running' } },
    })
    held.progress(1, 2)
    held.finish()
    const told = await stream.rest()
    expect(
      told.map(({ id, event, data }) => [id, event, data['commandIndex'], data['status'], data['progress']]),
    ).toEqual([
      ['2', 'task_progress', 0, 'running', 1],
      ['3', 'task_progress', 0, 'success', undefined],
      ['4', 'task_progress', 1, 'running', undefined],
      ['5', 'task_progress', 1, 'success', undefined],
      ['6', 'task_complete', undefined, 'completed', undefined],
    ])
  })

  it('sends the same messages as the socket', async () => {
    const server = await startTestServer()
    const client = await server.client()
    await client.ask({ type: 'subscribe_instance', instanceId: 'calc' })
    const { events } = await submitted(server, 'add', 'blow', 'add')
    const overSocket = [
      await client.next(),
      await client.next(),
      await client.next(),
      await client.next(),
      await client.next(),
    ]
    const stream = await openEvents(events, { 'last-event-id': '0' })
    expect((await stream.rest()).map(({ data }) => data)).toEqual(overSocket)
    expect(overSocket.at(-1)).toMatchObject({ type: 'task_complete', status: 'failed' })
  })

  it('resumes after Last-Event-ID at any point: nothing twice, nothing lost', async () => {
    const server = await startTestServer()
    const { events } = await submitted(server, 'hold', 'hold', 'add')
    const first = await server.held()
    const started = await openEvents(events, { 'last-event-id': '0' })
    const before = [await started.next()]
    started.abort()
    first.progress(1)
    first.progress(2)
    first.finish()
    const second = await server.held()
    const resumed = await openEvents(events, { 'last-event-id': String(before.at(-1)?.id) })
    for (let count = 0; count < 4; count += 1) before.push(await resumed.next())
    second.finish()
    const all = [...before, ...(await resumed.rest())]
    expect(all.map((event) => event?.id)).toEqual(['1', '2', '3', '4', '5', '6', '7', '8', '9'])
    for (let seen = 0; seen < 9; seen += 1) {
      const again = await openEvents(events, { 'last-event-id': String(seen) })
      expect(await again.rest()).toEqual(all.slice(seen))
    }
  })

  it('answers 204 when no event is left, so that an EventSource does not reconnect', async () => {
    const server = await startTestServer()
    const { events } = await submitted(server, 'add')
    const told = await (await openEvents(events)).rest()
    expect((await openEvents(events, { 'last-event-id': String(told.at(-1)?.id) })).status).toBe(204)
  })

  it('sends the end of a task whose events were removed once, and answers 204 to the reconnections that follow', async () => {
    const clock = createManualClock(1_000_000)
    const server = await startTestServer({ clock })
    const { events } = await submitted(server, 'add')
    const seen = (await (await openEvents(events)).rest()).at(-1)?.id
    clock.advance(600_000)
    // It was away while the events were removed: the number that it has is of no use any more.
    let last: string | undefined = seen
    const ends: unknown[] = []
    for (let count = 0; count < 5; count += 1) {
      const stream = await openEvents(events, { 'last-event-id': String(last) })
      const received = await stream.rest()
      ends.push([stream.status, ...received.map(({ event }) => event)])
      last = received.at(-1)?.id ?? last
    }
    expect(ends).toEqual([[200, 'subscribe_ack', 'task_complete'], [204], [204], [204], [204]])
  })

  it.each([0, 600_000])(
    'sends the end to a client that was cut off after the snapshot, %i ms after the end',
    async (ms) => {
      const clock = createManualClock(1_000_000)
      const server = await startTestServer({ clock })
      const { events } = await submitted(server, 'add')
      await (await openEvents(events)).rest()
      clock.advance(ms)
      const snapshot = await (await openEvents(events)).next()
      expect(snapshot).toMatchObject({ event: 'subscribe_ack', data: { task: { status: 'completed' } } })
      const again = await openEvents(events, { 'last-event-id': String(snapshot?.id) })
      expect((await again.rest()).at(-1)).toMatchObject({ event: 'task_complete' })
    },
  )

  it('answers HEAD with the headers alone, and opens no stream', async () => {
    const server = await startTestServer({ limits: { connectionsPerClient: 1 } })
    const { events } = await submitted(server, 'hold')
    for (let count = 0; count < 3; count += 1) {
      const response = await fetch(events, { method: 'HEAD' })
      expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
    }
    const { body } = await server.call('/metrics')
    expect(body['text']).toContain('agent_tasks_connections{kind="event_stream"} 0\n')
    expect(body['text']).toContain('agent_tasks_subscribed 0\n')
    expect((await fetch(`${server.httpUrl}/tasks/none/events`, { method: 'HEAD' })).status).toBe(404)
  })

  it.each(['7000', 'x', '-1', '99999999999999999999'])(
    'begins with a snapshot when the Last-Event-ID is %s, which it never told',
    async (id) => {
      const server = await startTestServer()
      const { events } = await submitted(server, 'add')
      await (await openEvents(events)).rest()
      const told = await (await openEvents(events, { 'last-event-id': id })).rest()
      expect(told.map(({ event }) => event)).toEqual(['subscribe_ack', 'task_complete'])
    },
  )

  it('sends snapshot and complete of a task that was cancelled while queued', async () => {
    const server = await startTestServer()
    await submitted(server, 'hold')
    const { taskId, events } = await submitted(server, 'add')
    const stream = await openEvents(events)
    await stream.next()
    await server.post(`/tasks/${taskId}/cancel`)
    expect(await stream.rest()).toMatchObject([
      { event: 'task_complete', data: { status: 'cancelled', summary: { duration: 0 } } },
    ])
  })

  it('answers 404 for an unknown task', async () => {
    const server = await startTestServer()
    expect((await openEvents(`${server.httpUrl}/tasks/none/events`)).status).toBe(404)
  })
})

it('has the names of events that docs/protocol.md has', () => {
  const named = readFileSync('docs/protocol.md', 'utf8').matchAll(/`?event: (\w+)/g)
  const names = [...named].map(([, name]) => name)
  expect(names).toContain('subscribe_ack')
  expect(names.filter((name) => !['subscribe_ack', 'task_progress', 'task_complete'].includes(name ?? ''))).toEqual([])
})
