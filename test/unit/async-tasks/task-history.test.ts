import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { AsyncTaskManager, createAgentTasks, functionRunner, type AsyncTaskManagerOptions } from '../../../src/index.js'
import { PastTasks } from '../../../src/store/history/past-tasks.js'
import { memoryStore, type MemoryStore, type PastTask, type Store } from '../../../src/store/index.js'
import { createCheckAsyncTasksTool } from '../../../src/tools/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { waitFor } from '../../support/wait-for.js'

const runner = functionRunner(({ goal }) =>
  goal.includes('fail')
    ? Promise.reject(new Error(`cannot ${goal}`))
    : Promise.resolve({ final_message: `result of ${goal}` }),
)

const untilAborted = functionRunner(
  (_input, { signal }) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
)

function create(options: AsyncTaskManagerOptions = {}) {
  const clock = createManualClock(1_000)
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock, ...options })
  onTestFinished(() => manager.dispose())
  return { manager, clock }
}

/** Runs tasks one after the other, and confirms their delivery, so that all but the latest are pruned. */
async function runTasks(
  { manager, clock }: ReturnType<typeof create>,
  count: number,
  goal: (at: number) => string = (at) => `goal ${at}`,
  fields: { readonly owner?: string } = {},
): Promise<string[]> {
  const ids: string[] = []
  for (let at = 0; at < count; at += 1) {
    const { id } = manager.launch(
      { id: `t${String(at).padStart(3, '0')}`, subagentName: 'agent', goalPrompt: goal(at), ...fields },
      runner,
    )
    await manager.waitFor([id])
    ids.push(id)
    clock.advance(1)
  }
  for (const id of ids) manager.markNotified(id)
  await manager.stored()
  return ids
}

async function allPages(manager: AsyncTaskManager, query: object = {}): Promise<string[]> {
  const ids: string[] = []
  let before: string | undefined
  do {
    const { tasks, next } = await manager.history({ limit: 7, ...query, ...(before !== undefined && { before }) })
    ids.push(...tasks.map(({ id }) => id))
    before = next
  } while (before !== undefined)
  return ids
}

describe('the history of a manager', () => {
  it('has every task that has ended once, the latest first, also after a restart', async () => {
    const store = memoryStore()
    const first = create({ store })
    const ids = await runTasks(first, 40)
    first.manager.launch({ subagentName: 'agent', goalPrompt: 'runs' }, untilAborted)
    expect(first.manager.getAllTasks().length).toBeLessThan(20)
    expect(await allPages(first.manager)).toEqual([...ids].reverse())

    const second = create({ store: store.copy() })
    await second.manager.recovered
    const found = await allPages(second.manager)
    expect(found.filter((id) => ids.includes(id))).toEqual([...ids].reverse())
    expect(new Set(found).size).toBe(found.length)
  })

  it('finds tasks by owner, subagent, status and words', async () => {
    const { manager, clock } = create({ store: memoryStore() })
    await runTasks({ manager, clock }, 30, (at) => (at === 3 ? 'fail at login' : `goal ${at} of the page`))
    expect(await allPages(manager, { status: 'failed' })).toEqual(['t003'])
    expect(await allPages(manager, { text: 'LOGI' })).toEqual(['t003'])
    expect(await allPages(manager, { text: 'result 17' })).toEqual(['t017'])
    expect(await allPages(manager, { text: 'result 29' })).toEqual(['t029'])
    expect(await allPages(manager, { owner: 'nobody' })).toEqual([])
    expect(await allPages(manager, { subagent: 'agent', owner: 'main' })).toHaveLength(30)
    const { tasks } = await manager.history({ text: 'result 17' })
    expect(tasks[0]).toMatchObject({
      id: 't017',
      status: 'completed',
      output: { final_message: 'result of goal 17 of the page' },
    })
    expect(tasks[0]).not.toHaveProperty('abortController')
  })

  it('without a store has what is kept in memory', async () => {
    const { manager, clock } = create()
    await runTasks({ manager, clock }, 40)
    const found = await allPages(manager)
    expect(found).toEqual(
      manager
        .getAllTasks()
        .map(({ id }) => id)
        .reverse(),
    )
  })

  it.each([
    [{ limit: 0 }, 'query.limit'],
    [{ before: 'x' }, 'query.before'],
    [{ text: 'x'.repeat(1001) }, 'query.text'],
    [{ subagentName: 'x' }, 'query.subagentName'],
    [{ status: 'done' }, 'query.status'],
  ])('refuses %o, and names the field', async (query, field) => {
    await expect(create().manager.history(query as object)).rejects.toThrow(field)
  })

  it('is an operation of createAgentTasks', async () => {
    const tasks = createAgentTasks({ store: memoryStore(), subagents: { agent: runner } })
    onTestFinished(() => tasks.dispose())
    const handle = tasks.launch('agent', 'look around')
    await handle.result
    expect((await tasks.history({ text: 'look' })).tasks).toMatchObject([{ id: handle.id }])
  })
})

