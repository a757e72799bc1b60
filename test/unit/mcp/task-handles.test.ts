// The handles of tasks on a manager that the test drives: their limits, and what is left when they are closed.
import { Subject } from 'rxjs'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createMcpTasks } from '../../../src/mcp/mcp-tasks.js'
import { createTaskHandles, type TaskHandle } from '../../../src/mcp/task-handles.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

type Settled = { readonly id: string; readonly status: string; readonly completedAt: number; readonly output: object }

function createSubject() {
  const clock = createManualClock(1_000_000)
  const settled$ = new Subject<Settled>()
  const progress$ = new Subject<{ taskId: string }>()
  const questions$ = new Subject<{ taskId: string }>()
  const records = new Map<string, object>()
  const sent: { type: string; deliveryId?: string }[] = []
  const manager = {
    settled$,
    progress$,
    questions$,
    getTask: (id: string) => records.get(id),
    reads: { history: new Map() },
    registry: { send: (event: (typeof sent)[number]) => void sent.push(event), ask: () => undefined },
  }
  const handles = createTaskHandles({
    backend: { manager, clock, session: undefined, config: { tasks: { retentionMs: 1000, pollIntervalMs: 50 } } },
    confirmations: {},
    toEarlierResult: vi.fn(),
  } as never)
  onTestFinished(() => handles.close())
  const create = (id: string, more: object = {}, owner = 'alice'): TaskHandle => {
    records.set(id, { id, status: 'running', launchedAt: clock.now(), ...more })
    return handles.create({ taskId: id, toResult: () => ({ content: [] }) }, owner)
  }
  const settle = (id: string): void => settled$.next({ id, status: 'completed', completedAt: clock.now(), output: {} })
  const observed = () => [settled$, progress$, questions$].map((each) => each.observed)
  const released = () => sent.filter(({ type }) => type === 'lease.release').map(({ deliveryId }) => deliveryId)
  return { clock, manager, handles, records, create, settle, observed, released, progress$, questions$ }
}

it('a handle is there until its time is over, and gives its lease back then', () => {
  const { clock, handles, create, settle, released } = createSubject()
  const handle = create('t1', { timeoutMs: 5000 })
  expect(handles.stateOf(handle)).toMatchObject({ ttlMs: 6000, pollIntervalMs: 50, isAsking: false })
  clock.advance(200)
  settle('t1')
  expect(handles.stateOf(handle).ttlMs).toBe(1200)
  clock.advance(999)
  expect(handles.find('t1', 'alice')).toBe(handle)
  expect(released()).toEqual([])
  clock.advance(1)
  expect(() => handles.find('t1', 'alice')).toThrow('There is no such task, or it has expired.')
  expect(released()).toEqual(['task-t1'])
})

it('a task that runs has no time to live without a deadline, and is not removed', () => {
  const { clock, handles, create } = createSubject()
  const handle = create('t1')
  clock.advance(1_000_000)
  expect(handles.stateOf(handle).ttlMs).toBeNull()
  expect(handles.find('t1', 'alice')).toBe(handle)
})

it('1,000 ended tasks are kept, and beyond them the one that ended first goes, whatever was created first', () => {
  const { handles, create, settle, released } = createSubject()
  for (let at = 0; at <= 1000; at += 1) create(`t${at}`)
  // The second one ends first.
  settle('t1')
  settle('t0')
  for (let at = 2; at < 1000; at += 1) settle(`t${at}`)
  expect(released()).toEqual([])
  settle('t1000')
  expect(released()).toEqual(['task-t1'])
  expect(handles.list('alice', 0)).toHaveLength(1000)
  expect(handles.list('alice', 999)).toHaveLength(2)
  expect(handles.list('bob', 0)).toEqual([])
})

it('the first end counts, and what changes after it is told to nobody', () => {
  const { clock, handles, create, settle, questions$, progress$ } = createSubject()
  const changes: string[] = []
  handles.changes$.subscribe(({ started, end }) =>
    changes.push(`${started.taskId} ${end === undefined ? 'open' : 'ended'}`),
  )
  const handle = create('t1')
  clock.advance(10)
  progress$.next({ taskId: 't1' })
  expect(handle.updatedAt).toBe(1_000_010)
  questions$.next({ taskId: 't1' })
  questions$.next({ taskId: 'unknown' })
  settle('t1')
  const { end } = handle
  clock.advance(10)
  settle('t1')
  questions$.next({ taskId: 't1' })
  expect(handle.end).toBe(end)
  expect(changes).toEqual(['t1 open', 't1 ended'])
})

it('a task that has ended before its handle was made has its end at once', () => {
  const { create } = createSubject()
  expect(create('t1', { status: 'completed', completedAt: 1_000_000 }).end).toMatchObject({ at: 1_000_000 })
})

it('nothing is left when they are closed: no subscription, and whoever waits is told', () => {
  const { handles, create, observed } = createSubject()
  create('t1')
  const complete = vi.fn()
  handles.changes$.subscribe({ complete })
  expect(observed()).toEqual([true, true, true])
  handles.close()
  expect(observed()).toEqual([false, false, false])
  expect(complete).toHaveBeenCalledOnce()
  expect(() => handles.find('t1', 'alice')).toThrow('There is no such task')
})

it('who waits for the end of a task is told once, at once when it has ended, and not after it has given up', () => {
  const { handles, manager, create, settle, questions$ } = createSubject()
  const tasks = createMcpTasks(handles, manager as never, {} as never)
  for (const id of ['t1', 't2', 't3']) create(id)
  const told: string[] = []
  const wait = (id: string): AbortController => {
    const caller = new AbortController()
    onTestFinished(() => caller.abort())
    tasks.whenEnded(id, 'alice', caller.signal, () => told.push(id))
    return caller
  }
  wait('t1')
  const leaving = wait('t2')
  wait('t3')
  questions$.next({ taskId: 't1' })
  expect(told).toEqual([])
  leaving.abort()
  settle('t2')
  settle('t1')
  expect(told).toEqual(['t1'])
  wait('t1')
  expect(told).toEqual(['t1', 't1'])
  handles.close()
  expect(told.slice(2)).toContain('t3')
})

it('a client of 2025 is notified of its own tasks, until it is gone', () => {
  const { handles, manager, create, settle } = createSubject()
  const tasks = createMcpTasks(handles, manager as never, {} as never)
  const notification = vi.fn((_sent: { params: { taskId: string; status: string } }) => Promise.resolve())
  const server = { notification, getClientCapabilities: () => ({}) }
  const stop = tasks.notify(server as never, 'alice')
  for (const id of ['t1', 't2']) create(id)
  create('t3', {}, 'bob')
  settle('t3')
  settle('t1')
  expect(notification.mock.calls.map(([{ params }]) => [params.taskId, params.status])).toEqual([['t1', 'completed']])
  stop()
  settle('t2')
  expect(notification).toHaveBeenCalledOnce()
})
