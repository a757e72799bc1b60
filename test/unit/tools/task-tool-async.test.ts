/** The task tool in the background: the call returns at once, and the result is delivered later. */
import { describe, expect, it, vi } from 'vitest'
import type { SubagentRequest, SubagentRunner } from '../../../src/tools/subagents.js'
import { createTaskTool, type TaskParams, type TaskToolOptions } from '../../../src/tools/task-tool.js'
import { controlledRun, deferred, setUpHost, settle } from './tool-host.js'

function setUp(run: SubagentRunner, options: Partial<TaskToolOptions> & { maxAsyncTasks?: number } = {}) {
  const { maxAsyncTasks = 5, ...rest } = options
  const host = setUpHost({ maxAsyncTasks })
  const tool = createTaskTool({
    getAsyncTaskManager: host.getAsyncTaskManager,
    resolveSubagent: () => run,
    ...rest,
  })
  const call = (input: Partial<TaskParams> = {}, signal?: AbortSignal) =>
    tool.execute({ subagent_name: 'researcher', goal_prompt: 'find out', async: true, ...input }, { signal })
  return { ...host, call }
}

/** The reservation takes an id too. */
const ID = 'researcher-2'

describe('a task in the background', () => {
  it('is launched, and the call returns while it runs', async () => {
    const researcher = controlledRun<SubagentRequest>()
    const { call, manager } = setUp(researcher.run, { owner: 'sub' })
    expect(await call({ timeout_seconds: 60 })).toEqual({
      llmContent:
        `Async task launched: subagent 'researcher' (ID: ${ID}). Task is running in background. ` +
        `Its result will be delivered to you when it has ended: do not poll for it.`,
      returnDisplay: `Async task started: **researcher** (\`${ID}\`)`,
      metadata: { agentId: ID, async: true, status: 'running', effectiveTimeoutSeconds: 60 },
    })
    expect(manager.getTask(ID)).toMatchObject({
      status: 'running',
      owner: 'sub',
      goalPrompt: 'find out',
      timeoutMs: 60_000,
    })
    expect((await researcher.started).input).toMatchObject({ id: ID, goal: 'find out' })
    researcher.finish({ final_message: 'found' })
    await settle()
    expect(manager.getPendingNotifications('sub')).toMatchObject([{ id: ID, output: { final_message: 'found' } }])
  })

  it('says that its timeout was cut to the limit', async () => {
    const { call } = setUp(controlledRun<SubagentRequest>().run)
    const { llmContent, metadata } = await call({ timeout_seconds: -1 })
    expect(llmContent).toMatch(/for it\.\n\nThe timeout was cut to the limit of 1800 seconds \(asked: none\)\.$/)
    expect(metadata).toMatchObject({ effectiveTimeoutSeconds: 1_800 })
  })

  it('continues when the call that launched it is aborted later', async () => {
    const researcher = controlledRun<SubagentRequest>()
    const { call, manager } = setUp(researcher.run)
    const controller = new AbortController()
    await call({}, controller.signal)
    controller.abort()
    await settle()
    expect(manager.getTask(ID)?.status).toBe('running')
    expect((await researcher.started).context.signal.aborted).toBe(false)
  })

  it('fails when its start throws', async () => {
    const { call, manager } = setUp(() => {
      throw new Error('no such model')
    })
    expect((await call()).metadata).toMatchObject({ status: 'running' })
    await settle()
    expect(manager.getPendingNotifications()).toMatchObject([{ id: ID, status: 'failed', error: 'no such model' }])
  })

  it('fails when its lookup throws', async () => {
    const { call, manager } = setUp(controlledRun<SubagentRequest>().run, {
      resolveSubagent: () => {
        throw new Error('no registry')
      },
    })
    expect((await call()).error).toBeUndefined()
    await settle()
    expect(manager.getPendingNotifications()).toMatchObject([{ id: ID, status: 'failed', error: 'no registry' }])
  })

  it('can be cancelled while it starts', async () => {
    const researcher = controlledRun<SubagentRequest>()
    const { call, manager } = setUp(researcher.run)
    await call()
    const { context } = await researcher.started
    expect(manager.cancelTask(ID)).toBe(true)
    expect(context.signal.aborted).toBe(true)
    researcher.fail(new Error('it was interrupted'))
    await settle()
    expect(manager.getTask(ID)).toMatchObject({ status: 'cancelled', delivery: 'none' })
  })

  it('never starts when it is cancelled before', async () => {
    const researcher = controlledRun<SubagentRequest>()
    const { call, manager } = setUp(researcher.run)
    manager.transitions$.subscribe(({ taskId }) => manager.cancelTask(taskId))
    expect((await call()).metadata).toMatchObject({ agentId: ID })
    await settle()
    expect(manager.getTask(ID)?.status).toBe('cancelled')
    expect(researcher.run).not.toHaveBeenCalled()
  })
})