/** A store whose history fails, or waits. */
function storeWith(add: NonNullable<Store['history']>['add'], memory: MemoryStore = memoryStore()): Store {
  const { history } = memory
  if (history === undefined) throw new Error('there is no history')
  return { ...memory, history: { ...history, add } }
}

it('a row stays in the store until the history has its task, and then goes with the next write', async () => {
  let release = (): void => undefined
  const gate = new Promise<void>((resolve) => (release = resolve))
  const memory = memoryStore()
  const made = create({ store: storeWith((tasks) => gate.then(() => memory.history?.add(tasks)), memory) })
  const ids = await runTasks(made, 30)
  made.manager.launch({ id: 'one more', subagentName: 'agent', goalPrompt: 'x' }, untilAborted)
  await made.manager.stored()
  const stored = (): string[] => memory.contents().tasks.map(({ id }) => id)
  expect(stored()).toEqual([...ids, 'one more'])
  expect(made.manager.getTask('t000')).toBeUndefined()
  release()
  await made.manager.history()
  made.manager.launch({ id: 'another', subagentName: 'agent', goalPrompt: 'x' }, untilAborted)
  await made.manager.stored()
  expect(stored()).not.toContain('t000')
  expect(stored()).toEqual(made.manager.getAllTasks().map(({ id }) => id))
})

describe('a history that cannot be written', () => {
  it('is reported, and loses nothing that is owed', async () => {
    const onError = vi.fn()
    const failing = create({ store: storeWith(() => Promise.reject(new Error('no room'))), onError })
    await runTasks(failing, 80)
    await waitFor(() =>
      expect(onError).toHaveBeenCalledWith(expect.objectContaining({ message: 'no room' }), { source: 'store' }),
    )
    const { id } = failing.manager.launch({ subagentName: 'agent', goalPrompt: 'later' }, runner)
    await waitFor(() => expect(failing.manager.getPendingNotifications().map((task) => task.id)).toEqual([id]))
  })

  it.each([
    ['rejects', () => Promise.reject(new Error('no room'))],
    [
      'throws',
      () => {
        throw new Error('no room')
      },
    ],
  ])('%s: the rows stay in the store, and the next process adds them', async (_, add) => {
    const memory = memoryStore()
    const failing = create({ store: storeWith(add, memory), onError: () => undefined })
    const ids = await runTasks(failing, 30)
    await failing.manager.dispose()
    expect(memory.contents().tasks.map(({ id }) => id)).toEqual(ids)

    const next = create({ store: memory })
    await next.manager.recovered
    await waitFor(async () => expect(await allPages(next.manager)).toEqual([...ids].reverse()))
    await next.manager.dispose()
    expect(memory.contents().tasks.length).toBeLessThan(20)
  })

  it('keeps dispose waiting, and the store is closed after it', async () => {
    const order: string[] = []
    let release = (): void => undefined
    const gate = new Promise<void>((resolve) => (release = resolve))
    const memory = memoryStore()
    const store = storeWith(async () => {
      await gate
      order.push('added')
    }, memory)
    const slow = create({
      store: {
        ...store,
        close: () => {
          order.push('closed')
          memory.close()
        },
      },
    })
    await runTasks(slow, 15)
    const disposed = slow.manager.dispose().then(() => order.push('disposed'))
    await new Promise((resolve) => setTimeout(resolve, 10))
    release()
    await disposed
    expect(order.slice(-3)).toEqual(['added', 'closed', 'disposed'])
    expect(order.filter((each) => each !== 'added')).toEqual(['closed', 'disposed'])
  })
})

