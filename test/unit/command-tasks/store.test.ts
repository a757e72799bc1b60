import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { AsyncTaskManager } from '../../../src/index.js'
import { InstanceManager, TaskManager, type TaskManagerOptions } from '../../../src/server/index.js'
import { memoryStore, StoreError, type MemoryStore, type Store } from '../../../src/store/index.js'
import type { StoredCommandTask } from '../../../src/store/store.js'
import { breakableStore } from '../../support/breakable-store.js'
import { createCommandHost, type CommandHost } from '../../support/command-host.js'
import { StoreInUseError } from '../../../src/store/store-errors.js'
import type { SubmitResult } from '../../../src/command-tasks/options.js'

/** A host, as a process that has just started. */
function hostOn(store: Store, options: Partial<TaskManagerOptions> = {}): CommandHost {
  const host = createCommandHost({ store, ...options })
  onTestFinished(() => host.dispose().then(() => undefined))
  return host
}

/** The next process, when this one is killed now. */
const afterCrash = (store: MemoryStore, options?: Partial<TaskManagerOptions>) => {
  const copy = store.copy()
  return { store: copy, ...hostOn(copy, options) }
}

const idOf = (answer: SubmitResult): string => ('taskId' in answer ? answer.taskId : '')

const task = { task_name: 'a task', commands: [{ tool_name: 'step', args: { name: 'a' } }] }

describe('a submission', () => {
  it('K12: is stored before it is accepted, with its start where nothing is in its way', async () => {
    const store = memoryStore()
    const host = hostOn(store)
    host.connect()
    const id = host.submit(['a', 'b'])
    const later = host.submit('c')
    expect(store.contents().commandTasks).toEqual([])
    expect(await Promise.all([host.tasks.accepted(id), host.tasks.accepted(later)])).toEqual([true, true])
    expect(store.contents().commandTasks).toMatchObject([
      { id, status: 'running', instanceId: 'one', seq: 1, record: { commands: [{ status: 'pending' }, {}] } },
      { id: later, status: 'queued', seq: 2 },
    ])
    expect(host.tasks.accepted(id)).toBeUndefined()
  })

  it('K12: is one write with all that are submitted in its tick', async () => {
    const { store, state } = breakableStore()
    const host = hostOn(store)
    host.connect()
    for (let n = 0; n < 100; n += 1) host.submit('a')
    await host.tasks.stored()
    expect([state.writes, host.tasks.listTasks().length]).toEqual([1, 100])
  })

  it('K12: is refused when it cannot be stored, and nothing has changed', async () => {
    const { store, state, memory } = breakableStore()
    const host = hostOn(store, { maxQueueSize: 2 })
    host.connect()
    state.isBroken = true
    const submitted: string[] = []
    host.tasks.submitted$.subscribe((id) => submitted.push(id))
    const ids = ['k', 'l'].map((idempotencyKey) => idOf(host.tasks.submitTask(task, { idempotencyKey })))
    const accepted = Promise.all(ids.map(async (id) => host.tasks.accepted(id)))
    await expect(host.tasks.stored()).rejects.toMatchObject({ code: 'STORE_FULL' })
    expect(await accepted).toEqual([false, false])
    await host.settle()
    expect([host.tasks.listTasks(), host.told, submitted, host.calls]).toEqual([[], [], [], []])
    expect([host.tasks.laneDepths.size, host.tasks.lanes, host.clock.pending]).toEqual([0, [], 0])
    expect(host.onError).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: 'STORE_FULL' }), {
      source: 'store',
    })
    state.isBroken = false
    expect(host.tasks.submitTask(task, { idempotencyKey: 'k' })).toMatchObject({ queuePosition: 1 })
    await host.settle()
    expect(host.calls.map(({ name }) => name)).toEqual(['a'])
    expect(memory.contents().commandTasks).toHaveLength(1)
  })

  it('K12: is refused alone when its row is the reason', async () => {
    const memory = memoryStore()
    const store: Store = {
      ...memory,
      write: async (changes) => {
        for (const change of changes) {
          if (!('put' in change) || !change.put.id.endsWith('_2')) continue
          throw new StoreError('STORE_FAILED', 'it cannot be held', { row: { table: change.table, id: change.put.id } })
        }
        await memory.write(changes)
      },
    }
    const host = hostOn(store)
    host.connect()
    const ids = ['a', 'b', 'c'].map((name) => host.submit(name))
    const accepted = Promise.all(ids.map(async (id) => host.tasks.accepted(id)))
    expect(await accepted).toEqual([true, false, true])
    expect(memory.contents().commandTasks.map(({ id }) => id)).toEqual([ids[0], ids[2]])
    await host.settle()
    expect(host.calls.map(({ name }) => name)).toEqual(['a'])
    expect([host.tasks.laneDepths.get('one'), host.clock.pending]).toEqual([2, 1])
  })

  it('takes no room when it cannot be stored', async () => {
    const { store, state } = breakableStore()
    const host = hostOn(store, { maxBytes: 1000 })
    host.connect()
    state.isBroken = true
    for (let n = 0; n < 20; n += 1) expect(await host.tasks.accepted(idOf(host.tasks.submitTask(task)))).toBe(false)
    state.isBroken = false
    expect(host.tasks.submitTask(task)).toMatchObject({ queuePosition: 1 })
  })

  it('that is larger than a row may be is refused', () => {
    const host = hostOn(memoryStore(), { maxTaskBytes: 1e9, maxBytes: 2e9 })
    host.connect()
    const text = 'x'.repeat(1_000_000)
    const parts = Array.from({ length: 70 }, () => text)
    expect(host.tasks.submitTask({ ...task, metadata: { parts } })).toMatchObject({ code: 'INVALID_TASK' })
  })
})

