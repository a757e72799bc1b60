/** The tool submit_commands: a command task and its async task end together (S10). */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'
import { AsyncTaskManager } from '../../../src/async-tasks/manager.js'
import { AsyncTaskReminderService } from '../../../src/features/delivery/reminder-service.js'
import { AsyncTaskAutoTrigger } from '../../../src/features/delivery/auto-trigger.js'
import { TaskManager } from '../../../src/command-tasks/task-manager.js'
import type { TaskManagerOptions } from '../../../src/command-tasks/options.js'
import { InstanceManager } from '../../../src/command-tasks/instances/instance-manager.js'
import { localInstance } from '../../../src/command-tasks/instances/local-instance.js'
import { instanceTool, type InstanceToolContext } from '../../../src/protocol/instance-tools.js'
import { memoryStore } from '../../../src/store/index.js'
import {
  createSubmitCommandsTool,
  type SubmitCommandsOptions,
  type SubmitCommandsParams,
} from '../../../src/tools/submit-commands.js'
import type { Tool } from '../../../src/tools/tool.js'
import { deferred, setUpHost, settle } from './tool-host.js'

type Options = Partial<Omit<SubmitCommandsOptions, 'taskManager'>> &
  Pick<TaskManagerOptions, 'maxQueueSize'> & { maxAsyncTasks?: number }

function setUp({ maxAsyncTasks = 5, maxQueueSize = 100, ...options }: Options = {}) {
  const host = setUpHost({ maxAsyncTasks })
  const { clock, manager, onError } = host
  const instances = new InstanceManager({ clock })
  const taskManager = new TaskManager({ instances, clock, onError, maxQueueSize })
  const held: { readonly context: InstanceToolContext; readonly release: (value: unknown) => void }[] = []
  const hold = instanceTool({
    name: 'hold',
    inputSchema: z.object({}),
    execute: (_input, context) => {
      const { promise, resolve, reject } = deferred<unknown>()
      held.push({ context, release: resolve })
      const onAbort = (): void => reject(context.signal.reason)
      context.signal.addEventListener('abort', onAbort)
      if (context.signal.aborted) onAbort()
      return promise
    },
  })
  const add = instanceTool({
    name: 'add',
    inputSchema: z.object({ a: z.number(), b: z.number() }),
    execute: ({ a, b }) => String(a + b),
  })
  const fail = instanceTool({
    name: 'fail',
    execute: () => {
      throw Object.assign(new Error('no such button'), { code: 'NOT_FOUND' })
    },
  })
  instances.connect(localInstance({ id: 'calc', tools: [add, hold, fail], clock }))
  const tool = createSubmitCommandsTool({ getAsyncTaskManager: host.getAsyncTaskManager, taskManager, ...options })
  const call = (params: Partial<SubmitCommandsParams>, signal?: AbortSignal) =>
    tool.execute({ task_name: 'Do it', commands: [command('hold')], ...params }, { signal })
  const reminders = new AsyncTaskReminderService(manager)
  onTestFinished(async () => {
    await Promise.all([manager.dispose(), taskManager.dispose(), instances.dispose()])
    if (clock.pending > 0) throw new Error(`${clock.pending} timers are left`)
  })
  return { ...host, instances, taskManager, tool, call, held, reminders }
}

const command = (tool_name: string, args: Record<string, unknown> = {}, intention = '') => ({
  tool_name,
  args,
  intention,
})
const adding = command('add', { a: 20, b: 22 }, 'find the answer')

/** Returns the command task that a call submitted. */
const commandTaskId = ({ metadata }: { metadata?: Readonly<Record<string, unknown>> }) =>
  String(metadata?.['commandTaskId'])

