/** The journal is bounded: G2. */
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { AsyncTaskManager, createAgentTasks } from 'agent-tasks'
import { memoryStore } from 'agent-tasks/store'
import { createManualClock } from 'agent-tasks/testing'
import type { AsyncEntry } from '../../../src/page/async-entry.js'
import { followAsyncTasks } from '../../../src/page/follow-async-tasks.js'
import { Journal, type JournalEntry } from '../../../src/page/journal.js'
import type { PageEntry } from '../../../src/page/page-entry.js'
import { Versioned, Versions } from '../../../src/page/versioned.js'
import { startPage } from './test-page.js'

const MIB = 1024 * 1024
const task = (id: string, goalPrompt = 'a goal') => ({ id, subagentName: 'helper', goalPrompt })

function follow(manager: AsyncTaskManager, { maxTasks = 10_000, maxBytes = 64 * MIB, maxTaskBytes = MIB } = {}) {
  const forgotten: string[] = []
  const journal = new Journal<PageEntry>({
    versions: new Versions(),
    maxTasks,
    maxBytes,
    onForgotten: ({ key }) => forgotten.push(key),
  })
  const stop = followAsyncTasks({
    manager,
    journal,
    maxTaskBytes,
    now: () => 0,
    onTransition: () => undefined,
    onForgotten: () => undefined,
    onOther: () => undefined,
  })
  return { journal, forgotten, stop }
}