describe('what happens to a task', () => {
  it('K12: is stored before anyone hears of it, in one write for each tick', async () => {
    const { store, state, memory } = breakableStore()
    const host = hostOn(store)
    host.connect()
    const id = host.submit(['a', 'b'])
    const seen: unknown[] = []
    const look = ({ type }: { type: string }): void => {
      const { commandTasks, commands } = memory.contents()
      seen.push([type, commandTasks[0]?.status, commands.map(({ outcome }) => outcome['status'])])
    }
    host.tasks.on('progress', look).on('complete', look)
    await host.settle()
    host.call('a').finish('A')
    await host.settle()
    state.writes = 0
    host.call('b').fail(new Error('no'))
    await host.settle()
    expect(state.writes).toBe(1)
    expect(seen).toEqual([
      ['task_progress', 'running', []],
      ['task_progress', 'running', ['success']],
      ['task_progress', 'running', ['success']],
      ['task_progress', 'failed', ['success', 'error']],
      ['task_complete', 'failed', ['success', 'error']],
    ])
    expect(memory.contents().commandTasks).toMatchObject([{ id, completedAt: 10_000, record: { status: 'failed' } }])
  })

  it('K12: a command starts only after its start is stored', async () => {
    const { store, state } = breakableStore()
    const host = hostOn(store, { commandTimeout: 50 })
    host.connect()
    host.submit('before')
    const id = host.submit('a')
    await host.settle()
    state.isBroken = true
    host.call('before').finish()
    await host.settle()
    expect([host.calls.map(({ name }) => name), host.story(id)]).toEqual([['before'], []])
    // Its time limit begins with the call.
    host.clock.advance(60)
    state.isBroken = false
    host.clock.advance(40)
    await host.settle()
    expect(host.story(id)).toEqual(['cmd_1 running'])
    expect(host.calls.map(({ name }) => name)).toEqual(['before', 'a'])
    host.clock.advance(50)
    await host.settle()
    expect(host.story(id)).toEqual(['cmd_1 running', 'cmd_1 error', 'failed'])
  })

  it('K10: is notified once, in order, when a write that failed succeeds', async () => {
    const { store, state } = breakableStore()
    const host = hostOn(store)
    host.connect()
    const id = host.submit(['a', 'b'])
    await host.settle()
    state.isBroken = true
    host.call('a').finish()
    await host.settle()
    host.clock.advance(100)
    await host.settle()
    host.clock.advance(200)
    await host.settle()
    expect(host.story(id)).toEqual(['cmd_1 running'])
    expect(host.calls).toHaveLength(1)
    expect(host.onError).toHaveBeenCalledTimes(3)
    state.isBroken = false
    host.clock.advance(400)
    await host.settle()
    expect(host.story(id)).toEqual(['cmd_1 running', 'cmd_1 success', 'cmd_2 running'])
    expect(host.calls.map(({ name }) => name)).toEqual(['a', 'b'])
  })

  it('K6: a cancellation is stored before the command is aborted, which happens also when it cannot be stored', async () => {
    const { store, state, memory } = breakableStore()
    const host = hostOn(store)
    host.connect()
    const ids = [host.submit('a'), host.submit('b')]
    await host.settle()
    const stored: unknown[] = []
    host.call('a').signal.addEventListener('abort', () => stored.push(memory.contents().commandTasks[0]?.status))
    expect(host.tasks.cancelTask(ids[0] ?? '')).toBe(true)
    expect(stored).toEqual([])
    await host.tasks.stored()
    expect(stored).toEqual(['cancelled'])
    host.call('a').finish()
    await host.settle()
    state.isBroken = true
    expect(host.tasks.cancelTask(ids[1] ?? '')).toBe(true)
    await expect(host.tasks.stored()).rejects.toThrow('the disk is full')
    expect(host.call('b').signal.aborted).toBe(true)
    expect(host.story(ids[1] ?? '')).toEqual(['cmd_1 running'])
    state.isBroken = false
  })

  it('a command that is cancelled before its start was stored never runs', async () => {
    const { store, state } = breakableStore()
    const host = hostOn(store)
    host.connect()
    host.submit('before')
    const id = host.submit('a')
    await host.settle()
    state.isBroken = true
    host.call('before').finish()
    await host.settle()
    host.tasks.cancelTask(id)
    state.isBroken = false
    host.clock.advance(100)
    host.submit('b')
    await host.settle()
    expect(host.calls.map(({ name }) => name)).toEqual(['before', 'b'])
    expect(host.story(id)).toEqual(['cmd_1 running', 'cancelled'])
  })
})

