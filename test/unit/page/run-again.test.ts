/** Run again on the page: from the manager, from the journal, and from the store, also for a task that continues another one. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { AsyncTaskManager, createAgentTasks, type AgentTasksOptions, type RunContext, type RunInput } from 'agent-tasks'
import { InstanceManager, localInstance, TaskManager } from 'agent-tasks/server'
import { memoryStore } from 'agent-tasks/store'
import { taskHistory } from '../../../src/features/history/past-tasks.js'
import type { PageHistory, PageTaskDetail } from '../../../src/page/wire.js'
import { startPage } from './test-page.js'

const idOf = (key: unknown): string => String(key).replace(/^\w+:/, '')

interface Started {
  readonly goal: string
  readonly fields: unknown
  readonly previous: unknown
}

/** A host whose subagent notes what it gets, and the page on it. */
async function withHost(options: Partial<AgentTasksOptions> = {}, pageOptions = {}) {
  const started: Started[] = []
  const tasks = createAgentTasks({
    subagents: {
      writer: ({ goal, id: _, subagent: _name, ...fields }, context) => {
        started.push({ goal, fields, previous: context.previous?.id })
        return { final_message: goal }
      },
    },
    ...options,
  })
  onTestFinished(() => tasks.dispose())
  await tasks.recovered
  const page = await startPage({ tasks, ...pageOptions })
  const { manager } = tasks
  const run = async (id: string, launch: () => unknown): Promise<void> => {
    launch()
    await expect.poll(() => manager.getTask(id)?.status).toBe('completed')
    manager.markNotified(id)
  }
  /** Launches tasks until the manager has forgotten one. */
  const forget = async (id: string): Promise<void> => {
    const { owner } = manager.getTask(id)!
    for (let at = 0; manager.getTask(id) !== undefined; at += 1) {
      const filler = `${id}-filler-${at}`
      await run(filler, () => tasks.launch('writer', 'filler', { id: filler, owner }))
    }
    started.length = 0
  }
  const again = async (key: string) => {
    const { status, body } = await page.post(`history/${encodeURIComponent(key)}/run-again`)
    if (status === 200) await expect.poll(() => manager.getTask(idOf(body['key']))?.status).toBe('completed')
    return { status, body, id: idOf(body['key']) }
  }
  const can = async (key: string) =>
    ((await page.get(`tasks/${encodeURIComponent(key)}`)).body as unknown as PageTaskDetail).can
  return { tasks, manager, started, run, forget, again, can, ...page }
}

const context = { region: 'eu', deep: { list: [1, 2] } }
const launched = { context, timeoutMs: 60_000, concurrencyKey: 'key', budget: { steps: 9 } }