describe('submit_commands in the background', () => {
  it('returns the ids at once, and the reminder carries the end', async () => {
    const { call, manager, reminders, taskManager } = setUp({ owner: 'sub' })
    const result = await call({ task_name: 'Sum up!', commands: [adding] })
    expect(result.error).toBeUndefined()
    expect(result.llmContent).toBe(
      "Async task launched: command task 'Sum up!' (ID: sum-up-2) of 1 command(s) on instance calc, number 1 in its queue. " +
        'Task is running in background. Its result will be delivered to you when it has ended: do not poll for it.',
    )
    expect(result.returnDisplay).toBe('Async task started: **Sum up!** (`sum-up-2`)')
    const task = taskManager.listTasks()[0]
    expect(result.metadata).toEqual({
      agentId: 'sum-up-2',
      async: true,
      status: 'running',
      effectiveTimeoutSeconds: 900,
      commandTaskId: task?.id,
      instanceId: 'calc',
      queuePosition: 1,
    })
    expect(manager.getTask('sum-up-2')).toMatchObject({ status: 'running', owner: 'sub', goalPrompt: 'add' })
    await settle()
    expect(taskManager.getTask(String(task?.id))?.status).toBe('completed')
    const reminder = reminders.leaseReminder({ owner: 'sub' })
    expect(reminder?.taskIds).toEqual(['sum-up-2'])
    expect(reminder?.text).toContain('add (find the answer): success: 42')
  })

  it('A6: wakes an idle agent when the command task has ended', async () => {
    const { call, manager, reminders, held, clock } = setUp()
    const turns: string[] = []
    const trigger = new AsyncTaskAutoTrigger(
      manager,
      reminders,
      () => false,
      (text) => {
        turns.push(text)
        return Promise.resolve()
      },
    )
    const unsubscribe = trigger.subscribe()
    await call({})
    await settle()
    held[0]?.release('done at last')
    await settle()
    clock.advance(0)
    await settle()
    expect(turns).toHaveLength(1)
    expect(turns[0]).toContain('done at last')
    unsubscribe()
  })

  it('appends each step to the output, and reports progress', async () => {
    const { call, manager, held } = setUp()
    const reports: unknown[] = []
    manager.progress$.subscribe(({ progress }) => reports.push(progress))
    await call({ commands: [adding, command('hold')] })
    await settle()
    held[0]?.context.progress({ progress: 1, total: 4, message: 'a quarter' })
    held[0]?.context.progress(3)
    held[0]?.release('held')
    await settle()
    expect(manager.readOutput('do-it-2')?.text.split('\n')).toEqual([
      '[1/2] add (find the answer): running',
      '[1/2] add (find the answer): success: 42',
      '[2/2] hold: running',
      '[2/2] hold: a quarter',
      '[2/2] hold: success: held',
      '',
    ])
    expect(reports).toEqual([
      { progress: 0, total: 2, message: 'add (find the answer)' },
      { progress: 1, total: 2, message: 'add (find the answer)' },
      { progress: 1, total: 2, message: 'hold' },
      { progress: 1.25, total: 2, message: 'a quarter' },
      { progress: 1.25, total: 2, message: 'hold' },
      { progress: 2, total: 2, message: 'hold' },
    ])
  })

  it('keeps two tasks apart', async () => {
    const { call, manager, held } = setUp()
    await call({ task_name: 'One' })
    await call({ task_name: 'Two', commands: [adding] })
    await settle()
    expect(manager.readOutput('two-4')?.text).toBe('')
    held[0]?.release('held')
    await settle()
    expect(manager.readOutput('one-2')?.text).toBe('[1/1] hold: running\n[1/1] hold: success: held\n')
    expect(manager.readOutput('two-4')?.text).not.toContain('hold')
  })

  it('keeps the ids and the figures of the command task in the output', async () => {
    const { call, manager } = setUp()
    const result = await call({ commands: [adding] })
    await settle()
    expect(manager.getTask('do-it-2')).toMatchObject({
      status: 'completed',
      output: { command_task_id: commandTaskId(result), instance_id: 'calc', summary: { successfulCommands: 1 } },
    })
  })

  it('fails with the command that failed, its code, and what was done before', async () => {
    const { call, manager } = setUp()
    await call({ commands: [adding, command('fail', {}, 'press it'), adding] })
    await settle()
    const task = manager.getTask('do-it-2')
    expect(task).toMatchObject({ status: 'failed', delivery: 'owed' })
    expect(task?.error).toContain('failed at command 2 of 3, fail (press it). NOT_FOUND: no such button')
    expect(task?.error).toContain('1. add (find the answer): success: 42')
    expect(task?.error).toContain('3. add (find the answer): skipped')
  })
})