describe('after a crash', () => {
  it('K12: queued tasks keep their order, and run when their instance is there', async () => {
    const store = memoryStore()
    const first = hostOn(store)
    first.tasks.holdQueue()
    first.connect('one')
    first.connect('two')
    const ids = ['a', 'b', 'c', 'd'].map((name, at) => first.submit(name, { instanceId: at === 3 ? 'two' : 'one' }))
    await first.tasks.stored()
    const next = afterCrash(store)
    expect(next.tasks.recovered).toEqual({ queued: ids, interrupted: [] })
    expect(next.tasks.listTasks().map(({ id, status }) => [id, status])).toEqual(
      ids.toReversed().map((id) => [id, 'queued']),
    )
    expect(ids.map((id) => next.tasks.placeOf(id))).toEqual([1, 2, 3, 4])
    await next.settle()
    expect(next.calls).toEqual([])
    next.connect('one')
    const last = next.submit('e', { instanceId: 'one' })
    expect(next.tasks.placeOf(last)).toBe(5)
    for (const name of ['a', 'b', 'c', 'e']) {
      await next.settle()
      expect(next.calls.at(-1)?.name).toBe(name)
      next.call(name).finish()
    }
    expect(next.calls).toHaveLength(4)
  })

  it('K12: the command in flight has failed its task, and the results before it are kept', async () => {
    const store = memoryStore()
    const first = hostOn(store)
    first.connect()
    const id = first.submit(['a', 'b', 'c'])
    const waiting = first.submit('d')
    await first.settle()
    first.clock.advance(5)
    first.call('a').finish({ found: 7 })
    await first.settle()
    const next = afterCrash(store)
    next.connect()
    await next.settle()
    expect(next.tasks.recovered).toEqual({ queued: [waiting], interrupted: [id] })
    expect(next.story(id)).toEqual(['cmd_2 error', 'failed'])
    expect(next.tasks.getTask(id)).toMatchObject({
      status: 'failed',
      duration: 5,
      currentCommandIndex: 1,
      error: { code: 'INTERRUPTED', commandId: 'cmd_2', message: expect.stringContaining('Check this') as string },
      commands: [
        { status: 'success', result: { structuredContent: { found: 7 } } },
        { status: 'error', error: { code: 'INTERRUPTED' } },
        { status: 'skipped' },
      ],
    })
    expect(next.calls.map(({ name }) => name)).toEqual(['d'])
    const third = afterCrash(next.store)
    expect(third.tasks.recovered).toEqual({ queued: [], interrupted: [waiting] })
    expect(third.tasks.getTask(id)).toEqual(next.tasks.getTask(id))
    await third.settle()
    expect(third.story(id)).toEqual([])
  })

  it('K12: tasks whose instance does not come back fail as those of a lost one', async () => {
    const store = memoryStore()
    const first = hostOn(store)
    first.tasks.holdQueue()
    first.connect()
    const id = first.submit('a')
    await first.tasks.stored()
    const next = afterCrash(store, { instanceGraceMs: 500 })
    next.connect('other')
    expect(next.tasks.submitTask({ ...task, instanceId: 'one' })).toMatchObject({ code: 'INVALID_INSTANCE' })
    next.clock.advance(499)
    expect(next.tasks.getTask(id)?.status).toBe('queued')
    next.clock.advance(1)
    await next.settle()
    expect(next.tasks.getTask(id)).toMatchObject({ status: 'failed', error: { code: 'INSTANCE_DISCONNECTED' } })
    expect(next.store.contents().commandTasks[0]?.status).toBe('failed')
  })

  it('K12: a task that was cancelled keeps when and why its command in flight was given up', async () => {
    const store = memoryStore()
    const first = hostOn(store)
    first.connect()
    const id = first.submit(['a', 'b'], { metadata: { user: 1 } })
    await first.settle()
    first.clock.advance(7)
    first.tasks.cancelTask(id, 'enough')
    await first.settle()
    const before = first.tasks.getTask(id)
    expect(before).toMatchObject({ metadata: { user: 1 }, error: { message: 'Task cancelled: enough' } })
    expect(before?.commands[0]).toMatchObject({ status: 'skipped', completedAt: 10_007, error: { code: 'CANCELLED' } })
    expect(afterCrash(store).tasks.getTask(id)).toEqual(before)
  })

  it('K12: only tasks that have started or ended have had events before', async () => {
    const store = memoryStore()
    const first = hostOn(store)
    first.connect()
    const [ended, interrupted, queued] = [first.submit('a'), first.submit('b'), first.submit('c')]
    await first.settle()
    first.call('a').finish()
    await first.settle()
    const next = afterCrash(store)
    const isContinued = () => [ended, interrupted, queued].map((id) => next.tasks.isContinued(id))
    expect(isContinued()).toEqual([true, true, false])
    await next.settle()
    next.tasks.cleanupTasks(-1)
    expect(isContinued()).toEqual([false, false, false])
  })

  it('K12: the tasks that ended first are forgotten first, whichever was submitted first', async () => {
    const store = memoryStore()
    const first = hostOn(store)
    first.connect('one')
    first.connect('two')
    const late = first.submit('a', { instanceId: 'one' })
    const early = first.submit('b', { instanceId: 'two' })
    await first.settle()
    first.call('b').finish()
    await first.settle()
    first.clock.advance(1000)
    first.call('a').finish()
    await first.settle()
    const next = afterCrash(store, { maxRetained: 1 })
    expect([early, late].map((id) => next.tasks.getTask(id)?.status)).toEqual([undefined, 'completed'])
  })

  it('K12: tasks that wait for an instance that was registered before start when it connects', async () => {
    const store = memoryStore()
    const first = hostOn(store)
    first.tasks.holdQueue()
    first.connect()
    first.submit('a')
    await first.tasks.stored()
    const instances = new InstanceManager({ clock: first.clock })
    const callTool = vi.fn(() => Promise.resolve({ content: [] }))
    let open: () => void = () => undefined
    instances.connect({
      id: 'one',
      kind: 'websocket',
      listTools: () => Promise.resolve([]),
      callTool,
      onLost: () => undefined,
      connection: {
        timing: {},
        onEvent: (listener) => (open = () => listener('connection.opened')),
        failCalls: () => undefined,
      },
      close: () => Promise.resolve(),
    })
    const tasks = new TaskManager({ clock: first.clock, instances, store: store.copy() })
    onTestFinished(async () => {
      await Promise.all([tasks.dispose(), instances.dispose()])
    })
    await first.settle()
    expect([callTool.mock.calls.length, tasks.listTasks().map(({ status }) => status)]).toEqual([0, ['queued']])
    open()
    await first.settle()
    expect([callTool.mock.calls.length, tasks.listTasks().map(({ status }) => status)]).toEqual([1, ['completed']])
  })

  it('K12: tasks that wait for an instance fail when it is lost before it has connected', async () => {
    const store = memoryStore()
    const first = hostOn(store)
    first.tasks.holdQueue()
    first.connect()
    const id = first.submit('a')
    await first.tasks.stored()
    const next = afterCrash(store)
    next.instances.connect({
      id: 'one',
      kind: 'websocket',
      listTools: () => Promise.resolve([]),
      callTool: () => Promise.resolve({ content: [] }),
      onLost: () => undefined,
      connection: { timing: {}, onEvent: () => undefined, failCalls: () => undefined },
      close: () => Promise.resolve(),
    })
    await next.instances.disconnect('one')
    expect(next.tasks.getTask(id)).toMatchObject({
      status: 'failed',
      error: { code: 'INSTANCE_DISCONNECTED', message: 'Instance one disconnected' },
    })
  })

  it('K12: tasks wait 90 s for their instance by default', async () => {
    const store = memoryStore()
    const first = hostOn(store)
    first.tasks.holdQueue()
    first.connect()
    const id = first.submit('a')
    await first.tasks.stored()
    const next = afterCrash(store)
    next.clock.advance(89_999)
    expect(next.tasks.getTask(id)?.status).toBe('queued')
    next.clock.advance(1)
    expect(next.tasks.getTask(id)?.error?.message).toBe(
      'Instance one did not connect within 90000 ms after the server was restarted',
    )
  })

  it('a task that waits can be cancelled', async () => {
    const store = memoryStore()
    const first = hostOn(store)
    first.tasks.holdQueue()
    first.connect()
    const id = first.submit('a')
    await first.tasks.stored()
    const next = afterCrash(store)
    expect(next.tasks.cancelTask(id)).toBe(true)
    next.connect()
    await next.settle()
    expect([next.story(id), next.calls]).toEqual([['cancelled'], []])
  })

  it('K12: an instance that is there before the manager gets its tasks', async () => {
    const store = memoryStore()
    const first = hostOn(store)
    first.tasks.holdQueue()
    first.connect()
    const id = first.submit('a')
    await first.tasks.stored()
    const instances = new InstanceManager({ clock: first.clock })
    instances.connect({
      id: 'one',
      kind: 'local',
      listTools: () => Promise.resolve([]),
      callTool: () => Promise.resolve({ content: [] }),
      onLost: () => undefined,
      close: () => Promise.resolve(),
    })
    const tasks = new TaskManager({ clock: first.clock, instances, store: store.copy() })
    await first.settle()
    expect(tasks.getTask(id)?.status).toBe('completed')
  })

  it('K12: ended tasks are retained as long as without a crash, and pruned on disk', async () => {
    const store = memoryStore()
    const first = hostOn(store, { retentionMs: 60_000 })
    first.connect()
    const ids: string[] = []
    for (const name of ['a', 'b', 'c']) {
      ids.push(first.submit(name))
      await first.settle()
      first.call(name).finish(name)
      await first.settle()
      first.clock.advance(1000)
    }
    const next = afterCrash(store, { retentionMs: 60_000, maxRetained: 2 })
    await next.settle()
    expect(next.tasks.listTasks().map(({ id }) => id)).toEqual(ids.slice(1).reverse())
    expect(next.store.contents().commandTasks.map(({ id }) => id)).toEqual(ids)
    next.connect()
    await next.tasks.history()
    const last = next.submit('d')
    await next.tasks.stored()
    expect(next.store.contents().commandTasks.map(({ id }) => id)).toEqual([...ids.slice(1), last])
    expect(next.store.contents().commands.map(({ taskId }) => taskId)).toEqual(ids.slice(1))
    const third = createCommandHost({ store: next.store.copy(), retentionMs: 60_000 })
    onTestFinished(() => third.dispose().then(() => undefined))
    expect(third.tasks.cleanupTasks(1)).toBe(0)
  })

  it('K12: no id comes again, also when all tasks were pruned', async () => {
    const store = memoryStore()
    const first = hostOn(store, { maxRetained: 0 })
    first.connect()
    const id = first.submit('a')
    await first.settle()
    first.call('a').finish()
    await first.settle()
    expect(first.tasks.listTasks()).toEqual([])
    const next = afterCrash(store, { maxRetained: 0 })
    expect(next.tasks.listTasks()).toEqual([])
    next.connect()
    const other = next.submit('b')
    expect([next.tasks.placeOf(other), other === id]).toEqual([2, false])
    await next.settle()
    expect(next.store.contents().commandTasks.map((row) => row.id)).toContain(other)
    next.call('b').finish()
    await next.settle()
    await next.tasks.history()
    next.submit('c')
    await next.settle()
    expect(next.store.contents().commandTasks.map((row) => row.id)).not.toContain(id)
  })

  it('K12: results count towards the limit of bytes', async () => {
    const store = memoryStore()
    const first = hostOn(store)
    first.connect()
    const id = first.submit('a')
    await first.settle()
    first.call('a').finish('x'.repeat(1000))
    await first.settle()
    const next = afterCrash(store, { maxBytes: 1000 })
    expect(next.tasks.getTask(id)).toBeUndefined()
  })

  it('a row that is no command task is refused, and the store is free', async () => {
    const store = memoryStore()
    store.open()
    await store.write([
      {
        table: 'commandTasks',
        put: { id: 'x', instanceId: 'one', status: 'queued', seq: 1, createdAt: 1, record: { id: 'x' } },
      },
    ])
    store.close()
    expect(() => createCommandHost({ store })).toThrow(expect.objectContaining({ code: 'STORE_DAMAGED' }))
    store.open()
  })

  it.each([[null], [0], ['']])('a row with the request %j is refused, and the store is free', async (submission) => {
    const store = memoryStore()
    const first = hostOn(store)
    first.connect()
    first.submit('a')
    await first.settle()
    const [row] = store.contents().commandTasks
    const changed = memoryStore()
    changed.open()
    await changed.write([{ table: 'commandTasks', put: { ...row, submission } as unknown as StoredCommandTask }])
    changed.close()
    expect(() => createCommandHost({ store: changed })).toThrow(expect.objectContaining({ code: 'STORE_DAMAGED' }))
    changed.open()
  })
})