describe('run again', () => {
  it('gives the run the params, the deadline, the key and the budget again: from the manager, and from the journal', async () => {
    const { tasks, manager, started, run, forget, again, can } = await withHost()
    await run('first', () => tasks.launch('writer', 'a letter', { id: 'first', owner: 'someone', ...launched }))
    const near = await again('async:first')
    await forget('first')
    expect(manager.getTask('first')).toBeUndefined()
    expect(await can('async:first')).toMatchObject({ runAgain: true })
    const { id } = await again('async:first')
    expect(started).toEqual([{ goal: 'a letter', fields: { context }, previous: undefined }])
    const { context: _, ...fields } = launched
    expect(manager.getTask(id)).toMatchObject({ owner: 'someone', ...fields })
    expect(near.status).toBe(200)
  })

  it('says that the params, or the goal, were too large for the journal', async () => {
    const { tasks, run, forget, again, can } = await withHost({}, { maxBytes: 400_000 })
    const large = 'x'.repeat(30_000)
    await run('params', () => tasks.launch('writer', 'a letter', { id: 'params', context: { large } }))
    await run('goal', () => tasks.launch('writer', large, { id: 'goal' }))
    await forget('params')
    await forget('goal')
    const whyNot = (what: string) => ({ runAgain: false, whyNot: expect.stringContaining(what) as string })
    expect(await can('async:params')).toMatchObject(whyNot('params of this task were too large'))
    expect(await can('async:goal')).toMatchObject(whyNot('goal of this task was too large'))
    expect(await again('async:goal')).toMatchObject({ status: 409, body: { code: 'NOT_REPEATABLE' } })
  })

  it('takes from the store what was too large for the journal', async () => {
    const { tasks, started, run, forget, again, can } = await withHost({ store: memoryStore() }, { maxBytes: 400_000 })
    const large = 'x'.repeat(30_000)
    await run('params', () => tasks.launch('writer', 'a letter', { id: 'params', context: { large } }))
    await forget('params')
    expect(await can('async:params')).toMatchObject({ runAgain: true })
    expect((await again('async:params')).status).toBe(200)
    expect(started).toEqual([{ goal: 'a letter', fields: { context: { large } }, previous: undefined }])
  })

  it('says that the history of the store cannot be read', async () => {
    const { tasks, manager, run, forget, can } = await withHost({ store: memoryStore() }, { maxBytes: 400_000 })
    const large = 'x'.repeat(30_000)
    await run('params', () => tasks.launch('writer', 'a letter', { id: 'params', context: { large } }))
    await forget('params')
    vi.spyOn(manager.reads.use(taskHistory), 'findWithParams').mockRejectedValueOnce(new Error('the disk is gone'))
    expect(await can('async:params')).toMatchObject({
      runAgain: false,
      whyNot: 'The history of the store cannot be read: the disk is gone',
    })
    expect(await can('async:params')).toMatchObject({ runAgain: true })
  })

  it('says that the params were too large for the store', async () => {
    const store = memoryStore()
    const first = await withHost({ store })
    const large = 'x'.repeat(300_000)
    await first.run('big', () => first.tasks.launch('writer', 'x', { id: 'big', context: { large } }))
    await first.forget('big')
    await first.manager.history()
    const { again } = await withHost({ store: store.copy() })
    expect(await again('async:big')).toMatchObject({
      status: 409,
      body: { error: expect.stringContaining('params of this task were too large') as string },
    })
  })

  it('is possible after a restart, with the same params, whether the task was pruned before or not', async () => {
    const store = memoryStore()
    const first = await withHost({ store })
    for (const id of ['pruned', 'kept']) {
      await first.run(id, () => first.tasks.launch('writer', id, { id, ...launched }))
      if (id === 'pruned') await first.forget(id)
    }
    await first.manager.history()
    await first.manager.stored()
    const { started, again, can, get, manager } = await withHost({ store: store.copy() })
    const { tasks: listed } = (await get('history?text=kept')).body as unknown as PageHistory
    expect(listed).toMatchObject([{ id: 'kept', canRunAgain: true }])
    expect(await can('async:kept')).toMatchObject({ runAgain: true })
    for (const id of ['pruned', 'kept']) {
      const { id: made } = await again(`async:${id}`)
      expect(manager.getTask(made)).toMatchObject({ goalPrompt: id, timeoutMs: 60_000, concurrencyKey: 'key' })
    }
    expect(started).toEqual(['pruned', 'kept'].map((goal) => ({ goal, fields: { context }, previous: undefined })))
  })

  it('of an interrupted task of an earlier process starts it again', async () => {
    const store = memoryStore()
    const subagents = { writer: () => new Promise<string>(() => undefined) }
    const first = createAgentTasks({ store, subagents, graceMs: 0 })
    onTestFinished(() => first.dispose())
    first.launch('writer', 'x', { id: 'cut', context })
    await first.manager.stored()
    const { started, again, manager } = await withHost({ store: store.copy() })
    expect(manager.getTask('cut')?.status).toBe('failed')
    expect((await again('async:cut')).status).toBe(200)
    expect(started).toMatchObject([{ fields: { context } }])
  })

  it('is not possible for a message of the host', async () => {
    const { manager, can, tasks } = await withHost()
    tasks.schedule({ in: 1, message: 'Look at the build' })
    await expect.poll(() => manager.getAllTasks().length).toBe(1)
    expect(await can(`async:${manager.getAllTasks()[0]?.id}`)).toMatchObject({
      runAgain: false,
      whyNot: expect.stringContaining('It is a message of the host') as string,
    })
  })
})