describe('the journal', () => {
  it('G2: has at most its number of tasks, and forgets first what ended first, never what is live', () => {
    const manager = new AsyncTaskManager(-1)
    const { journal, forgotten, stop } = follow(manager, { maxTasks: 3 })
    for (const id of ['a', 'b', 'c']) manager.registerTask(task(id))
    manager.completeTask('b', {})
    manager.failTask('a', 'no')
    manager.registerTask(task('d'))
    expect(forgotten).toEqual(['async:b'])
    for (const id of ['e', 'f', 'g']) manager.registerTask(task(id))
    expect(forgotten).toEqual(['async:b', 'async:a'])
    expect(journal.newestFirst().map(({ key }) => key)).toEqual(['async:g', 'async:f', 'async:e', 'async:d', 'async:c'])
    stop()
  })

  it('G2: holds at most its bytes, by what ended first', () => {
    const manager = new AsyncTaskManager(1)
    const { journal, forgotten, stop } = follow(manager, { maxBytes: MIB, maxTaskBytes: 128 * 1024 })
    for (let index = 0; index < 100; index += 1) {
      manager.registerTask(task(`t${index}`))
      manager.completeTask(`t${index}`, { text: 'x'.repeat(100_000) })
      manager.markNotified(`t${index}`)
      expect(journal.bytes).toBeLessThanOrEqual(MIB)
    }
    expect(journal.size).toBeGreaterThan(5)
    expect(forgotten[0]).toBe('async:t0')
    stop()
  })

  it('G2: of a large result keeps the beginning', () => {
    const manager = new AsyncTaskManager()
    const { journal, stop } = follow(manager, { maxTaskBytes: 64 * 1024 })
    manager.registerTask(task('a', 'g'.repeat(1000)))
    manager.completeTask('a', { text: 'x'.repeat(MIB) })
    const { kept, heldBytes, record } = journal.get('async:a') as AsyncEntry
    expect(kept?.output).toMatchObject({ type: 'json', isCut: true })
    expect(heldBytes).toBeLessThanOrEqual(64 * 1024)
    expect(record).not.toHaveProperty('output')
    stop()
  })

  it('G2: of 10,000 tasks has the last', () => {
    const manager = new AsyncTaskManager(-1)
    const { journal, stop } = follow(manager, { maxTasks: 1000 })
    for (let index = 0; index < 10_000; index += 1) {
      manager.registerTask(task(`t${index}`))
      manager.completeTask(`t${index}`, {})
      manager.markNotified(`t${index}`)
    }
    expect(journal.size).toBe(1000)
    expect(journal.newestFirst()[0]?.key).toBe('async:t9999')
    expect(journal.counts('async').get('completed')).toBe(1000)
    stop()
  })

  it('has at most 200 events and 20 marks of a task', () => {
    const manager = new AsyncTaskManager()
    const { journal, stop } = follow(manager)
    manager.registerTask(task('a'))
    manager.completeTask('a', {})
    for (let index = 0; index < 200; index += 1) manager.lease({ owner: 'main' })?.release()
    const entry = journal.get('async:a')
    expect(journal.eventsOf('async:a')).toHaveLength(200)
    expect(entry && journal.rowOf(entry).marks).toHaveLength(20)
    stop()
  })

  it('G2: counts of a task what it keeps of its events, marks and answers, and nothing of what it has dropped', () => {
    const forgotten: string[] = []
    const journal = new Journal<JournalEntry>({
      versions: new Versions(),
      maxTasks: 1,
      maxBytes: MIB,
      onForgotten: ({ key }) => forgotten.push(key),
    })
    const entryOf = (key: string): JournalEntry => ({
      key,
      kind: 'async',
      isEnded: false,
      state: 'running',
      heldBytes: 7,
      row: () => ({}) as ReturnType<JournalEntry['row']>,
    })
    const [entry, other] = [entryOf('a'), entryOf('b')]
    journal.add(entry)
    const question = { message: 'm'.repeat(1000), askedAt: 0, closedAt: 0, action: 'accept' } as const
    const note = (index: number): void =>
      journal.update(entry, {
        at: index,
        event: 'e',
        detail: 'd'.repeat(index < 300 ? 200 : 10),
        mark: 'message',
        answer: { ...question, id: `q${index % 10}`, message: index < 300 ? question.message : 'm' },
      })
    for (let index = 0; index < 200; index += 1) note(index)
    const full = journal.bytes
    for (let index = 200; index < 300; index += 1) note(index)
    expect(journal.bytes).toBe(full)
    expect(full).toBe(1000 + 7 + 100 * (200 + 20) + 200 * 200 + 20 * (200 + 2 + 1000))
    for (let index = 300; index < 500; index += 1) note(index)
    expect(journal.bytes).toBe(1000 + 7 + 100 * (200 + 20) + 200 * 10 + 20 * (200 + 2 + 1))
    expect([journal.eventsOf('a')[0]?.at, journal.answersOf('a')]).toEqual(
      [300, { length: 20 }].map((each) =>
        typeof each === 'number' ? each : (expect.objectContaining(each) as unknown),
      ),
    )
    // What was forgotten leaves nothing, and what is noted of it later counts nowhere.
    journal.add(other)
    journal.end(entry)
    expect([forgotten, journal.size, journal.bytes]).toEqual([['a'], 1, 1000 + 7])
    note(0)
    journal.end(entry)
    expect([journal.size, journal.bytes, journal.eventsOf('a'), journal.answersOf('a')]).toEqual([1, 1007, [], []])
    expect([journal.counts('async').get('running'), journal.counts('command').get('running')]).toEqual([1, undefined])
    // Its id is used again while it is kept: what it held does not count twice.
    journal.add(entryOf('b'))
    expect([forgotten, journal.size, journal.bytes]).toEqual([['a', 'b'], 1, 1007])
    expect(journal.counts('async').get('running')).toBe(1)
  })

  it('knows a task with the id of a forgotten one as another one', () => {
    const manager = new AsyncTaskManager(1)
    const { journal, stop } = follow(manager)
    manager.registerTask(task('a', 'first'))
    manager.completeTask('a', {})
    manager.markNotified('a')
    for (let index = 0; manager.getTask('a') !== undefined; index += 1) {
      manager.registerTask(task(`t${index}`))
      manager.completeTask(`t${index}`, {})
      manager.markNotified(`t${index}`)
    }
    manager.registerTask(task('a', 'second'))
    const entry = journal.get('async:a')
    expect(entry && journal.rowOf(entry)).toMatchObject({ title: 'second', state: 'running' })
    expect(journal.counts('async').get('running')).toBe(1)
    stop()
  })

  it('says of a task from before how far it had come', async () => {
    const clock = createManualClock()
    const manager = new AsyncTaskManager({ maxAsyncTasks: 1, clock })
    const queued = { subagentName: 'helper', goalPrompt: 'x', whenFull: 'queue' } as const
    manager.launch({ ...queued, id: 'a' }, (_input, context) => context.ask('Which?').then(() => ({})))
    manager.launch({ ...queued, id: 'b' }, () => ({}))
    const { journal, stop } = follow(manager)
    const statesOf = (id: string): string[] => journal.eventsOf(`async:${id}`).map(({ state }) => state)
    expect([statesOf('a'), statesOf('b')]).toEqual([['running'], ['queued']])
    manager.cancelTask('a')
    expect(statesOf('a')).toEqual(['running', 'cancelled'])
    await expect.poll(() => statesOf('b').slice(0, 2)).toEqual(['queued', 'running'])
    expect(journal.counts('async').get('queued')).toBe(0)
    stop()
  })

  it('follows what a limit does to a task', () => {
    const clock = createManualClock()
    const manager = new AsyncTaskManager({ clock })
    const { journal, stop } = follow(manager)
    manager.registerTask({ ...task('a'), timeoutMs: 100, graceMs: 50 })
    clock.advance(100)
    expect(journal.get('async:a')?.state).toBe('stopping')
    clock.advance(50)
    expect(journal.get('async:a')?.state).toBe('timed-out')
    stop()
  })

  it('begins with the state that each live task is in', async () => {
    const clock = createManualClock()
    const manager = new AsyncTaskManager({ clock, maxAsyncTasks: 3 })
    const untilAborted = (signal: AbortSignal) =>
      new Promise<never>((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))))
    manager.launch({ ...task('over-budget'), budget: { steps: 1 } }, (_input, context) => {
      context.spend({ steps: 2 })
      return untilAborted(context.signal)
    })
    manager.launch(task('asking'), (_input, context) => context.ask('Which?').then(() => ({})))
    manager.launch({ ...task('overdue'), timeoutMs: 100, graceMs: 50 }, () => new Promise(() => undefined))
    manager.launch({ ...task('waiting'), whenFull: 'queue' }, () => ({}))
    await setImmediate()
    clock.advance(100)
    const { journal, stop } = follow(manager)
    const states = ['over-budget', 'asking', 'overdue', 'waiting'].map((id) => journal.get(`async:${id}`)?.state)
    expect(states).toEqual(['wrapping', 'asking', 'stopping', 'queued'])
    stop()
    manager.cancelAll()
    clock.advance(50)
    await manager.dispose()
  })

  it('begins with what the manager has: with a store, what an earlier process left', async () => {
    const store = memoryStore()
    const first = new AsyncTaskManager({ store })
    first.registerTask(task('a'))
    first.completeTask('a', { answer: 1 })
    first.registerTask(task('b'))
    await first.dispose()
    const second = new AsyncTaskManager({ store, onError: () => undefined })
    await second.recovered
    const { get } = await startPage({ tasks: second })
    expect((await get('tasks/async:a')).body).toMatchObject({
      task: { state: 'completed', delivery: 'owed' },
      result: { text: '{"answer":1}' },
    })
    expect((await get('tasks/async:b')).body).toMatchObject({ task: { state: 'failed' } })
    await second.dispose()
  })
})

