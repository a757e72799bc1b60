// Results of any size: small ones are in the events, larger ones are referred to, and what is too large for the server fails its command.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { request, type IncomingMessage, type ServerResponse } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createTaskClient } from '../../../src/client/index.js'
import { jsonPieces } from '../../../src/data/json-pieces.js'
import { openEvents } from '../../support/event-source.js'
import { until } from '../../support/lifelines.js'
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
        error: {
          code: 'RESULT_TOO_LARGE',
          message:
            'The result has more than 16777216 bytes of JSON, which is the maximum for one command (maxResultBytes).',
        },
        results: [{ status: 'error' }, { status: 'skipped' }],
      })
      await client.close()
    }
  })

  it('S9: fails its command when its task would hold too much', async () => {
    const server = await startTestServer({ tasks: { maxTaskBytes: MIB } })
    const client = await server.client()
    await client.ask({ type: 'task_submit', ...taskOf('hold', 'hold') })
    ;(await server.held()).finish('x'.repeat(600 * KIB))
    ;(await server.held()).finish('x'.repeat(600 * KIB))
    expect(await client.skipTo('task_complete')).toMatchObject({
      error: {
        code: 'RESULT_TOO_LARGE',
        message: expect.stringContaining('the task would hold more than 1048576 bytes (maxTaskBytes)') as string,
      },
      results: [{ status: 'success' }, { status: 'error' }],
    })
  })

  it('S9: fails its command when all tasks would hold too much, and takes no room then', async () => {
    const server = await startTestServer({ tasks: { maxBytes: MIB } })
    const client = await server.client()
    await client.ask({ type: 'task_submit', ...taskOf('hold') })
    const filler = 'x'.repeat(600 * KIB)
    await client.ask({ type: 'task_submit', ...taskOf({ tool_name: 'hold', args: { filler } }) })
    const [first, second] = ['x'.repeat(600 * KIB), 'x'.repeat(400 * KIB)]
    ;(await server.held()).finish(first)
    expect(await client.skipTo('task_complete')).toMatchObject({
      status: 'failed',
      error: {
        code: 'RESULT_TOO_LARGE',
        message: `The result has ${bytesOf(contentOf(first))} bytes of JSON. With this result, all tasks together would hold more than 1048576 bytes (maxBytes).`,
      },
    })
    ;(await server.held()).finish(second)
    expect(await client.skipTo('task_complete')).toMatchObject({ status: 'completed' })
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

  it('is sent as fast as it is read, and not written before', async () => {
    const server = await startTestServer()
    const taskId = await runSizes(server, [15 * MIB])
    const path = `/tasks/${taskId}/commands/0/result`
    const sending = firstResponse(path)
    const sent = request(server.httpUrl + path).end()
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    onTestFinished(() => void sent.destroy())
    response.pause()
    // What the system does not take for a reader that has stopped waits in this process.
    const waiting = await sending
    await until(() => waiting.writableNeedDrain || waiting.writableEnded)
    for (let turn = 0; turn < 100; turn += 1) {
      await new Promise(setImmediate)
      expect(waiting.writableLength).toBeLessThan(512 * KIB)
    }
    expect(await server.call('/health')).toMatchObject({ status: 200 })
    let bytes = 0
    for await (const chunk of response) bytes += (chunk as Buffer).length
    expect(bytes).toBe(Number(response.headers['content-length']))
  })
})

/** The next response to a request of this path, in the server. */
function firstResponse(path: string): Promise<ServerResponse> {
  return new Promise((resolve) => {
    const onStart = (message: unknown): void => {
      const { request: asked, response } = message as { request: IncomingMessage; response: ServerResponse }
      if (asked.url !== path) return
      unsubscribe('http.server.request.start', onStart)
      resolve(response)
    }
    subscribe('http.server.request.start', onStart)
  })
}

it('S9: a submission that is too large for a task is refused, and takes no room', async () => {
  const server = await startTestServer({ tasks: { maxTaskBytes: 10_000 } })
  const large = taskOf({ tool_name: 'add', args: { filler: 'x'.repeat(10_000) } })
  expect(await server.post('/tasks', large)).toMatchObject({
    status: 400,
    body: {
      code: 'INVALID_TASK',
      error: expect.stringMatching(/^task: got \d+ or more bytes of JSON, expected at most 10000\.$/) as string,
    },
  })
  expect(server.taskManager.listTasks()).toEqual([])
  expect(await server.post('/tasks', taskOf('add'))).toMatchObject({ status: 201 })
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
  expect(server.taskManager.listTasks().map(({ id }) => id)).toEqual(ids.slice(2).reverse())
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