describe('an idempotency key', () => {
  const submit = (host: CommandHost, name: string, idempotencyKey = 'key') =>
    host.tasks.submitTask({ ...task, commands: [{ tool_name: 'step', args: { name } }] }, { idempotencyKey })

  it('K12: gets the same answer for the same task, and a refusal for another', async () => {
    const host = hostOn(memoryStore())
    host.connect()
    host.submit('before')
    const answer = submit(host, 'a')
    expect(answer).toMatchObject({ queuePosition: 2 })
    await host.settle()
    expect(submit(host, 'a')).toEqual(answer)
    expect(submit(host, 'b')).toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' })
    expect(host.tasks.submitTask({ ...task, instanceId: 'one' }, { idempotencyKey: 'key' })).toMatchObject({
      code: 'IDEMPOTENCY_KEY_REUSED',
    })
    expect(submit(host, 'b', 'other key')).toMatchObject({ queuePosition: 3 })
    expect(host.tasks.listTasks()).toHaveLength(3)
  })

  it('K12: is known after a crash, and until its task is forgotten', async () => {
    const store = memoryStore()
    const first = hostOn(store)
    first.tasks.holdQueue()
    first.connect()
    const answer = submit(first, 'a')
    await first.tasks.stored()
    const next = afterCrash(store)
    expect(submit(next, 'a')).toEqual(answer)
    expect(submit(next, 'b')).toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' })
    next.connect()
    await next.settle()
    next.call('a').finish()
    await next.settle()
    expect(submit(next, 'a')).toEqual(answer)
    next.tasks.cleanupTasks(-1)
    expect(submit(next, 'b')).toMatchObject({ queuePosition: 1 })
  })

  it.each([
    ['its metadata', { metadata: { user: 2 } }],
    ['its name', { task_name: 'another' }],
    ['its intention', { task_intention: 'why' }],
    ['the limit of a command', { commands: [{ tool_name: 'step', args: { name: 'a' }, timeout: 5 }] }],
    ['the intention of a command', { commands: [{ tool_name: 'step', args: { name: 'a' }, intention: 'why' }] }],
    ['the tool of a command', { commands: [{ tool_name: 'other', args: { name: 'a' } }] }],
  ])('is refused for a task that differs in %s', (_what, change) => {
    const host = hostOn(memoryStore())
    host.connect()
    const first = { ...task, metadata: { user: 1 } }
    const answer = host.tasks.submitTask(first, { idempotencyKey: 'key' })
    expect(host.tasks.submitTask(first, { idempotencyKey: 'key' })).toEqual(answer)
    expect(host.tasks.submitTask({ ...first, ...change }, { idempotencyKey: 'key' })).toMatchObject({
      code: 'IDEMPOTENCY_KEY_REUSED',
    })
  })

  it('works without a store', () => {
    const host = createCommandHost()
    onTestFinished(() => host.dispose().then(() => undefined))
    host.connect()
    expect(submit(host, 'a')).toEqual(submit(host, 'a'))
    expect(() => submit(host, 'a', '')).toThrow('options.idempotencyKey')
    expect(() => submit(host, 'a', 'x'.repeat(513))).toThrow('options.idempotencyKey')
  })
})