it('what waits for a history is limited in bytes, and what is not in it is reported', async () => {
  let release = (): void => undefined
  const gate = new Promise<void>((resolve) => (release = resolve))
  const onError = vi.fn()
  const added: string[] = []
  const history = {
    find: () => Promise.resolve(undefined),
    query: () => Promise.resolve([]),
    add: async (tasks: readonly PastTask[]) => {
      await gate
      added.push(...tasks.map(({ id }) => id))
    },
  }
  const past = new PastTasks(history, onError)
  const onAdded = vi.fn()
  const text = 'x'.repeat(1024 * 1024)
  const task = (id: string): PastTask => ({
    id,
    kind: 'task',
    owner: 'main',
    name: 'agent',
    status: 'completed',
    completedAt: 1,
    record: { text },
  })
  past.add(task('first'), onAdded)
  await Promise.resolve()
  await Promise.resolve()
  // What is being written is found although the history does not have it yet.
  expect(await past.find('task', 'first')).toMatchObject({ id: 'first' })
  expect(await past.find('command task', 'first')).toBeUndefined()
  for (let at = 0; at < 70; at += 1) past.add(task(`t${at}`), onAdded)
  expect(onError.mock.calls.length).toBe(7)
  expect(String(onError.mock.calls[0]?.[0])).toContain('Task t63 was not added to the history')
  release()
  await past.flush()
  expect(added).toHaveLength(64)
  expect(onAdded).toHaveBeenCalledTimes(64)
  past.add(task('later'), onAdded)
  await past.flush()
  expect(added).toHaveLength(65)
})

it('a task is never missing, also while its pruning is not stored yet, and when a store is taken over', async () => {
  const memory = memoryStore()
  const slowly = (store: MemoryStore): Store => ({
    ...store,
    write: async (changes) => {
      await store.write(changes)
      await new Promise((resolve) => setImmediate(resolve))
    },
  })
  const made = create({ store: slowly(memory), maxAsyncTasks: 5 })
  for (let count = 1; count <= 40; count += 1) {
    const { id } = made.manager.launch({ subagentName: 'agent', goalPrompt: 'x' }, runner)
    await made.manager.waitFor([id])
    made.manager.markNotified(id)
    const { tasks } = await made.manager.history({ limit: 1000 })
    expect(new Set(tasks.map((task) => task.id)).size).toBe(count)
  }
  const next = create({ store: slowly(memory.copy()), maxAsyncTasks: 2 })
  await next.manager.recovered
  expect((await next.manager.history({ limit: 1000 })).tasks).toHaveLength(40)
})

it('tasks are added to the history in batches of fifty, and the rest when it is read or closed', async () => {
  const memory = memoryStore()
  const add = vi.fn((tasks: readonly PastTask[]) => memory.history?.add(tasks) ?? Promise.resolve())
  const made = create({ store: storeWith(add, memory) })
  const ids = await runTasks(made, 90)
  await waitFor(() => expect(add.mock.calls.map(([tasks]) => tasks.length)).toEqual([50]))
  // A crash now loses none of them.
  const next = create({ store: memory.copy() })
  await next.manager.recovered
  expect(await allPages(next.manager)).toEqual([...ids].reverse())
  await made.manager.history()
  expect(add.mock.calls.map(([tasks]) => tasks.length)).toEqual([50, 29])
  await made.manager.dispose()
  const added = add.mock.calls.flatMap(([tasks]) => tasks.map(({ id }) => id))
  expect(new Set(added).size).toBe(added.length)
})

it('a page has what is being written to the history', async () => {
  let release = (): void => undefined
  const gate = new Promise<void>((resolve) => (release = resolve))
  const memory = memoryStore()
  const { manager, clock } = create({
    store: storeWith((tasks) => gate.then(() => memory.history?.add(tasks)), memory),
  })
  const ids = await runTasks({ manager, clock }, 30)
  const page = manager.history()
  release()
  expect((await page).tasks.map(({ id }) => id)).toEqual([...ids].reverse())
})

it('a launch that could not be stored is in no history', async () => {
  const memory = memoryStore()
  const write = vi.fn<Store['write']>((changes) => memory.write(changes))
  const { manager, clock } = create({ store: { ...memory, write }, onError: () => undefined })
  write.mockImplementationOnce(() => Promise.reject(new Error('disk')))
  manager.launch({ id: 'refused', subagentName: 'agent', goalPrompt: 'x' }, runner)
  await manager.stored().catch(() => undefined)
  await runTasks({ manager, clock }, 30)
  expect(await memory.history?.find('task', 'refused')).toBeUndefined()
})