describe('what has changed since a version', () => {
  it('is not known after too many removals', () => {
    const versions = new Versions()
    const items = new Versioned<string>(versions, 1)
    for (const id of ['a', 'b', 'c', 'd']) items.add(id, id)
    const before = versions.last
    items.remove('a')
    items.remove('b')
    expect(items.since(before)).toEqual({ changed: [], removed: ['a', 'b'] })
    items.remove('c')
    expect(items.since(before)).toBeUndefined()
    expect(items.since(versions.last - 1)).toEqual({ changed: [], removed: ['c'] })
  })

  it('G2: is not known after removals of long ids: they take at most 8 MiB', () => {
    const versions = new Versions()
    const items = new Versioned<string>(versions)
    const remove = (from: number, to: number): void => {
      for (let index = from; index < to; index += 1) {
        const id = `${index}`.padStart(1024, 'x')
        items.add(id, id)
        items.remove(id)
      }
    }
    const before = versions.last
    remove(0, 8192)
    expect(items.since(before)?.removed).toHaveLength(8192)
    remove(8192, 8193)
    expect(items.since(before)).toBeUndefined()
    // Half of them are left.
    expect(items.since(2 * 4097)?.removed).toHaveLength(4096)
    // What comes back takes nothing.
    items.add('8192'.padStart(1024, 'x'), 'back')
    remove(0, 4097)
    expect(items.since(2 * 4097)).toBeDefined()
  })

  it('is known after any number of changes', () => {
    const versions = new Versions()
    const items = new Versioned<string>(versions)
    items.add('a', 'a')
    items.add('b', 'b')
    const before = versions.last
    for (let index = 0; index < 10_000; index += 1) items.touch('a')
    expect(items.since(before)).toEqual({ changed: ['a'], removed: [] })
    expect(items.since(0)).toEqual({ changed: ['b', 'a'], removed: [] })
  })
})

describe('the deliveries of an owner', () => {
  it('say how they stand, why a result waits, and which message carried it', async () => {
    const clock = createManualClock()
    let [isBusy, isDown] = [true, true]
    const tasks = createAgentTasks({
      clock,
      onError: () => undefined,
      isAgentBusy: () => isBusy,
      triggerAgentTurn: () => (isDown ? Promise.reject(new Error('down')) : Promise.resolve()),
    })
    const manager = tasks.getAsyncTaskManager()
    const { read } = await startPage({ tasks, clock })
    const owner = async () => {
      const reader = await read()
      await reader.until(({ ready }) => ready !== undefined)
      reader.close()
      return reader.ready?.owners[0]
    }
    expect(await owner()).toMatchObject({ owner: 'main', state: 'gathering' })
    clock.advance(1)
    expect(await owner()).toMatchObject({ state: 'idle', reason: 'No result waits for delivery.' })
    manager.registerTask(task('a'))
    manager.completeTask('a', {})
    clock.advance(1)
    expect(await owner()).toMatchObject({
      state: 'busy',
      owed: 1,
      waiting: ['async:a'],
      reason: expect.stringContaining('isAgentBusy') as unknown,
    })
    isBusy = false
    tasks.notifyIdle()
    clock.advance(1)
    await expect.poll(async () => (await owner())?.state).toBe('backing-off')
    expect(await owner()).toMatchObject({
      until: clock.now() + 1000,
      messages: [{ outcome: 'released', tasks: ['async:a'] }],
    })
    isDown = false
    clock.advance(1002)
    await expect.poll(async () => (await owner())?.delivered).toBe(1)
    expect(await owner()).toMatchObject({ owed: 0, leased: 0, waiting: [] })
    // The repeat is the same message: it has the same delivery id.
    expect((await owner())?.messages.map(({ outcome }) => outcome)).toEqual(['accepted'])
    await tasks.dispose()
  })
})