describe('a disposal', () => {
  it('K12, K13: leaves queued tasks in the store, and interrupts the one that runs, without a message about it', async () => {
    const store = memoryStore()
    const host = createCommandHost({ store })
    host.connect()
    const ids = [host.submit('a'), host.submit('b')]
    await host.settle()
    await host.dispose()
    expect(host.completes()).toEqual([])
    expect(store.contents().commandTasks.map(({ status }) => status)).toEqual(['running', 'queued'])
    const next = hostOn(store)
    expect(next.tasks.recovered).toEqual({ queued: [ids[1]], interrupted: [ids[0]] })
  })

  it('K12, K13: cancels the one that runs with the option cancel', async () => {
    const store = memoryStore()
    const host = createCommandHost({ store })
    host.connect()
    host.submit('a')
    await host.settle()
    const disposed = host.tasks.dispose({ cancel: true })
    await host.dispose()
    await disposed
    expect(host.completes()).toMatchObject([{ status: 'cancelled' }])
    expect(store.contents().commandTasks.map(({ status }) => status)).toEqual(['cancelled'])
  })

  it('nobody hears of what could not be stored', async () => {
    const { store, state, memory } = breakableStore()
    const host = createCommandHost({ store })
    host.connect()
    host.submit('a')
    await host.settle()
    state.isBroken = true
    await host.dispose()
    expect(host.completes()).toEqual([])
    expect(memory.contents().commandTasks[0]?.status).toBe('running')
  })
})

