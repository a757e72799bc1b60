/** What a stream has written that its reader has not taken, and what becomes of it when it fails. */
import { createServer, IncomingMessage, ServerResponse } from 'node:http'
import { Socket, type AddressInfo } from 'node:net'
import { Duplex } from 'node:stream'
import { expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager } from 'agent-tasks'
import { createManualClock, type ManualClock } from 'agent-tasks/testing'
import { PageState } from '../../../src/page/page-state.js'
import { Streams } from '../../../src/page/streams.js'

const KIB = 1024

/** What comes up to the next event `ready`, and with it. */
async function readUntilReady(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  let text = ''
  while (!/event: ready\n.*\n\n/.test(text)) text += Buffer.from((await reader.read()).value ?? []).toString()
  return text
}

/** Streams of their own server, so that their responses can be looked at. */
async function withStreams(manager: AsyncTaskManager, clock: ManualClock, maxTasks = 20_000) {
  const state = new PageState({
    manager,
    taskManager: undefined,
    maxTasks,
    maxBytes: 100_000 * KIB,
    now: () => clock.now(),
  })
  const failures: unknown[] = []
  const streams = new Streams({
    state,
    clock,
    hello: () => ({ version: '0', hasAsync: true, hasCommands: false, canLaunch: false, maxTasks: 1, hints: 'code' }),
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
  const open = (lastEventId?: string) =>
    fetch(`http://127.0.0.1:${port}`, { headers: lastEventId === undefined ? {} : { 'last-event-id': lastEventId } })
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

interface Block {
  readonly id: string | undefined
  readonly type: string
  readonly data: { tasks?: { key: string }[]; removed?: string[]; resumed?: boolean; now?: number; version?: string }
}

/** The events of a text, without beats. */
function blocksOf(text: string): Block[] {
  const blocks = text.split('\n\n').filter((block) => block.includes('event: '))
  return blocks.map((block) => {
    const [, id, type = '', data = ''] = /^(?:id: (.*)\n)?event: (\w+)\ndata: (.*)$/s.exec(block.trim()) ?? []
    return { id, type, data: JSON.parse(data) as Block['data'] }
  })
}

const keysOf = (block: Block | undefined): string[] | undefined => block?.data.tasks?.map(({ key }) => key)

it('begins with the page and its time, and a proxy neither keeps it nor collects it', async () => {
  const clock = createManualClock(1_000_000)
  const { open } = await withStreams(new AsyncTaskManager({ clock }), clock)
  const { headers, body } = await open()
  const reader = body!.getReader()
  const blocks = blocksOf(await readUntilReady(reader))
  await reader.cancel()
  expect(['content-type', 'cache-control', 'x-accel-buffering'].map((name) => headers.get(name))).toEqual([
    'text/event-stream; charset=utf-8',
    'no-store',
    'no',
  ])
  // Where there are no tasks, no event says so.
  expect(blocks.slice(0, 2).map(({ type, id }) => [type, id !== undefined])).toEqual([
    ['hello', false],
    ['ready', true],
  ])
  expect(blocks[0]?.data).toMatchObject({ version: '0', hasAsync: true, now: 1_000_000, resumed: false })
})

it('resumed at an event, has what was removed and what has changed since, and the whole for an id that is none of its own', async () => {
  const clock = createManualClock(1_000_000)
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
  const { open } = await withStreams(manager, clock, 2)
  const read = async (lastEventId?: string): Promise<Block[]> => {
    const reader = (await open(lastEventId)).body!.getReader()
    const blocks = blocksOf(await readUntilReady(reader))
    await reader.cancel()
    return blocks.slice(0, blocks.findIndex(({ type }) => type === 'ready') + 1)
  }
  for (const id of ['a', 'b']) manager.registerTask(task(id))
  const first = (await read()).at(-1)?.id ?? ''
  manager.completeTask('a', {})
  manager.registerTask(task('c'))
  const resumed = await read(first)
  expect(resumed.map(({ type, id }) => [type, id !== undefined])).toEqual([
    ['hello', false],
    ['changes', false],
    ['changes', false],
    ['ready', true],
  ])
  expect(resumed[0]?.data.resumed).toBe(true)
  expect(resumed[1]?.data).toEqual({ now: 1_000_000, removed: ['async:a'] })
  expect(keysOf(resumed[2])).toEqual(['async:c'])
  // At the last event, nothing.
  expect((await read(resumed.at(-1)?.id)).map(({ type, data }) => [type, data.resumed])).toEqual([
    ['hello', true],
    ['ready', undefined],
  ])
  const [run = '', version = ''] = first.split('-')
  const future = `${run}-${Number(resumed.at(-1)?.id?.split('-')[1]) + 1}`
  const none = [`${run}x-${version}`, `${run}-x`, `${run}-`, run, `${run}-x${version}`, `${run}-${version}x`, future]
  for (const id of none) {
    const blocks = await read(id)
    expect([id, blocks[0]?.data.resumed, blocks[1]?.type]).toEqual([id, false, 'tasks'])
    expect(keysOf(blocks[1])).toEqual(['async:c', 'async:b'])
  }
})

it('what changes later comes in one event with an id: of 500 tasks, and with what was removed', async () => {
  const clock = createManualClock(1_000_000)
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
  const { open } = await withStreams(manager, clock, 500)
  manager.registerTask(task('old'))
  const reader = (await open()).body!.getReader()
  const ready = blocksOf(await readUntilReady(reader)).at(-1)
  const next = async (): Promise<Block | undefined> => {
    let text = ''
    while (!text.endsWith('\n\n')) text += Buffer.from((await reader.read()).value ?? []).toString()
    expect(blocksOf(text)).toHaveLength(1)
    return blocksOf(text)[0]
  }
  for (let index = 0; index < 499; index += 1) manager.registerTask(task(`t${index}`))
  manager.completeTask('old', {})
  clock.advance(50)
  const changes = await next()
  expect([changes?.type, changes?.data.tasks?.length, changes?.data.removed]).toEqual(['changes', 500, undefined])
  expect(changes?.id).toMatch(new RegExp(`^${ready?.id?.split('-')[0]}-\\d+$`))
  expect(changes?.id).not.toBe(ready?.id)
  manager.registerTask(task('last'))
  clock.advance(50)
  const more = await next()
  expect([keysOf(more), more?.data.removed]).toEqual([['async:last'], ['async:old']])
  await reader.cancel()
})

it('a reader that was away for more than 500 changes is told first what was removed', async () => {
  const clock = createManualClock(1_000_000)
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
  const { open } = await withStreams(manager, clock, 700)
  manager.registerTask(task('old'))
  const reader = (await open()).body!.getReader()
  await readUntilReady(reader)
  manager.completeTask('old', {})
  for (let index = 0; index < 700; index += 1) manager.registerTask(task(`t${index}`))
  clock.advance(50)
  const blocks = blocksOf(await readUntilReady(reader))
  await reader.cancel()
  expect(blocks.map(({ type, data }) => [type, data.removed, data.tasks?.length])).toEqual([
    ['changes', ['async:old'], undefined],
    ['changes', undefined, 500],
    ['changes', undefined, 200],
    ['ready', undefined, undefined],
  ])
  expect(blocks[0]?.data.now).toBe(1_000_050)
})

it('changes without a task have no list of tasks', async () => {
  const clock = createManualClock(1_000_000)
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
  const { state, open } = await withStreams(manager, clock)
  const reader = (await open()).body!.getReader()
  await readUntilReady(reader)
  const since = state.since.bind(state)
  state.since = (version) => ({ ...since(version)!, tasks: [] })
  manager.registerTask(task('a'))
  clock.advance(50)
  const [changes] = blocksOf(Buffer.from((await reader.read()).value ?? []).toString())
  expect([changes?.type, changes?.data.tasks]).toEqual(['changes', undefined])
  await reader.cancel()
})

/** A response whose reader takes nothing until it is told to. */
function slowResponse() {
  const taken: string[] = []
  let take: (() => void) | undefined
  let isReading = false
  const duplex = new Duplex({
    read: () => undefined,
    write: (chunk: Buffer, _encoding, done) => {
      const next = (): void => {
        taken.push(chunk.toString())
        done()
      }
      if (isReading) next()
      else take = next
    },
  })
  const socket = Object.assign(duplex, { setTimeout: () => socket }) as unknown as Socket
  const response = new ServerResponse(new IncomingMessage(socket))
  response.useChunkedEncodingByDefault = false
  response.assignSocket(socket)
  socket.on('drain', () => response.emit('drain'))
  const read = async (): Promise<string> => {
    isReading = true
    take?.()
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate)
    return taken.join('')
  }
  onTestFinished(() => void socket.destroy())
  return { response, read, socket }
}

it('what takes nothing for five minutes is cut off; until then it gets no beat', async () => {
  const clock = createManualClock(1_000_000)
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
  for (let index = 0; index < 600; index += 1) manager.registerTask(task(`t${index}`))
  const { streams } = await withStreams(manager, clock)
  const [left, late] = [slowResponse(), slowResponse()]
  for (const { response } of [left, late]) expect(streams.open(response, undefined)).toBe(true)
  for (let second = 0; second < 300; second += 1) clock.advance(1000)
  expect([left.response.destroyed, late.response.destroyed]).toEqual([false, false])
  const text = await late.read()
  expect(text).not.toContain(': beat')
  expect(text).toContain('event: ready')
  clock.advance(1000)
  await new Promise(setImmediate)
  expect([left.response.destroyed, late.response.destroyed]).toEqual([true, false])
  expect(await late.read()).toContain(': beat')
})

it('of a snapshot that is read slowly, has no task that was removed meanwhile; its removal follows', async () => {
  const clock = createManualClock(1_000_000)
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
  for (let index = 0; index < 600; index += 1) {
    manager.registerTask(task(`t${index}`))
    manager.completeTask(`t${index}`, {})
  }
  const { streams } = await withStreams(manager, clock, 600)
  const { response, read } = slowResponse()
  streams.open(response, undefined)
  manager.registerTask(task('new'))
  clock.advance(50)
  const text = await read()
  const blocks = blocksOf(text.slice(text.indexOf('event: hello')))
  expect(blocks.map(({ type, data }) => [type, data.tasks?.length])).toEqual([
    ['hello', undefined],
    ['tasks', 500],
    ['tasks', 99],
    ['ready', undefined],
    ['changes', 1],
  ])
  expect(blocks.at(-1)?.data.removed).toEqual(['async:t0'])
})

it('is refused to the 33rd reader, and to a response that waits behind another one', async () => {
  const clock = createManualClock()
  const { streams } = await withStreams(new AsyncTaskManager({ clock }), clock)
  expect(streams.open(new ServerResponse(new IncomingMessage(new Socket())), undefined)).toBe(false)
  expect([streams.size, clock.pending]).toEqual([0, 0])
  const responses = Array.from({ length: 33 }, () => slowResponse().response)
  expect(responses.map((response) => streams.open(response, undefined))).toEqual([
    ...Array.from({ length: 32 }, () => true),
    false,
  ])
  expect([streams.size, responses[32]?.headersSent]).toEqual([32, false])
})

it('without readers, has no timer for what changes', async () => {
  const clock = createManualClock()
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
  await withStreams(manager, clock)
  manager.registerTask(task('a'))
  expect(clock.pending).toBe(0)
})

it('G4: a reader that reconnects at the end of a snapshot gets what has changed while the snapshot was sent', async () => {
  const clock = createManualClock(1_000_000)
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
  for (let index = 0; index < 600; index += 1) manager.registerTask(task(`t${index}`))
  const { streams } = await withStreams(manager, clock)
  /** Reads up to `ready` and leaves, without what comes after it. `during` happens while the reader takes nothing. */
  const visit = async (lastEventId: string | undefined, during: () => void): Promise<Block[]> => {
    const { response, read, socket } = slowResponse()
    expect(streams.open(response, lastEventId)).toBe(true)
    during()
    const text = await read()
    socket.destroy()
    const blocks = blocksOf(text.slice(text.indexOf('event: hello')))
    return blocks.slice(0, blocks.findIndex(({ type }) => type === 'ready') + 1)
  }
  // The newest tasks come first, so that these have been written already.
  const first = await visit(undefined, () => manager.completeTask('t599', {}))
  expect(first.map(({ type }) => type)).toEqual(['hello', 'tasks', 'tasks', 'ready'])
  // What has changed since comes in pieces, too.
  const changeAll = (): void => {
    for (let index = 0; index < 600; index += 1) manager.reportProgress(`t${index}`, { progress: 1 })
  }
  changeAll()
  const second = await visit(first.at(-1)?.id, () => manager.completeTask('t0', {}))
  expect(second.flatMap(keysOf)).toContain('async:t599')
  const third = await visit(second.at(-1)?.id, () => undefined)
  expect(third.flatMap(keysOf)).toContain('async:t0')
})
