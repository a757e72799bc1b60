/** Why a task was cancelled: what is kept, who is told, and what an aborted call says. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { AsyncTaskManager, AsyncTaskReminderService, createAgentTasks, runCommandLine } from '../../../src/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { createCheckAsyncTasksTool, createTaskTool } from '../../../src/tools/index.js'
import { controlledRun, setUpHost, settle } from '../tools/tool-host.js'
import type { ForegroundAbort } from '../../../src/tools/task-tool-options.js'
import { InvalidInputError } from '../../../src/errors.js'
import { createTaskCommands } from '../../../src/parts.js'

const WHY = 'the user wants the other design'

describe('cancelTask with a reason', () => {
  it('F4: keeps it in the record, and aborts the run with it', async () => {
    const { manager } = setUpHost({ graceMs: 0 })
    const agent = controlledRun()
    const { id } = manager.launch({ subagentName: 'agent', goalPrompt: 'g' }, agent.run)
    const { context } = await agent.started
    expect(manager.cancelTask(id, { reason: WHY })).toBe(true)
    expect(manager.getTask(id)).toMatchObject({ status: 'cancelled', cancelReason: WHY })
    expect(context.signal.reason).toMatchObject({ name: 'AbortError', message: WHY })
    agent.finish({})
  })

  it('F4: says nothing without words, as before', () => {
    const { manager, register } = setUpHost()
    const controllers = [register('a'), register('b')].map(({ abortController }) => abortController)
    manager.cancelTask('a')
    manager.cancelTask('b', { reason: '  ' })
    for (const id of ['a', 'b']) expect(manager.getTask(id)).not.toHaveProperty('cancelReason')
    for (const controller of controllers) expect(controller?.signal.reason).toMatchObject({ name: 'AbortError' })
    for (const id of ['a', 'b']) expect(manager.getTask(id)).not.toHaveProperty('abortController')
  })

  it('F4: keeps at most 1000 characters, and splits no character', () => {
    const { manager, register } = setUpHost()
    register('a')
    manager.cancelTask('a', { reason: `${'x'.repeat(999)}😀 and more` })
    expect(manager.getTask('a')?.cancelReason).toBe('x'.repeat(999))
  })

  it('F4: is also taken as the only argument, of a run for its children too', async () => {
    const { manager, register } = setUpHost()
    register('a')
    expect(manager.cancelTask('a', WHY)).toBe(true)
    expect(manager.getTask('a')?.cancelReason).toBe(WHY)
    manager.launch({ id: 'parent', subagentName: 's', goalPrompt: 'g' }, (_input, context) => {
      context.launch({ id: 'child', subagentName: 's', goalPrompt: 'g' }, () => new Promise(() => undefined))
      return String(context.children.cancel('child', WHY))
    })
    await manager.waitFor(['parent'])
    expect(manager.getTask('child')?.cancelReason).toBe(WHY)
    expect(manager.getTask('parent')?.output).toEqual({ final_message: 'true' })
  })

  it('F4: refuses a reason that is no text, and nothing has changed', () => {
    const { manager, register } = setUpHost()
    register('a')
    expect(() => manager.cancelTask('a', { reason: 42 as never })).toThrow(InvalidInputError)
    expect(() => manager.cancelAll({ reason: {} as never })).toThrow('options.reason: got {}, expected')
    expect(() => manager.cancelAll({ owner: '' })).toThrow('options.owner')
    expect(manager.getTask('a')?.status).toBe('running')
  })

  it('F4: does not change the reason of a task that has ended', () => {
    const { manager, register } = setUpHost()
    register('a')
    manager.cancelTask('a', { reason: WHY })
    expect(manager.cancelTask('a', { reason: 'another' })).toBe(false)
    expect(manager.getTask('a')?.cancelReason).toBe(WHY)
  })
})

describe('a registered controller that is aborted', () => {
  it.each([
    ['text', WHY, WHY],
    ['an error', new Error(WHY), WHY],
    ['nothing', undefined, undefined],
    ['something else', { code: 1 }, undefined],
    ['an error that cannot be read', Object.defineProperty({}, 'message', { get: () => fail() }), undefined],
  ])('F4: with %s says why', (_, given, kept) => {
    const { manager, register } = setUpHost()
    register('a').abortController?.abort(given)
    expect(manager.getTask('a')?.status).toBe('cancelled')
    expect(manager.getTask('a')?.cancelReason).toBe(kept)
  })

  it('F4: says why also when it was aborted before the registration', () => {
    const { manager } = setUpHost()
    const abortController = new AbortController()
    abortController.abort(WHY)
    manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g', abortController })
    expect(manager.getTask('a')?.cancelReason).toBe(WHY)
  })
})

function fail(): never {
  throw new Error('no')
}

describe('cancelAll', () => {
  it('F4: cancels what one owner runs, and returns the ids', () => {
    const { manager, register } = setUpHost()
    register('a')
    register('b', { owner: 'other' })
    register('c')
    manager.completeTask('c', {})
    expect(manager.cancelAll({ owner: 'main', reason: WHY })).toEqual(['a'])
    expect(manager.getTask('a')?.cancelReason).toBe(WHY)
    expect(manager.getTask('b')?.status).toBe('running')
    expect(manager.cancelAll()).toEqual(['b'])
    expect(manager.cancelAll()).toEqual([])
  })
})

describe('a reason is told', () => {
  it('F4: in the message of a cancelled task', () => {
    const { manager, register } = setUpHost({ notifyCancelled: true })
    const reminders = new AsyncTaskReminderService(manager)
    register('a')
    manager.cancelTask('a', { reason: WHY })
    expect(JSON.parse(reminders.formatCompletionNotification(manager.getTask('a')!))).toEqual({
      agent_id: 'a',
      status: 'cancelled',
      reason: WHY,
    })
    expect(reminders.generateReminder()).toContain(WHY)
  })

  it('F4: in lists, details and commands, in one line', async () => {
    const { manager, register, getAsyncTaskManager } = setUpHost()
    const check = createCheckAsyncTasksTool({ getAsyncTaskManager })
    const commands = createTaskCommands({ getAsyncTaskManager })
    register('a')
    const cancelled = await check.execute({ task_id: 'a', action: 'cancel', reason: 'too\n\u001b[31mslow' })
    expect(cancelled.llmContent).toBe('Cancelled task: a')
    expect((await check.execute({})).llmContent).toContain('cancelled (0s), because: too \u001b[31mslow - do it')
    expect((await check.execute({ task_id: 'a' })).llmContent).toContain('"cancelReason": "too\\nslow"')
    expect(runCommandLine(commands, '/tasks')?.text).toBe('[CANCELLED] [a] helper (0s), because: too  [31mslow - do it')
    register('b')
    expect(runCommandLine(commands, `/task end b ${WHY}`)).toEqual({ type: 'info', text: 'Cancelled task: b' })
    expect(manager.getTask('b')?.cancelReason).toBe(WHY)
  })

  it('F4: to the next process', async () => {
    const store = memoryStore()
    const options = { store, clock: createManualClock(), onError: () => undefined }
    const manager = new AsyncTaskManager(options)
    manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g' })
    manager.cancelTask('a', { reason: WHY })
    await manager.stored()
    const next = new AsyncTaskManager({ ...options, store: store.copy() })
    await next.recovered
    expect(next.getTask('a')).toMatchObject({ status: 'cancelled', cancelReason: WHY })
    const restored = AsyncTaskManager.restore(next.getAllTasks())
    expect(restored.getTask('a')).toMatchObject({ cancelReason: WHY })
    await Promise.all([manager, next, restored].map((each) => each.dispose()))
  })
})

describe('a call of the task tool that is aborted', () => {
  function setUp(onForegroundAbort?: ForegroundAbort) {
    const host = setUpHost({ graceMs: 0 })
    const agent = controlledRun()
    const tool = createTaskTool({
      getAsyncTaskManager: host.getAsyncTaskManager,
      resolveSubagent: () => agent.run,
      ...(onForegroundAbort && { onForegroundAbort }),
    })
    const controller = new AbortController()
    const result = tool.execute({ subagent_name: 'agent', goal_prompt: 'g' }, { signal: controller.signal })
    onTestFinished(() => agent.finish({}))
    return { ...host, agent, controller, result }
  }

  it('F4: cancels its task by default, and says so', async () => {
    const { agent, controller, manager, result } = setUp()
    await agent.started
    controller.abort()
    expect((await result).error).toEqual({
      type: 'cancelled',
      message: 'Task agent-1 was cancelled, because its call was aborted.',
    })
    expect(manager.getTask('agent-1')).not.toHaveProperty('cancelReason')
  })

  it('F4: cancels its task with the reason of the abort', async () => {
    const { agent, controller, manager, result } = setUp('cancel')
    await agent.started
    controller.abort(WHY)
    expect((await result).error?.message).toBe(`Task agent-1 was cancelled, because: ${WHY}`)
    expect(manager.getTask('agent-1')?.cancelReason).toBe(WHY)
  })

  it('F4: with keep leaves it running, says so, and its end is owed', async () => {
    const { agent, controller, manager, result } = setUp('keep')
    await agent.started
    controller.abort(WHY)
    expect(await result).toMatchObject({
      error: {
        type: 'aborted',
        message: 'The call was aborted. Task agent-1 continues in the background, and its result will be delivered.',
      },
      metadata: { agentId: 'agent-1', status: 'running' },
    })
    agent.finish({ final_message: 'done' })
    await settle()
    expect(manager.getPendingNotifications()).toMatchObject([{ id: 'agent-1', status: 'completed' }])
  })

  it('F4: keeps it for createAgentTasks, too, and refuses another word', async () => {
    const agent = controlledRun()
    const tasks = createAgentTasks({ subagents: { agent: agent.run }, onForegroundAbort: 'keep', graceMs: 0 })
    onTestFinished(() => tasks.dispose())
    const controller = new AbortController()
    const call = tasks.tools.task.execute({ subagent_name: 'agent', goal_prompt: 'g' }, { signal: controller.signal })
    await agent.started
    controller.abort()
    expect((await call).error?.type).toBe('aborted')
    expect(tasks.getAsyncTaskManager().getRunningTasks()).toHaveLength(1)
    agent.finish({})
    expect(() => createAgentTasks({ onForegroundAbort: 'leave' as never })).toThrow("expected 'keep' or 'cancel'")
  })

  it('F4: does not cancel when it was aborted before its subagent was found', async () => {
    const { getAsyncTaskManager, manager } = setUpHost()
    const run = vi.fn()
    const tool = createTaskTool({
      getAsyncTaskManager,
      resolveSubagent: () => new Promise(() => undefined),
      onForegroundAbort: 'keep',
    })
    const controller = new AbortController()
    const result = tool.execute({ subagent_name: 'agent', goal_prompt: 'g' }, { signal: controller.signal })
    controller.abort()
    expect((await result).error?.type).toBe('aborted')
    expect(manager.getAllTasks()).toEqual([])
    expect(run).not.toHaveBeenCalled()
  })
})

it('F4: a signal whose reason cannot be read cancels its task without one', () => {
  const manager = new AsyncTaskManager()
  const abortController = new AbortController()
  Object.defineProperty(abortController.signal, 'reason', {
    get: () => {
      throw new Error('no reason')
    },
  })
  manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g', abortController })
  abortController.abort()
  expect(manager.getTask('a')).toMatchObject({ status: 'cancelled' })
  expect(manager.getTask('a')).not.toHaveProperty('cancelReason')
})