describe('a store', () => {
  it('K9: serves one manager of each kind, is opened once, and is closed by the last', async () => {
    const memory = memoryStore()
    const log: string[] = []
    const store: Store = {
      ...memory,
      open: () => {
        log.push('open')
        return memory.open()
      },
      close: () => {
        log.push('close')
        memory.close()
      },
    }
    const asyncTasks = new AsyncTaskManager({ store })
    const host = createCommandHost({ store })
    expect(log).toEqual(['open'])
    expect(() => createCommandHost({ store })).toThrow(StoreInUseError)
    expect(() => new AsyncTaskManager({ store })).toThrow(StoreInUseError)
    await asyncTasks.dispose()
    host.connect()
    host.submit('a')
    await host.tasks.stored()
    expect(memory.contents().commandTasks).toHaveLength(1)
    // Its tables have changed since the store was opened.
    expect(() => new AsyncTaskManager({ store })).toThrow(StoreInUseError)
    expect(log.filter((line) => line === 'close')).toEqual([])
    await host.dispose()
    expect(log.at(-1)).toBe('close')
    await new AsyncTaskManager({ store }).dispose()
  })
})

describe('the last place in the order of submission', () => {
  it('K12: is kept by one row, however often the next submission cannot be stored', async () => {
    const { store, state, memory } = breakableStore()
    const host = hostOn(store, { maxRetained: 0 })
    host.connect()
    host.submit('a')
    await host.settle()
    host.call('a').finish()
    await host.settle()
    await host.tasks.history()
    await host.settle()
    expect(memory.contents().commandTasks).toMatchObject([{ seq: 1, status: 'forgotten' }])
    state.isBroken = true
    for (let n = 0; n < 3; n += 1) expect(await host.tasks.accepted(idOf(host.tasks.submitTask(task)))).toBe(false)
    expect(memory.contents().commandTasks).toMatchObject([{ seq: 1, status: 'forgotten' }])
    state.isBroken = false
    const id = host.submit('b')
    await host.settle()
    expect(memory.contents().commandTasks.filter(({ status }) => status !== 'forgotten')).toMatchObject([
      { id, seq: 5 },
    ])
    host.call('b').finish()
    await host.settle()
    await host.tasks.history()
    await host.settle()
    expect(memory.contents().commandTasks).toMatchObject([{ id, seq: 5, status: 'forgotten' }])
  })
})

