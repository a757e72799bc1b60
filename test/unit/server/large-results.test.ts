// Results of any size: small ones are in the events, larger ones are referred to, and what is too large for the server fails its command.
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createTaskClient } from '../../../src/client/index.js'
import { jsonPieces } from '../../../src/http/json-pieces.js'
import { openEvents } from '../../support/event-source.js'
import { createHolding, startTestServer, taskOf, type TestServer } from './test-server.js'

const KIB = 1024
const MIB = 1024 * KIB
const contentOf = (text: string) => ({ content: [{ type: 'text', text }] })
const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

/** Runs a task whose commands return texts of these sizes. */
async function runSizes(server: TestServer, sizes: readonly number[]): Promise<string> {
  const { body } = await server.post('/tasks', taskOf(...sizes.map(() => 'hold')))
  for (const size of sizes) (await server.held()).finish('é'.repeat(size / 2))
  return String(body['taskId'])
}

describe('a result', () => {
  it('S7: over 256 KiB is referred to in every event and snapshot, which reach every reader, and is sent by its route', async () => {
    const server = await startTestServer()
    const client = await server.client()
    await client.ask({ type: 'subscribe_instance', instanceId: 'calc' })
    const taskId = await runSizes(server, [10, 10 * MIB, 100 * KIB])
    const path = `/tasks/${taskId}/commands/1/result`
    const large = contentOf('é'.repeat(5 * MIB))
    const references = [contentOf('é'.repeat(5)), { path, bytes: bytesOf(large) }, contentOf('é'.repeat(50 * KIB))]
    const shown = (items: unknown) =>
      (items as { result?: unknown; resultRef?: unknown }[]).map(({ result, resultRef }) => result ?? resultRef)
    const complete = await client.skipTo('task_complete')
    expect(shown(complete['results'])).toEqual(references)
    const status = await client.ask({ type: 'task_status', taskId })
    expect(shown((status['task'] as { commands: unknown }).commands)).toEqual(references)
    const { body } = await server.call(`/tasks/${taskId}`)
    expect(shown((body['task'] as { commands: unknown }).commands)).toEqual(references)
    const events = await (await openEvents(`${server.httpUrl}/tasks/${taskId}/events`, { 'last-event-id': '0' })).rest()
    expect(events.at(-1)?.data).toEqual(complete)
    expect(events[3]?.data).toMatchObject({ status: 'success', resultRef: references[1] })
    const answer = await fetch(server.httpUrl + path)
    expect(answer.headers.get('content-length')).toBe(String(bytesOf(large)))
    expect(await answer.json()).toEqual(large)
    const byClient = createTaskClient({ url: server.httpUrl })
    onTestFinished(() => byClient.close())
    expect(await byClient.result(taskId, 1)).toEqual(large)
    await expect(byClient.result(taskId, 7)).rejects.toMatchObject({ code: 'RESULT_NOT_FOUND' })
    await expect(byClient.result('nobody', 0)).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' })
  })

  it('is referred to when those before it fill the event', async () => {
    const server = await startTestServer()
    const client = await server.client()
    await client.ask({ type: 'subscribe_instance', instanceId: 'calc' })
    await runSizes(
      server,
      Array.from({ length: 10 }, () => 200 * KIB),
    )
    const { results } = (await client.skipTo('task_complete')) as unknown as { results: { resultRef?: object }[] }
    expect(results.map(({ resultRef }) => resultRef !== undefined)).toEqual([
      ...Array.from({ length: 5 }, () => false),
      ...Array.from({ length: 5 }, () => true),
    ])
    expect(bytesOf(results)).toBeLessThan(1.1 * MIB)
  })

  it('S9: that is too large to be kept fails its command, whatever shares its text', async () => {
    const { instance, held } = createHolding('calc')
    const server = await startTestServer({ instances: [instance] })
    const shared = 'x'.repeat(MIB)
    for (const result of [
      'x'.repeat(110 * MIB),
      contentOf('x'.repeat(110 * MIB)),
      { content: Array.from({ length: 600 }, () => ({ type: 'text', text: shared })) },
    ]) {
      const client = await server.client()
      await client.ask({ type: 'task_submit', ...taskOf('hold', 'add') })
      ;(await held()).finish(result)
      expect(await client.skipTo('task_complete')).toMatchObject({
        status: 'failed',
        error: { code: 'RESULT_TOO_LARGE', message: 'The result has more than 16777216 bytes of JSON.' },
        results: [{ status: 'error' }, { status: 'skipped' }],
      })
      await client.close()
    }
  })

  it('S9: fails its command when its task, or all tasks, would hold too much', async () => {
    const server = await startTestServer({ tasks: { maxTaskBytes: MIB, maxBytes: 2 * MIB } })
    const client = await server.client()
    await client.ask({ type: 'task_submit', ...taskOf('hold', 'hold') })
    ;(await server.held()).finish('x'.repeat(600 * KIB))
    ;(await server.held()).finish('x'.repeat(600 * KIB))
    expect(await client.skipTo('task_complete')).toMatchObject({
      error: {
        code: 'RESULT_TOO_LARGE',
        message: expect.stringContaining('the task would hold more than 1048576') as string,
      },
    })
  })

  it('cuts the message of an error, and never fails to send one', async () => {
    const server = await startTestServer()
    const client = await server.client()
    await client.ask({ type: 'task_submit', ...taskOf('hold') })
    ;(await server.held()).fail(new Error('x'.repeat(50 * MIB)))
    const { error } = await client.skipTo('task_complete')
    expect((error as { message: string }).message).toHaveLength(
      10_000 + ' [cut: the first 10000 of 52428800 characters]'.length,
    )
  })

  it('is sent as fast as it is read', async () => {
    const server = await startTestServer()
    const taskId = await runSizes(server, [12 * MIB])
    const sent = request(`${server.httpUrl}/tasks/${taskId}/commands/0/result`).end()
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    onTestFinished(() => void sent.destroy())
    // Nobody reads it: closing the server does not wait for it.
    response.pause()
    expect(await server.call('/health')).toMatchObject({ status: 200 })
  })
})

