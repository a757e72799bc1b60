/** Loops over the events of a task: what they receive, and that they keep and leave nothing. */
import { followers } from '../../../src/features/output/output-stream.js'
import { taskWatchers } from '../../../src/async-tasks/task-watchers.js'
import { describe, expect, it, vi } from 'vitest'
import type { TaskHandle, TaskHandleEvent } from '../../../src/index.js'
import { breakableStore } from '../../support/breakable-store.js'
import { deafMachine, setUp, settle } from './launched-tasks.js'

/** Reads all events in the background, each as soon as it is there. */
function follow(handle: TaskHandle<unknown>): { readonly seen: unknown[]; readonly isOver: Promise<void> } {
  const seen: unknown[] = []
  const read = async (): Promise<void> => {
    for await (const event of handle) seen.push(short(event))
  }
  return { seen, isOver: read() }
}

function short(event: TaskHandleEvent): unknown {
  switch (event.type) {
    case 'progress':
      return event.progress.progress
    case 'output':
      return [event.text, event.cursor]
    case 'question':
      return event.question.message
    case 'end':
      return event.record.status
  }
}

async function start(options = {}) {
  const host = setUp(options)
  const handle = host.tasks.launch('worker', 'work')
  await settle()
  const [run] = host.runs
  if (run === undefined) expect.unreachable()
  const watchers = host.manager.registry.use(taskWatchers)
  const [added, removed] = [vi.spyOn(watchers, 'add'), vi.spyOn(watchers, 'remove')]
  /** How many watchers the loops have left. */
  const left = (): number => added.mock.calls.length - new Set(removed.mock.calls.map(([, watcher]) => watcher)).size
  return { ...host, handle, run, left }
}