describe('at the limit', () => {
  it('A3: a call is refused with advice', async () => {
    const resolveSubagent = vi.fn(() => controlledRun<SubagentRequest>().run)
    const { call, manager } = setUp(controlledRun<SubagentRequest>().run, { maxAsyncTasks: 1, resolveSubagent })
    await call()
    const result = await call()
    expect(result.llmContent).toBe(
      'Max async tasks (1) reached. Wait until one has ended (wait_for_async_tasks), cancel one (check_async_tasks ' +
        'with action "cancel"), or run this one synchronously (async: false).',
    )
    expect(result).toMatchObject({
      returnDisplay: 'Max async tasks (1) reached',
      error: { message: 'Max async tasks (1) reached', type: 'limit_reached' },
      metadata: { max: 1 },
    })
    expect(resolveSubagent).toHaveBeenCalledTimes(1)
    expect(manager.getAllTasks()).toHaveLength(1)
  })

  it('the advice leaves out what cannot help', async () => {
    const { call } = setUp(controlledRun<SubagentRequest>().run, { maxAsyncTasks: 0 })
    expect((await call()).llmContent).toBe('Max async tasks (0) reached. Run the task synchronously (async: false).')
  })

  it('A3: concurrent calls never launch more tasks than there are slots, however long their lookups take', async () => {
    const lookUp = deferred<SubagentRunner>()
    const { call, manager } = setUp(controlledRun<SubagentRequest>().run, {
      maxAsyncTasks: 2,
      resolveSubagent: () => lookUp.promise,
    })
    const calls = [call(), call(), call()]
    await settle()
    expect(manager.canLaunchAsync().allowed).toBe(false)
    expect(manager.getAllTasks()).toEqual([])
    lookUp.resolve(controlledRun<SubagentRequest>().run)
    const results = await Promise.all(calls)
    expect(results.map((result) => result.error?.type)).toEqual([undefined, undefined, 'limit_reached'])
    expect(manager.getRunningTasks()).toHaveLength(2)
  })

  it.each([
    ['takes a free slot', false, undefined],
    ['is refused when there is none', true, 'Max async tasks (1) reached'],
  ])('A3: a look-up that outlasts its reservation %s', async (_what, isTaken, message) => {
    const lookUp = deferred<SubagentRunner>()
    const { call, clock, manager, register } = setUp(controlledRun<SubagentRequest>().run, {
      maxAsyncTasks: 1,
      resolveSubagent: () => lookUp.promise,
    })
    const result = call()
    await settle()
    clock.advance(59_999)
    expect(manager.canLaunchAsync().allowed).toBe(false)
    clock.advance(1)
    expect(manager.canLaunchAsync().allowed).toBe(true)
    if (isTaken) register('other')
    lookUp.resolve(controlledRun<SubagentRequest>().run)
    expect((await result).error?.message).toBe(message)
    expect(manager.getRunningTasks()).toHaveLength(1)
  })
})

it('A3: a call that is aborted during its lookup frees its slot', async () => {
  const { call, manager } = setUp(controlledRun<SubagentRequest>().run, {
    maxAsyncTasks: 1,
    resolveSubagent: () => new Promise(() => undefined),
  })
  const controller = new AbortController()
  const result = call({}, controller.signal)
  await settle()
  expect(manager.canLaunchAsync().allowed).toBe(false)
  controller.abort()
  expect((await result).error?.type).toBe('aborted')
  expect(manager.canLaunchAsync().allowed).toBe(true)
  expect(manager.getAllTasks()).toEqual([])
})

describe.each([true, false])('a lookup that hangs (async: %s)', (isAsync) => {
  const hang = () => {
    const lookUp = deferred<SubagentRunner>()
    const resolveSubagent = vi.fn(() => lookUp.promise)
    const host = setUp(controlledRun<SubagentRequest>().run, { maxAsyncTasks: 1, resolveSubagent })
    return { ...host, lookUp, resolveSubagent }
  }

  it('A3: ends at the deadline of its task, frees its slot and leaves nothing', async () => {
    const { call, clock, manager, lookUp } = hang()
    const result = call({ async: isAsync, timeout_seconds: 5 })
    await settle()
    clock.advance(4999)
    await settle()
    expect(manager.canLaunchAsync().allowed).toBe(!isAsync)
    clock.advance(1)
    expect((await result).error).toEqual({
      type: 'execution_failed',
      message: 'task failed: The lookup of the subagent did not end within 5 s.',
    })
    expect(manager.canLaunchAsync().allowed).toBe(true)
    lookUp.resolve(controlledRun<SubagentRequest>().run)
    await settle()
    expect([manager.getAllTasks(), clock.pending]).toEqual([[], 0])
  })

  it('A9: ends when the manager is disposed', async () => {
    const { call, clock, manager, lookUp } = hang()
    const result = call({ async: isAsync })
    await settle()
    await manager.dispose()
    expect((await result).error?.message).toMatch(/The task manager was disposed/)
    lookUp.resolve(controlledRun<SubagentRequest>().run)
    await settle()
    expect([manager.getAllTasks(), clock.pending]).toEqual([[], 0])
  })
})

it('A9: nothing is launched once the manager is disposed', async () => {
  const { call, manager } = setUp(controlledRun<SubagentRequest>().run)
  await manager.dispose()
  const refused = await call()
  expect(refused.error).toEqual({ message: 'The task manager was disposed', type: 'execution_failed' })
  // Nothing that is waited for or cancelled would make room.
  expect(refused.llmContent).toBe('The task manager was disposed. It takes no new tasks.')
})

it('A4: an id that repeats is refused before anything starts', async () => {
  const researcher = controlledRun<SubagentRequest>()
  const { manager, getAsyncTaskManager } = setUpHost({ createId: (prefix) => `${prefix}-1` })
  const tool = createTaskTool({ getAsyncTaskManager, resolveSubagent: () => researcher.run })
  const input = { subagent_name: 'researcher', goal_prompt: 'find out', async: true }
  expect((await tool.execute(input)).error).toBeUndefined()
  expect((await tool.execute(input)).error?.type).toBe('execution_failed')
  expect(manager.getAllTasks()).toHaveLength(1)
  expect(manager.canLaunchAsync().allowed).toBe(true)
})