it('S9: ended tasks are forgotten, the earliest first, when they hold too many bytes; then submissions are refused', async () => {
  const server = await startTestServer({ tasks: { maxBytes: 2 * MIB } })
  const client = await server.client()
  const ids: unknown[] = []
  for (let count = 0; count < 4; count += 1) {
    ids.push((await client.ask({ type: 'task_submit', ...taskOf('hold') }))['taskId'])
    ;(await server.held()).finish('x'.repeat(700 * KIB))
    await client.skipTo('task_complete')
  }
  expect(server.taskManager.listTasks().map(({ id }) => id)).toEqual(ids.slice(2))
  const heavy = taskOf({ tool_name: 'hold', args: { filler: 'x'.repeat(900 * KIB) } })
  expect(await client.ask({ type: 'task_submit', ...heavy })).toMatchObject({ success: true })
  expect(await client.ask({ type: 'task_submit', ...heavy })).toMatchObject({ success: true })
  expect(await client.ask({ type: 'task_submit', ...heavy })).toMatchObject({ success: false, code: 'QUEUE_FULL' })
  expect(server.taskManager.listTasks()).toHaveLength(2)
  ;(await server.held()).finish()
  await client.skipTo('task_complete')
  expect(await client.ask({ type: 'task_submit', ...heavy })).toMatchObject({ success: true })
})

it('jsonPieces writes what JSON.stringify writes', () => {
  const pair = '\ud83d\ude00'
  for (const value of [
    null,
    { a: undefined, b: [1, null, true], 'c"': 'd\n' },
    ['x'.repeat(64 * KIB - 1) + pair.repeat(64 * KIB), '"'.repeat(200_000)],
    { content: [{ type: 'text', text: `${pair}x`.repeat(100_000) }], structuredContent: { n: 1.5 } },
  ]) {
    expect([...jsonPieces(value)].join('') === JSON.stringify(value)).toBe(true)
  }
})
