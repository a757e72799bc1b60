/** What a stream has written that its reader has not taken, and what becomes of it when it fails. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager } from 'agent-tasks'
import { createManualClock, type ManualClock } from 'agent-tasks/testing'
import { PageState } from '../../../src/page/page-state.js'
import { Streams } from '../../../src/page/streams.js'

const KIB = 1024

/** What comes up to the next event `ready`, and with it. */
async function readUntilReady(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  let text = ''
  while (!text.includes('event: ready')) text += Buffer.from((await reader.read()).value ?? []).toString()
  return text
}

/** Streams of their own server, so that their responses can be looked at. */
async function withStreams(manager: AsyncTaskManager, clock: ManualClock) {
  const state = new PageState({
    ...{ manager, taskManager: undefined, maxTasks: 20_000, maxBytes: 100_000 * KIB },
    now: () => clock.now(),
  })
  const failures: unknown[] = []
  const streams = new Streams({
    ...{ state, clock },
    hello: () => ({ version: '0', hasAsync: true, hasCommands: false, maxTasks: 1, hints: 'code' }),
    onFailure: (error) => failures.push(error),
  })
  /** What is written, and what is waiting with it for the reader, in bytes. */
  const writes: { bytes: number; waiting: number }[] = []
  /** How long each connection may be silent, in ms. */
  const timeouts: (number | undefined)[] = []
  const server = createServer((request, response) => {
    const write = response.write.bind(response) as (chunk: Buffer) => boolean
    response.write = ((chunk: Buffer) => {
      const hasRoom = write(chunk)
      writes.push({ bytes: chunk.length, waiting: response.writableLength })
      return hasRoom
    }) as ServerResponse['write']
    timeouts.push(request.socket.timeout)
    try {
      streams.open(response, request.headers['last-event-id'] as string | undefined)
    } catch (error) {
      failures.push(error)
      response.writeHead(500).end()
    }
    timeouts.push(request.socket.timeout)
  })
  server.timeout = 300_000
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  onTestFinished(async () => {
    streams.close()
    state.stop()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const open = () => fetch(`http://127.0.0.1:${port}`)
  return { state, streams, failures, writes, timeouts, open }
}

const task = (id: string) => ({ id, subagentName: 'helper', goalPrompt: 'x'.repeat(200), owner: `of ${id}` })

it('of an event, however large, at most 64 KiB are written before the reader has taken them', async () => {
  const clock = createManualClock(1_000_000)
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
  for (let index = 0; index < 2000; index += 1) manager.registerTask(task(`t${index}-${'y'.repeat(80)}`))
  const { open, writes } = await withStreams(manager, clock)
  const reader = (await open()).body!.getReader()
  let text = ''
  while (!text.includes('event: ready')) text += Buffer.from((await reader.read()).value ?? []).toString()
  await reader.cancel()
  expect(text.length).toBeGreaterThan(900 * KIB)
  expect(writes.length).toBeGreaterThan(10)
  expect(Math.max(...writes.map(({ bytes }) => bytes))).toBeLessThanOrEqual(64 * KIB)
  expect(Math.max(...writes.map(({ waiting }) => waiting))).toBeLessThan(160 * KIB)
})

it('a stream may be silent for as long as nothing changes', async () => {
  const { open, timeouts } = await withStreams(new AsyncTaskManager(), createManualClock())
  await (await open()).body?.cancel()
  expect(timeouts).toEqual([300_000, 0])
})

it('characters are whole, wherever the text was parted', async () => {
  const clock = createManualClock()
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
  const goalPrompt = '😀é漢'.repeat(60)
  for (let index = 0; index < 300; index += 1) manager.registerTask({ ...task(`t${index}`), goalPrompt })
  const { open } = await withStreams(manager, clock)
  const reader = (await open()).body!.getReader()
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  while (!text.includes('event: ready')) {
    text += decoder.decode(Buffer.from((await reader.read()).value ?? []), { stream: true })
  }
  await reader.cancel()
  expect(text).not.toContain('\ufffd')
})

it('a failure before its head is the answer, and leaves no stream', async () => {
  const { state, streams, failures, open } = await withStreams(new AsyncTaskManager(), createManualClock())
  state.refresh = () => {
    throw new Error('no instances')
  }
  expect((await open()).status).toBe(500)
  expect([streams.size, failures]).toEqual([0, [new Error('no instances')]])
})

it('a failure later ends it alone, and is reported', async () => {
  const clock = createManualClock()
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
  manager.registerTask(task('a'))
  const { state, streams, failures, open } = await withStreams(manager, clock)
  const { body: stream } = await open()
  state.since = () => {
    throw new Error('no changes')
  }
  manager.registerTask(task('b'))
  clock.advance(50)
  expect([streams.size, failures]).toEqual([0, [new Error('no changes')]])
  await expect(new Response(stream).text()).rejects.toThrow()
})

it('a reader that was away for more than 500 changes gets them piece by piece, what was removed first', async () => {
  const clock = createManualClock(1_000_000)
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
  const { open } = await withStreams(manager, clock)
  const reader = (await open()).body!.getReader()
  await readUntilReady(reader)
  for (let index = 0; index < 700; index += 1) manager.registerTask(task(`t${index}`))
  clock.advance(50)
  const text = await readUntilReady(reader)
  await reader.cancel()
  const pieces = text.split('\n\n').filter((block) => block.startsWith('event: changes'))
  expect(pieces.map((block) => (JSON.parse(block.slice(block.indexOf('{'))) as { tasks: [] }).tasks.length)).toEqual([
    500, 200,
  ])
})

it('a reader of whose version nothing is known any more begins again', async () => {
  const clock = createManualClock(1_000_000)
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
  const { state, open } = await withStreams(manager, clock)
  const reader = (await open()).body!.getReader()
  await readUntilReady(reader)
  const since = state.since.bind(state)
  state.since = () => {
    state.since = since
    return undefined
  }
  manager.registerTask(task('a'))
  clock.advance(50)
  const text = await readUntilReady(reader)
  await reader.cancel()
  expect(text.split('\n\n').map((block) => /^(?:id: .*\n)?event: (\w+)/.exec(block)?.[1])).toEqual([
    'hello',
    'tasks',
    'ready',
    undefined,
  ])
  expect(text).toContain('"resumed":false')
})

const beatsIn = (text: string): number => text.split(': beat').length - 1

it('leaves no timer when its last reader goes, and beats for the one that comes later', async () => {
  const clock = createManualClock(1_000_000)
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
  const { streams, open } = await withStreams(manager, clock)
  for (let round = 0; round < 2; round += 1) {
    const readers = [(await open()).body!.getReader(), (await open()).body!.getReader()]
    for (const reader of readers) await readUntilReady(reader)
    // One heartbeat for all of them.
    expect([streams.size, clock.pending]).toEqual([2, 1])
    await readers[0]!.cancel()
    await expect.poll(() => streams.size).toBe(1)
    let text = ''
    for (let beat = 1; beat <= 3; beat += 1) {
      clock.advance(1000)
      while (beatsIn(text) < beat) text += Buffer.from((await readers[1]!.read()).value ?? []).toString()
    }
    // Something has changed that is not sent any more.
    manager.registerTask(task(`t${round}`))
    await readers[1]!.cancel()
    await expect.poll(() => streams.size).toBe(0)
    clock.advance(50)
    expect(clock.pending).toBe(0)
  }
})

it('when it is closed, ends its streams and leaves no timer, also with changes that wait', async () => {
  const clock = createManualClock(1_000_000)
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
  const { streams, open } = await withStreams(manager, clock)
  const { body } = await open()
  const reader = body!.getReader()
  await readUntilReady(reader)
  manager.registerTask(task('a'))
  expect(clock.pending).toBe(2)
  streams.close()
  expect([streams.size, clock.pending]).toEqual([0, 0])
  expect((await reader.read()).done).toBe(true)
})

it('beats go on for the others when a stream of several fails', async () => {
  const clock = createManualClock(1_000_000)
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
  const { state, streams, failures, open } = await withStreams(manager, clock)
  const [first, second] = [(await open()).body!.getReader(), (await open()).body!.getReader()]
  for (const reader of [first, second]) await readUntilReady(reader)
  const since = state.since.bind(state)
  state.since = () => {
    state.since = since
    throw new Error('no changes')
  }
  manager.registerTask(task('a'))
  clock.advance(50)
  expect([streams.size, failures]).toEqual([1, [new Error('no changes')]])
  await expect(first.read()).rejects.toThrow()
  clock.advance(1000)
  let text = ''
  while (beatsIn(text) < 1) text += Buffer.from((await second.read()).value ?? []).toString()
  expect(text).toContain('async:a')
  await second.cancel()
})