describe('stored workers', () => {
  const worker = (id: string) => ({ id, secretSha256: '', registration: {} })

  it('are at most 10,000; one that is gone makes room, and is removed from the store', async () => {
    const store = memoryStore()
    const host = hostOn(store)
    const { persistence } = host.tasks
    for (let n = 0; n < 10_000; n += 1) void persistence?.addWorker(worker(`w${n}`))
    await host.tasks.stored()
    expect(await persistence?.addWorker(worker('one more'))).toBe(false)
    expect(store.contents().instances).toHaveLength(10_000)
    persistence?.removeWorker('w5')
    persistence?.removeWorker('nobody')
    await host.settle()
    expect(store.contents().instances).toHaveLength(9999)
    expect(await persistence?.addWorker(worker('one more'))).toBe(true)
  })
})

describe('the tools of stored workers', () => {
  it('count only where they are stored', async () => {
    const store = memoryStore()
    const { persistence } = hostOn(store).tasks
    const worker = (id: string, mebibytes: number) => ({
      id,
      secretSha256: '',
      registration: { tools: [{ name: 'a', description: 'x'.repeat(mebibytes * 1024 * 1024) }] },
    })
    for (const [id, size] of [
      ['first', 10],
      ['too-large', 10],
      ['third', 1],
    ] as const) {
      expect(await persistence?.addWorker(worker(id, size))).toBe(true)
    }
    const withTools = store.contents().instances.filter(({ registration }) => 'tools' in registration)
    expect(withTools.map(({ id }) => id)).toEqual(['first', 'third'])
  })

  it('may have exactly 16 MiB of JSON together, also those of an earlier process', async () => {
    const store = memoryStore()
    const { persistence } = hostOn(store).tasks
    const half = (id: string, more = 0) => {
      const registration = { tools: [{ name: 'a', description: '' }] }
      const rest = 8 * 1024 * 1024 - JSON.stringify(registration).length + more
      return { id, secretSha256: '', registration: { tools: [{ name: 'a', description: 'x'.repeat(rest) }] } }
    }
    await persistence?.addWorker(half('first'))
    const next = afterCrash(store)
    void next.tasks.persistence?.addWorker(half('larger', 1))
    void next.tasks.persistence?.addWorker(half('second'))
    await next.tasks.persistence?.addWorker(half('third', -8 * 1024 * 1024 + 100))
    const withTools = next.store.contents().instances.filter(({ registration }) => 'tools' in registration)
    expect(withTools.map(({ id }) => id)).toEqual(['first', 'second'])
  })

  it('take no room when they cannot be stored', async () => {
    const { store, state, memory } = breakableStore()
    const { persistence } = hostOn(store).tasks
    const registration = { tools: [{ name: 'a', description: 'x'.repeat(10 * 1024 * 1024) }] }
    state.isBroken = true
    const refused = persistence?.addWorker({ id: 'refused', secretSha256: '', registration })
    await expect(refused).rejects.toThrow('the disk is full')
    state.isBroken = false
    await persistence?.addWorker({ id: 'first', secretSha256: '', registration })
    expect(memory.contents().instances).toMatchObject([{ id: 'first', registration: { tools: [{ name: 'a' }] } }])
  })
})