describe('run again on a task that continues another one', () => {
  const withContinuation = async (options: Partial<AgentTasksOptions> = {}) => {
    const host = await withHost(options)
    const { tasks, manager, run } = host
    await run('draft', () => tasks.launch('writer', 'a draft', { id: 'draft', owner: 'someone' }))
    const { id } = tasks.continue('draft', 'make it longer')
    await expect.poll(() => manager.getTask(id)?.status).toBe('completed')
    manager.markNotified(id)
    return { ...host, key: `async:${id}` }
  }

  it('continues that task again', async () => {
    const { manager, started, again, key } = await withContinuation()
    started.length = 0
    const { id } = await again(key)
    expect(started).toEqual([{ goal: 'make it longer', fields: {}, previous: 'draft' }])
    expect(manager.getTask(id)).toMatchObject({ continues: 'draft', owner: 'someone' })
  })

  it('continues it also when both are in the history of the store alone, after a restart', async () => {
    const store = memoryStore()
    const first = await withContinuation({ store })
    await first.forget('draft')
    await first.forget(idOf(first.key))
    await first.manager.history()
    await first.manager.stored()
    const { manager, started, again } = await withHost({ store: store.copy() })
    const { id, status, body } = await again(first.key)
    expect([status, body['error']]).toEqual([200, undefined])
    expect(started).toEqual([{ goal: 'make it longer', fields: {}, previous: 'draft' }])
    expect(manager.getTask(id)).toMatchObject({ continues: 'draft' })
  })

  it('says that it cannot when that task is no longer kept', async () => {
    const { forget, can, again, key } = await withContinuation()
    await forget('draft')
    expect(await can(key)).toMatchObject({
      runAgain: false,
      whyNot: expect.stringContaining('This task continues task draft, which is no longer kept') as string,
    })
    expect((await again(key)).status).toBe(409)
  })

  it('says why the manager refuses it: another task continues that one now', async () => {
    const manager = new AsyncTaskManager()
    onTestFinished(() => manager.dispose())
    const wait = (_input: RunInput, { signal }: RunContext): Promise<string> =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))))
    manager.launch({ id: 'draft', subagentName: 'writer', goalPrompt: 'x' }, ({ goal }, context) =>
      goal === 'x' ? 'done' : wait({} as RunInput, context),
    )
    await expect.poll(() => manager.getTask('draft')?.status).toBe('completed')
    const { id } = manager.continueTask('draft', 'more')
    const { post } = await startPage({ tasks: manager })
    expect(await post(`tasks/async:${id}/run-again`)).toMatchObject({
      status: 409,
      body: { code: 'NOT_CONTINUED', error: expect.stringContaining('already continues it') as string },
    })
    expect(manager.getAllTasks()).toHaveLength(2)
  })
})

describe('run again on a command task', () => {
  it('is possible from the store after a restart, with the same arguments', async () => {
    const store = memoryStore()
    const given: unknown[] = []
    const setUp = (from: ReturnType<typeof memoryStore>) => {
      const instances = new InstanceManager()
      instances.connect(
        localInstance({ id: 'calc', tools: [{ name: 'note', execute: (input: unknown) => given.push(input) }] }),
      )
      const taskManager = new TaskManager({ instances, store: from, maxRetained: 0 })
      onTestFinished(async () => {
        await taskManager.dispose()
        await instances.dispose()
      })
      return taskManager
    }
    const first = setUp(store)
    const ended = new Promise((resolve) => first.on('complete', resolve))
    const submitted = first.submitTask({
      task_name: 'Note',
      commands: [{ tool_name: 'note', args: { a: 1 }, intention: 'because', timeout: 5000 }],
    })
    const id = 'taskId' in submitted ? submitted.taskId : ''
    await ended
    await first.history()
    const second = setUp(store.copy())
    const { post, get } = await startPage({ taskManager: second })
    expect((await get(`tasks/command:${id}`)).status).toBe(404)
    const again = new Promise((resolve) => second.on('complete', resolve))
    expect((await post(`history/command:${id}/run-again`)).status).toBe(200)
    expect(await again).toMatchObject({ status: 'completed' })
    expect(given).toEqual([{ a: 1 }, { a: 1 }])
  })
})