describe('A4: an id that a past task has', () => {
  /** A manager whose history has the task `t000`, and a runner that counts its runs. */
  async function withPast(options: AsyncTaskManagerOptions = {}, change: (store: Store) => Store = (store) => store) {
    const memory = memoryStore()
    const made = create({ store: change(memory), maxAsyncTasks: 1, onError: () => undefined, ...options })
    await runTasks(made, 20)
    await made.manager.history()
    const runs: string[] = []
    const counted = functionRunner(({ goal }) => {
      runs.push(goal)
      return Promise.resolve({ final_message: goal })
    })
    return { ...made, memory, runs, counted }
  }
  const again = { id: 't000', subagentName: 'agent', goalPrompt: 'again' }
  const refused = { status: 'failed', errorCode: 'TASK_ID_IN_USE', delivery: 'none' }

  it('is refused: the task is not started, and leaves nothing in the store; the past task stays as it is', async () => {
    const { manager, memory, runs, counted } = await withPast()
    manager.launch(again, counted)
    await manager.stored()
    await waitFor(() => expect(manager.getTask('t000')).toMatchObject(refused))
    expect(manager.lease()).toBeUndefined()
    const { id } = manager.launch({ subagentName: 'agent', goalPrompt: 'other' }, counted)
    await waitFor(() => expect(manager.getTask(id)?.status).toBe('completed'))
    await manager.stored()
    expect(runs).toEqual(['other'])
    expect(memory.contents().tasks.map((task) => task.id)).not.toContain('t000')
    expect(await memory.history?.find('task', 't000')).toMatchObject({ record: { goalPrompt: 'goal 0' } })
  })

  it('is refused also while the task waits for a slot, and for a task that the caller runs', async () => {
    const { manager, runs, counted } = await withPast({ whenFull: 'queue' })
    const { id } = manager.launch({ subagentName: 'agent', goalPrompt: 'hangs' }, untilAborted)
    manager.launch(again, counted)
    manager.registerTask({ ...again, id: 't001' })
    await manager.stored()
    await waitFor(() => expect(manager.getTask('t000')).toMatchObject(refused))
    await waitFor(() => expect(manager.getTask('t001')).toMatchObject(refused))
    manager.cancelTask(id)
    await manager.stored()
    expect([runs, manager.getActiveTasks()]).toEqual([[], []])
  })

  it('keeps the run waiting until that is known, and starts it when it cannot be known', async () => {
    let answer = (_: Error): void => undefined
    const onError = vi.fn()
    const { manager, runs, counted } = await withPast({ onError }, (store) => ({
      ...store,
      history: {
        ...(store.history as NonNullable<Store['history']>),
        find: (_kind, id) =>
          id === 'new' ? new Promise((_, reject) => (answer = reject)) : Promise.resolve(undefined),
      },
    }))
    manager.launch({ ...again, id: 'new' }, counted)
    await manager.stored()
    expect(runs).toEqual([])
    answer(new Error('unreadable'))
    await waitFor(() => expect(runs).toEqual(['again']))
    expect(onError).toHaveBeenCalledWith(expect.objectContaining({ message: 'unreadable' }), { source: 'store' })
  })
})

describe('check_async_tasks', () => {
  it('shows a task of the history to its owner', async () => {
    const { manager, clock } = create({ store: memoryStore() })
    manager.launch({ id: 'special', subagentName: 'agent', goalPrompt: 'the special one' }, runner)
    await manager.waitFor(['special'])
    await runTasks({ manager, clock }, 30)
    const toolOf = (owner: string) => createCheckAsyncTasksTool({ getAsyncTaskManager: () => manager, owner })
    const shown = await toolOf('main').execute({ task_id: 't001' })
    expect(shown.llmContent).toContain('Task t001 of the history (completed; subagent \'agent\', goal "goal 1")')
    expect(shown.llmContent).toContain('result of goal 1')
    expect(shown.metadata).toMatchObject({ id: 't001', status: 'completed' })
    expect((await toolOf('main').execute({ task_id: 'spec' })).llmContent).toContain('result of the special one')
    const ambiguous = await toolOf('main').execute({ task_id: 't00' })
    expect(ambiguous.llmContent).not.toContain('of the history')
    const part = await toolOf('main').execute({ task_id: 't001', action: 'output', cursor: 5, max_bytes: 10 })
    expect(part.llmContent).toMatch(/bytes 5 to 15/)
    const other = await toolOf('other').execute({ task_id: 't001' })
    expect(other.error).toBeDefined()
    expect(JSON.stringify(other)).not.toContain('goal 1')
    const cancelled = await toolOf('main').execute({ task_id: 't001', action: 'cancel' })
    expect(cancelled.error).toBeDefined()
  })
})
