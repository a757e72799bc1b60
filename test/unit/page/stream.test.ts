/** The stream of the page: G4, and how it batches, begins again and ends. */
import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager } from 'agent-tasks'
import { createManualClock } from 'agent-tasks/testing'
import { startPage, type Reader } from './test-page.js'

const task = (id: string, goalPrompt = `the goal of ${id}`) => ({ id, subagentName: 'helper', goalPrompt })

const isReady = ({ ready }: Reader): boolean => ready !== undefined

describe('the stream', () => {
  it('begins with what there is, the newest first, and goes on with what changes', async () => {
    const manager = new AsyncTaskManager(-1)
    for (let index = 0; index < 1200; index += 1) manager.registerTask(task(`t${index}`))
    const { read } = await startPage({ tasks: manager })
    const reader = await read()
    await reader.until(isReady)
    const pieces = reader.events.flatMap((event) => (event.type === 'tasks' ? [event.data.tasks] : []))
    expect(pieces.map(({ length }) => length)).toEqual([500, 500, 200])
    expect(pieces[0]?.[0]?.key).toBe('async:t1199')
    expect(reader.events[0]?.data).toMatchObject({
      hasAsync: true,
      hasCommands: false,
      maxTasks: 10_000,
      resumed: false,
    })
    manager.completeTask('t7', { final_message: 'done' })
    await reader.until(({ tasks }) => tasks.get('async:t7')?.state === 'completed')
    expect(reader.tasks.get('async:t7')).toMatchObject({ delivery: 'owed', title: 'the goal of t7', group: 'main' })
  })

  it('collects what changes within 50 ms', async () => {
    const clock = createManualClock(1_000_000)
    const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
    const { read } = await startPage({ tasks: manager, clock })
    const reader = await read()
    await reader.until(isReady)
    const before = reader.events.length
    for (let index = 0; index < 50; index += 1) manager.registerTask(task(`t${index}`))
    clock.advance(49)
    expect(reader.events).toHaveLength(before)
    clock.advance(1)
    await reader.until(({ tasks }) => tasks.size === 50)
    expect(reader.events).toHaveLength(before + 1)
  })

  it('sends a comment each second', async () => {
    const clock = createManualClock()
    const { read } = await startPage({ tasks: new AsyncTaskManager({ clock }), clock })
    const reader = await read()
    await reader.until(isReady)
    clock.advance(1000)
    await reader.until(({ beats }) => beats === 1)
    clock.advance(2000)
    await reader.until(({ beats }) => beats === 3)
  })

  it('G4: resumed after a break, it lacks nothing and repeats nothing', async () => {
    const manager = new AsyncTaskManager(-1)
    for (const id of ['a', 'b', 'c']) manager.registerTask(task(id))
    const { read } = await startPage({ tasks: manager, maxTasks: 3 })
    const reader = await read()
    await reader.until(isReady)
    reader.close()
    manager.completeTask('a', {})
    manager.registerTask(task('d'))
    manager.failTask('b', 'no')
    const resumed = await read(reader.lastEventId)
    await resumed.until(isReady)
    expect(resumed.events[0]).toMatchObject({ type: 'hello', data: { resumed: true } })
    const changes = resumed.events.flatMap((event) => (event.type === 'changes' ? [event.data] : []))
    expect(changes.flatMap(({ removed = [] }) => removed)).toEqual(['async:a'])
    expect(changes.flatMap(({ tasks = [] }) => tasks.map(({ key, state }) => `${key} ${state}`))).toEqual([
      'async:d running',
      'async:b failed',
    ])
    const all = await read()
    await all.until(isReady)
    expect([...all.tasks.keys()].sort()).toEqual(['async:b', 'async:c', 'async:d'])
    const again = await read(resumed.lastEventId)
    await again.until(isReady)
    expect(again.events.map(({ type }) => type)).toEqual(['hello', 'ready'])
  })

  it('G4: whatever it is resumed at, what it had and what it gets is what there is', async () => {
    const manager = new AsyncTaskManager(-1)
    const { read } = await startPage({ tasks: manager, maxTasks: 5 })
    const readers: Reader[] = []
    for (let round = 0; round < 12; round += 1) {
      manager.registerTask(task(`t${round}`))
      if (round % 3 === 1) manager.completeTask(`t${round - 1}`, {})
      if (round % 4 === 3) manager.cancelTask(`t${round - 2}`)
      const reader = await read()
      await reader.until(isReady)
      reader.close()
      readers.push(reader)
    }
    const whole = await read()
    await whole.until(isReady)
    for (const { lastEventId, tasks } of readers) {
      const resumed = await read(lastEventId)
      await resumed.until(isReady)
      const had = new Map(tasks)
      for (const event of resumed.events) {
        if (event.type !== 'changes') continue
        for (const one of event.data.tasks ?? []) had.set(one.key, one)
        for (const key of event.data.removed ?? []) had.delete(key)
      }
      expect([...had].sort()).toEqual([...whole.tasks].sort())
    }
  })

  it.each(['other-3', 'x', '', '1', 'a-b-c'])('begins again after the unknown event %j', async (id) => {
    const manager = new AsyncTaskManager()
    manager.registerTask(task('a'))
    const { read } = await startPage({ tasks: manager })
    const reader = await read(id)
    await reader.until(isReady)
    expect(reader.events[0]).toMatchObject({ data: { resumed: false } })
    expect([...reader.tasks.keys()]).toEqual(['async:a'])
  })

  it('begins again after an event of the future', async () => {
    const { read } = await startPage({ tasks: new AsyncTaskManager() })
    const first = await read()
    await first.until(isReady)
    const [run] = first.lastEventId?.split('-') ?? []
    const reader = await read(`${run}-999999`)
    await reader.until(isReady)
    expect(reader.events[0]).toMatchObject({ data: { resumed: false } })
  })

  it('is refused to the 33rd page', async () => {
    const { read, get } = await startPage({ tasks: new AsyncTaskManager() })
    const readers = await Promise.all(Array.from({ length: 32 }, () => read()))
    expect(await get('events')).toMatchObject({ status: 429, body: { code: 'TOO_MANY_STREAMS' } })
    readers[0]?.close()
    await expect.poll(async () => read().then(() => 'open', String)).toBe('open')
  })
})