describe('an async task that is cancelled', () => {
  it('S10: cancels its command task, which aborts the command, and ends cancelled', async () => {
    const { call, manager, taskManager, held, onError } = setUp()
    const result = await call({})
    await settle()
    expect(manager.cancelTask('do-it-2')).toBe(true)
    expect(held[0]?.context.signal.aborted).toBe(true)
    expect(taskManager.getTask(commandTaskId(result))).toMatchObject({ status: 'cancelled' })
    await settle()
    expect(manager.getTask('do-it-2')).toMatchObject({ status: 'cancelled', delivery: 'none' })
    expect(onError).not.toHaveBeenCalled()
  })

  it('S10: cancels a command task that is queued, and one whose run has not started', async () => {
    const { call, manager, taskManager, held } = setUp()
    await call({})
    await settle()
    const queued = await call({ commands: [adding] })
    await settle()
    manager.cancelTask('do-it-4')
    expect(taskManager.getTask(commandTaskId(queued))?.status).toBe('cancelled')
    const unbegun = call({ commands: [adding] })
    manager.cancelTask('do-it-6')
    expect(taskManager.getTask(commandTaskId(await unbegun))?.status).toBe('cancelled')
    await settle()
    expect(held).toHaveLength(1)
    expect(manager.getTask('do-it-6')?.status).toBe('cancelled')
  })

  it('S10: by its deadline fails with the limit, and cancels its command task', async () => {
    const { call, manager, taskManager, clock, held } = setUp()
    const result = await call({ timeout_seconds: 30 })
    await settle()
    clock.advance(30_000)
    expect(held[0]?.context.signal.aborted).toBe(true)
    expect(taskManager.getTask(commandTaskId(result))?.status).toBe('cancelled')
    await settle()
    expect(manager.getTask('do-it-2')).toMatchObject({ status: 'failed' })
    expect(manager.getTask('do-it-2')?.error).toContain('30 s')
  })

  it('by the disposal of its manager cancels its command task', async () => {
    const { call, manager, taskManager } = setUp()
    const result = await call({})
    await settle()
    await manager.dispose()
    expect(taskManager.getTask(commandTaskId(result))?.status).toBe('cancelled')
  })
})

describe('a command task that ends for another reason', () => {
  it('S10: a cancellation fails the async task with that reason, and the failure is owed', async () => {
    const { call, manager, taskManager, reminders } = setUp({ owner: 'sub' })
    const result = await call({})
    await settle()
    taskManager.cancelTask(commandTaskId(result))
    await settle()
    const task = manager.getTask('do-it-2')
    expect(task).toMatchObject({ status: 'failed', delivery: 'owed', owner: 'sub' })
    expect(task?.error).toContain('was cancelled elsewhere')
    expect(task?.error).toMatch(/\n1\. hold: cancelled$/)
    expect(reminders.leaseReminder({ owner: 'sub' })?.text).toContain('was cancelled elsewhere')
  })

  it('S10: a cancellation before it has started is reported too', async () => {
    const { call, manager, taskManager } = setUp()
    const warn = vi.spyOn(console, 'warn')
    onTestFinished(() => warn.mockRestore())
    const calling = call({})
    taskManager.cancelTask(String(taskManager.listTasks()[0]?.id))
    await calling
    await settle()
    expect(manager.getTask('do-it-2')).toMatchObject({ status: 'failed', delivery: 'owed' })
    expect(warn).not.toHaveBeenCalled()
  })

  it('S10: the disconnection of its instance fails the async task with that reason', async () => {
    const { call, manager, instances } = setUp()
    await call({})
    await call({ commands: [adding] })
    await settle()
    await instances.disconnect('calc')
    await settle()
    for (const id of ['do-it-2', 'do-it-4']) {
      expect(manager.getTask(id)).toMatchObject({ status: 'failed', delivery: 'owed' })
      expect(manager.getTask(id)?.error).toContain('INSTANCE_DISCONNECTED')
    }
  })

  it('S10: the draining or disposal of the task manager is reported, whenever it happens', async () => {
    const { call, manager, taskManager } = setUp()
    await call({})
    await settle()
    void taskManager.dispose()
    await settle()
    expect(manager.getTask('do-it-2')).toMatchObject({ status: 'failed', delivery: 'owed' })

    const inside = setUp()
    await inside.call({ commands: [adding] })
    await inside.call({})
    inside.taskManager.on('complete', () => void inside.taskManager.dispose())
    await settle()
    expect(inside.manager.getTask('do-it-4')).toMatchObject({ status: 'failed', delivery: 'owed' })
  })
})

describe('submit_commands in place', () => {
  it('returns the result, takes no slot, and owes nothing', async () => {
    const { call, manager, register } = setUp({ maxAsyncTasks: 1 })
    register('a')
    const result = await call({ commands: [adding], async: false })
    expect(result.error).toBeUndefined()
    expect(result.llmContent).toContain('success: 42')
    expect(result.metadata).toMatchObject({ async: false, status: 'completed' })
    expect(manager.getTask('do-it-1')).toMatchObject({ status: 'completed', delivery: 'delivered' })
  })

  it('returns a failure as an error', async () => {
    const { call } = setUp()
    const result = await call({ commands: [command('fail')], async: false })
    expect(result.error?.message).toContain('NOT_FOUND: no such button')
  })

  it('cancels its command task when the call is aborted, whenever that is', async () => {
    const { call, taskManager, held } = setUp()
    const controller = new AbortController()
    const running = call({ async: false }, controller.signal)
    await settle()
    controller.abort()
    expect((await running).error?.type).toBe('cancelled')
    expect(held[0]?.context.signal.aborted).toBe(true)
    const soon = new AbortController()
    const submitted = call({ async: false }, soon.signal)
    soon.abort()
    expect((await submitted).error?.type).toBe('cancelled')
    expect(taskManager.listTasks().map(({ status }) => status)).toEqual(['cancelled', 'cancelled'])
    expect(held).toHaveLength(1)
  })
})

