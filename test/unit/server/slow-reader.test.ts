// A subscriber that does not read may lose progress messages, never a complete, and is closed beyond a limit.
import { expect, it } from 'vitest'
import { openEvents } from '../../support/event-source.js'
import { startTestServer, taskOf } from './test-server.js'

const MIB = 1024 * 1024
/** More messages than the system buffers for one connection. */
const FLOOD = 24

it('S7: a slow reader loses progress messages, never the complete', async () => {
  const server = await startTestServer({ limits: { slowReaderBytes: 64 * 1024 } })
  const slow = await server.client()
  const quick = await server.client()
  await quick.ask({ type: 'subscribe_instance', instanceId: 'calc' })
  await slow.ask({ type: 'task_submit', ...taskOf('hold') })
  const held = await server.held()
  slow.socket.pause()
  for (let count = 1; count <= FLOOD; count += 1) {
    held.progress(count, FLOOD, 'x'.repeat(MIB))
    // The quick reader reads each one before the next is sent.
    for (let message = await quick.next(); message['progress'] !== count;) message = await quick.next()
  }
  held.finish()
  expect((await quick.skipTo('task_complete'))['status']).toBe('completed')
  slow.socket.resume()
  const got: unknown[] = []
  for (let message = await slow.next(); message.type !== 'task_complete'; message = await slow.next()) {
    got.push(message['progress'])
  }
  expect(got.length).toBeLessThan(FLOOD)
  const { body } = await server.call('/metrics')
  const dropped = Number(/agent_tasks_dropped_frames_total (\d+)/.exec(String(body['text']))?.[1])
  // The start, the reports and the success were delivered or counted as dropped.
  expect(got.length + dropped).toBe(FLOOD + 2)
})

it('closes a reader (1013) beyond the limit, and its next connection gets the complete', async () => {
  const server = await startTestServer({ limits: { slowReaderBytes: 64 * 1024, deadReaderBytes: MIB } })
  const dead = await server.client()
  await dead.ask({ type: 'subscribe_instance', instanceId: 'calc' })
  dead.socket.pause()
  const quick = await server.client()
  let taskId: unknown
  // Each result is small enough to be in its event.
  for (let count = 0; count < 5 * FLOOD; count += 1) {
    taskId = (await quick.ask({ type: 'task_submit', ...taskOf('hold') }))['taskId']
    const held = await server.held()
    held.finish('x'.repeat(MIB / 5))
    await quick.skipTo('task_complete')
  }
  expect((await server.call('/metrics')).body['text']).toContain('agent_tasks_slow_readers_closed_total 1\n')
  dead.socket.resume()
  expect(await dead.closed).toMatchObject({ code: 1013 })
  const again = await server.client()
  await again.ask({ type: 'subscribe_task', taskId })
  expect(await again.next()).toMatchObject({ type: 'task_complete', status: 'completed', taskId })
})

it('cuts the event stream of a client that does not read, which can then resume', async () => {
  const server = await startTestServer({ limits: { slowReaderBytes: 64 * 1024, deadReaderBytes: 128 * 1024 } })
  const quick = await server.client()
  const { taskId } = await quick.ask({ type: 'task_submit', ...taskOf('hold') })
  const events = `${server.httpUrl}/tasks/${String(taskId)}/events`
  const response = await fetch(events)
  const held = await server.held()
  for (let count = 1; count <= FLOOD; count += 1) {
    held.progress(count, FLOOD, 'x'.repeat(MIB))
    for (let message = await quick.next(); message['progress'] !== count;) message = await quick.next()
  }
  held.finish()
  await quick.skipTo('task_complete')
  const { body } = await server.call('/metrics')
  expect(body['text']).toContain('agent_tasks_slow_readers_closed_total 1\n')
  expect(body['text']).not.toContain('agent_tasks_dropped_frames_total 0\n')
  await expect(response.text()).rejects.toThrow()
  const again = await openEvents(events, { 'last-event-id': String(FLOOD + 1) })
  expect((await again.rest()).map(({ event, data }) => [event, data['status']])).toEqual([
    ['task_progress', 'success'],
    ['task_complete', 'completed'],
  ])
})