describe('a loop over a handle', () => {
  it('H3: receives progress, output and questions as they come, and ends with the task', async () => {
    const { handle, run, left } = await start()
    const { seen, isOver } = follow(handle)
    await settle()
    expect(seen).toEqual([])
    run.context.report(1)
    await settle()
    run.context.append('one ')
    await settle()
    run.context.append('two')
    await settle()
    void run.context.ask('Where to?').catch(() => undefined)
    await settle()
    run.context.report({ progress: 2 })
    await settle()
    expect(seen).toEqual([1, ['one ', 4], ['two', 7], 'Where to?', 2])
    run.resolve('done')
    await isOver
    expect(seen.slice(5)).toEqual(['completed'])
    expect(left()).toBe(0)
  })

  it('H3: begins with what there is, and several loops receive the same', async () => {
    const { handle, run } = await start()
    run.context.append('one')
    run.context.report(1)
    void run.context.ask('Where to?').catch(() => undefined)
    void run.context.ask('And then?').catch(() => undefined)
    const [first, second] = [follow(handle), follow(handle)]
    await settle()
    const expected = ['Where to?', 'And then?', ['one', 3], 1]
    expect([first.seen, second.seen]).toEqual([expected, expected])
    run.resolve('done')
    await Promise.all([first.isOver, second.isOver])
    const late = follow(handle)
    await late.isOver
    expect(late.seen).toEqual([['one', 3], 1, 'completed'])
  })

  it('H3: takes no result', async () => {
    const { handle, run, owed } = await start()
    const { isOver } = follow(handle)
    run.resolve('done')
    await isOver
    expect(owed()).toEqual([handle.id])
  })

  it('H3: that is slow keeps nothing: it receives what there is by then, progress and output in turns', async () => {
    const { handle, run } = await start({ outputBytes: 4 })
    const events = handle[Symbol.asyncIterator]()
    const next = async (): Promise<unknown> => {
      const { value } = (await events.next()) as IteratorResult<TaskHandleEvent, undefined>
      return value && short(value)
    }
    const answered = run.context.ask('Where to?')
    for (let step = 1; step <= 1000; step += 1) {
      run.context.report(step)
      run.context.append(String(step % 10))
    }
    handle.answer(handle.record.questions?.[0]?.id ?? '', 'north')
    await answered
    expect(await next()).toEqual(['7890', 1000])
    run.context.append('x')
    expect(await next()).toBe(1000)
    run.context.report(1001)
    expect(await next()).toEqual(['x', 1001])
    void run.context.ask('And then?').catch(() => undefined)
    expect(await next()).toBe('And then?')
    expect(await next()).toBe(1001)
    run.resolve('done')
    expect(await next()).toBe('completed')
    expect(await next()).toBeUndefined()
    expect(await next()).toBeUndefined()
  })

  it('H3: answers steps that are asked for together in order', async () => {
    const { handle, run, left } = await start()
    const events = handle[Symbol.asyncIterator]()
    const steps = [events.next(), events.next(), events.next()]
    expect(left()).toBe(0)
    await settle()
    expect(left()).toBe(1)
    run.context.append('one')
    run.resolve('done')
    expect(await Promise.all(steps)).toEqual([
      { done: false, value: { type: 'output', text: 'one', cursor: 3 } },
      { done: false, value: { type: 'end', record: handle.record } },
      { done: true, value: undefined },
    ])
  })

  it('H3: that is left early leaves nothing behind', async () => {
    const { handle, run, left } = await start()
    run.context.append('one')
    for await (const { type } of handle) {
      expect(type).toBe('output')
      break
    }
    expect(left()).toBe(0)
    const events = handle[Symbol.asyncIterator]()
    await events.next()
    const waiting = events.next()
    await settle()
    expect(left()).toBe(1)
    expect(await events.return?.()).toEqual({ done: true, value: undefined })
    expect(left()).toBe(0)
    expect(await waiting).toEqual({ done: true, value: undefined })
    run.context.append('two')
    expect(await events.next()).toEqual({ done: true, value: undefined })
  })

  it('H3: has one follower while it waits, however many steps it has taken', async () => {
    const { handle, run, manager } = await start()
    const entry = manager.registry.history.get(handle.id)
    if (entry === undefined) expect.unreachable()
    const events = handle[Symbol.asyncIterator]()
    for (let nth = 0; nth < 5; nth += 1) {
      const step = events.next()
      await settle()
      expect(followers.get(entry)?.size).toBe(1)
      run.context.append(String(nth))
      await step
      expect(followers.get(entry)?.size).toBe(0)
    }
  })

  it('H3: that is not begun, or between two steps, is not subscribed', async () => {
    const { handle, run, left } = await start()
    const events = handle[Symbol.asyncIterator]()
    expect(left()).toBe(0)
    run.context.append('one')
    await events.next()
    expect(left()).toBe(0)
  })

  it('H3: ends when everything is disposed', async () => {
    const { handle, tasks, left } = await start()
    const { seen, isOver } = follow(handle)
    await settle()
    await tasks.dispose()
    await isOver
    expect(seen).toEqual(['cancelled'])
    expect(left()).toBe(0)
    const late = follow(handle)
    await late.isOver
    expect(late.seen).toEqual(['cancelled'])
  })

  it('H3: is over on dispose also when a machine of the host ignores the cancellation', async () => {
    const { tasks, handle, run, left } = await start({ machines: { task: deafMachine } })
    const { seen, isOver } = follow(handle)
    await settle()
    const disposed = tasks.dispose()
    await isOver
    expect(seen).toEqual([])
    expect(left()).toBe(0)
    run.resolve('')
    await disposed
  })

  it('H3: receives the end after it was stored', async () => {
    const { store, state } = breakableStore()
    const { handle, run, clock, left } = await start({ store })
    state.isBroken = true
    run.resolve('done')
    await settle()
    const { seen, isOver } = follow(handle)
    await settle()
    expect(handle.record.status).toBe('completed')
    expect(seen).toEqual([])
    state.isBroken = false
    clock.advance(60_000)
    await isOver
    expect(seen).toEqual(['completed'])
    expect(left()).toBe(0)
  })
})