describe('submit_commands when nothing can be submitted', () => {
  it.each([
    [{ instanceId: 'nobody' }, 'INVALID_INSTANCE', 'parameter_validation'],
    [{ task_name: '' }, undefined, 'parameter_validation'],
    [{ commands: [] }, undefined, 'parameter_validation'],
    [{ commands: [{ ...adding, tool_nam: 'x' }] }, undefined, 'parameter_validation'],
    [{ timeout_seconds: 0 }, undefined, 'parameter_validation'],
  ])('says why for %j, and leaves no task and no slot taken', async (params, code, type) => {
    const { call, manager, taskManager } = setUp({ maxAsyncTasks: 1 })
    for (const isAsync of [true, false]) {
      const result = await call({ ...params, async: isAsync })
      expect(result.error?.type).toBe(type)
      expect(result.metadata?.['code']).toBe(code)
    }
    expect(manager.getAllTasks()).toEqual([])
    expect(taskManager.listTasks()).toEqual([])
    expect(manager.canLaunchAsync().allowed).toBe(true)
  })

  it('says that the queue is full, and keeps the slot free', async () => {
    const { call, manager } = setUp({ maxQueueSize: 1, maxAsyncTasks: 2 })
    await call({})
    const refused = await call({})
    expect(refused).toMatchObject({ error: { type: 'execution_failed' }, metadata: { code: 'QUEUE_FULL' } })
    expect(refused.llmContent).toContain('QUEUE_FULL')
    expect(manager.canLaunchAsync().allowed).toBe(true)
  })

  it('A3: submits nothing when every slot is taken', async () => {
    const { call, taskManager } = setUp({ maxAsyncTasks: 1 })
    await call({})
    const refused = await call({})
    expect(refused.error?.type).toBe('limit_reached')
    expect(refused.llmContent).toContain('Max async tasks (1) reached')
    expect(taskManager.listTasks()).toHaveLength(1)
  })

  it('cancels the command task when the launch fails', async () => {
    const { call, manager, taskManager } = setUp()
    manager.createTaskId = () => 'taken'
    manager.registerTask({ id: 'taken', subagentName: 'a', goalPrompt: 'b', abortController: new AbortController() })
    for (const isAsync of [true, false]) expect((await call({ async: isAsync })).error?.type).toBe('execution_failed')
    expect(taskManager.listTasks().map(({ status }) => status)).toEqual(['cancelled', 'cancelled'])
    expect(manager.canLaunchAsync().allowed).toBe(true)
  })

  it('describes itself without throwing', () => {
    const { tool } = setUp()
    expect(tool.describe({ task_name: 'Sum', commands: [adding] })).toBe('Run 1 command in the background: Sum')
    expect(tool.describe({ task_name: 'Sum', commands: [adding, adding], async: false })).toBe('Run 2 commands: Sum')
    const untyped: Tool = tool
    expect(untyped.describe(7)).toBe('submit_commands')
  })
})

it('K7: is not run again as the subagent whose name it has', async () => {
  const store = memoryStore()
  const instances = new InstanceManager()
  const taskManager = new TaskManager({ instances })
  instances.connect(
    localInstance({ id: 'calc', tools: [instanceTool({ name: 'hold', execute: () => new Promise(() => undefined) })] }),
  )
  const manager = new AsyncTaskManager({ store, graceMs: 0 })
  const tool = createSubmitCommandsTool({ getAsyncTaskManager: () => manager, taskManager })
  const { error } = await tool.execute({
    task_name: 'helper',
    instanceId: 'calc',
    commands: [command('hold')],
    async: true,
  })
  expect(error).toBeUndefined()
  const run = vi.fn(() => ({}))
  const next = new AsyncTaskManager({
    store: store.copy(),
    findRunner: () => ({
      run,
      survivesHost: true,
      retry: { attempts: 2, on: ['interrupted'] },
    }),
  })
  expect(await next.recovered).toMatchObject({ adopted: [], retried: [], interrupted: [expect.any(String)] })
  expect(next.getAllTasks()).toMatchObject([{ subagentName: 'helper', errorCode: 'INTERRUPTED' }])
  expect(run).not.toHaveBeenCalled()
  await Promise.all([next.dispose(), manager.dispose(), taskManager.dispose(), instances.dispose()])
})