describe('a page that does not read', () => {
  it('costs no memory, and gets the present state when it reads again', async () => {
    const clock = createManualClock(1_000_000)
    const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
    for (let index = 0; index < 2000; index += 1) manager.registerTask(task(`t${index}`, 'x'.repeat(200)))
    const { page, authorization } = await startPage({ tasks: manager, clock })
    const url = new URL(page.url)
    const socket = connect(Number(url.port), url.hostname)
    onTestFinished(() => void socket.destroy())
    socket.pause()
    socket.write(`GET /api/events HTTP/1.1\r\nHost: ${url.host}\r\nAuthorization: ${authorization}\r\n\r\n`)
    await new Promise((resolve) => setImmediate(resolve))
    const heap = process.memoryUsage().heapUsed
    for (let round = 0; round < 200; round += 1) {
      for (let index = 0; index < 2000; index += 10) manager.reportProgress(`t${index}`, round)
      clock.advance(50)
    }
    expect(process.memoryUsage().heapUsed - heap).toBeLessThan(150 * 1024 * 1024)
    let text = ''
    socket.on('data', (chunk) => (text += chunk.toString())).resume()
    await expect.poll(() => text.includes('event: ready')).toBe(true)
    clock.advance(50)
    await expect.poll(() => text.includes('"progress":{"progress":199}')).toBe(true)
    // What lay between was never sent.
    expect(text).not.toContain('"progress":{"progress":100}')
  })

  it('is cut off after five minutes', async () => {
    const { clock, socket } = await withManyTasks()
    const closed = new Promise((resolve) => socket.once('close', resolve))
    await new Promise((resolve) => setTimeout(resolve, 200))
    clock.advance(302_000)
    socket.resume()
    await closed
  })
})

describe('a page that reads slowly, but reads', () => {
  it('is not cut off, and gets everything', async () => {
    const { clock, socket } = await withManyTasks()
    const chunks: Buffer[] = []
    socket.on('readable', () => undefined)
    const take = async (bytes: number): Promise<void> => {
      for (let taken = 0; taken < bytes && !socket.closed;) {
        const chunk = socket.read() as Buffer | null
        if (chunk !== null) taken += chunks[chunks.push(chunk) - 1]?.length ?? 0
        else await new Promise((resolve) => setTimeout(resolve, 1))
      }
    }
    // A system makes room for more when a third of what it holds has left: with 4 MB that is after some rounds.
    for (let round = 0; round < 36; round += 1) {
      await take(256 * 1024)
      await new Promise((resolve) => setTimeout(resolve, 10))
      clock.advance(30_000)
    }
    expect(socket.closed).toBe(false)
    while (!socket.closed && !Buffer.concat(chunks.slice(-2)).includes('event: ready')) await take(1)
    expect(socket.closed).toBe(false)
  })
})

/** A socket that reads nothing of a stream of some 11 MB. */
async function withManyTasks() {
  const clock = createManualClock(1_000_000)
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
  for (let index = 0; index < 14_000; index += 1) {
    manager.registerTask({ ...task(`t${index}`, 'x'.repeat(200)), owner: 'o'.repeat(500) })
  }
  const { page, authorization } = await startPage({ tasks: manager, clock, maxTasks: 20_000 })
  const url = new URL(page.url)
  const socket = connect(Number(url.port), url.hostname)
  onTestFinished(() => void socket.destroy())
  socket.pause()
  socket.on('error', () => undefined)
  socket.write(`GET /api/events HTTP/1.1\r\nHost: ${url.host}\r\nAuthorization: ${authorization}\r\n\r\n`)
  return { clock, socket }
}
