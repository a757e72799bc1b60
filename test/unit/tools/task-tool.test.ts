/** The task tool in place: it runs a subagent and returns its output, or its error. */
import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import type { OutputObject } from '../../../machines/records.js'
import { AsyncTaskReminderService } from '../../../src/features/delivery/reminder-service.js'
import { InvalidSettingError } from '../../../src/errors.js'
import type { SubagentRequest, SubagentRunner } from '../../../src/tools/subagents.js'
import { createTaskTool, TaskTool, type TaskParams, type TaskToolOptions } from '../../../src/tools/task-tool.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { nested } from '../../support/nested.js'
import { controlledRun, setUpHost, settle } from './tool-host.js'

type Options = Partial<TaskToolOptions> & { maxAsyncTasks?: number; notifyCancelled?: boolean; graceMs?: number }

function setUp(run: SubagentRunner, options: Options = {}) {
  const { maxAsyncTasks = 5, notifyCancelled = false, graceMs = 5_000, ...rest } = options
  const host = setUpHost({ maxAsyncTasks, notifyCancelled, graceMs })
  const tool = createTaskTool({
    getAsyncTaskManager: host.getAsyncTaskManager,
    resolveSubagent: (name) => (name === 'researcher' ? run : undefined),
    ...rest,
  })
  const call = (input: Partial<TaskParams> = {}, signal?: AbortSignal) =>
    tool.execute({ subagent_name: 'researcher', goal_prompt: 'find out', ...input }, { signal })
  return { ...host, tool, call }
}

const returning =
  (output: OutputObject): SubagentRunner =>
  () =>
    Promise.resolve(output)

describe('a task in place', () => {
  it('A5: returns the output of the run with the fields of a notification, and owes nothing', async () => {
    const output = { emitted_vars: { answer: '42' }, terminate_reason: 'GOAL', final_message: 'found' }
    const { call, manager } = setUp(returning(output))
    const owed: number[] = []
    manager.owed$.subscribe((counts) => owed.push(counts.size))
    expect(await call()).toEqual({
      llmContent: JSON.stringify(
        { agent_id: 'researcher-1', terminate_reason: 'GOAL', emitted_vars: { answer: '42' }, final_message: 'found' },
        null,
        2,
      ),
      returnDisplay: 'Task completed: **researcher** (`researcher-1`)\n\nfound',
      metadata: { agentId: 'researcher-1', async: false, status: 'completed', effectiveTimeoutSeconds: 900 },
      deliveryIds: ['wait-2'],
    })
    expect(manager.getTask('researcher-1')).toMatchObject({ delivery: 'delivered', owner: 'main' })
    expect(owed).toEqual([0])
  })

  it('A5: is delivered by its call, however soon it ends', async () => {
    const { call, manager } = setUp(returning({}))
    const reminders = new AsyncTaskReminderService(manager)
    const reminded: unknown[] = []
    manager.transitions$.subscribe(({ taskId }) => {
      manager.completeTask(taskId, { final_message: 'at once' })
      reminded.push(reminders.leaseReminder()?.text)
    })
    expect((await call()).llmContent).toContain('at once')
    expect(new Set(reminded)).toEqual(new Set([undefined]))
  })

  it('passes the whole request and the context of a run to the runner', async () => {
    const researcher = controlledRun<SubagentRequest>()
    const { call, clock, manager } = setUp(researcher.run, { owner: 'sub' })
    const request = {
      behaviour_prompts: ['be brief'],
      tool_whitelist: ['read'],
      expected_outputs: { answer: 'the answer' },
      context: { files: ['a.ts'] },
    }
    const result = call({ ...request, timeout_seconds: 60 })
    const { input, context } = await researcher.started
    expect(input).toEqual({
      id: 'researcher-1',
      subagent: 'researcher',
      goal: 'find out',
      behaviourPrompts: ['be brief'],
      toolWhitelist: ['read'],
      expectedOutputs: { answer: 'the answer' },
      context: { files: ['a.ts'] },
    })
    expect(Object.isFrozen(input) && Object.isFrozen(input.context)).toBe(true)
    expect([context.taskId, context.owner, context.signal.aborted]).toEqual(['researcher-1', 'sub', false])
    context.append('reading')
    expect(manager.readOutput('researcher-1')?.text).toBe('reading')
    expect(manager.getTask('researcher-1')).toMatchObject({ status: 'running', timeoutMs: 60_000 })
    researcher.finish({})
    expect((await result).metadata).toMatchObject({ effectiveTimeoutSeconds: 60 })
    expect(clock.pending).toBe(0)
  })

  it('passes on what its run writes while the call waits, and nothing after that', async () => {
    const researcher = controlledRun<SubagentRequest>()
    const { tool, clock } = setUp(researcher.run, { backgroundAfterSeconds: 10 })
    const onUpdate = vi.fn()
    const call = tool.execute({ subagent_name: 'researcher', goal_prompt: 'find out' }, { onUpdate })
    const { context } = await researcher.started
    context.append('first')
    clock.advance(10_000)
    expect((await call).llmContent).toMatch(/continues in the background/)
    expect(onUpdate.mock.calls).toEqual([[{ text: 'first', cursor: 5 }]])
    context.append('second')
    expect(onUpdate).toHaveBeenCalledOnce()
    researcher.finish({})
    await settle()
  })

  it('calls the run of a definition as its method', async () => {
    class Researcher {
      readonly reply = 'from the definition'
      run() {
        return { final_message: this.reply }
      }
    }
    const { call } = setUp(returning({}), { resolveSubagent: () => new Researcher() })
    const { llmContent, returnDisplay, error } = await call()
    expect(error).toBeUndefined()
    expect(JSON.parse(llmContent)).toMatchObject({ final_message: 'from the definition' })
    expect(returnDisplay).toContain('from the definition')
  })

  it('A3: is not refused at the limit, and takes no slot', async () => {
    const researcher = controlledRun<SubagentRequest>()
    const { call, manager, register } = setUp(researcher.run, { maxAsyncTasks: 1 })
    const result = call()
    await researcher.started
    expect(manager.canLaunchAsync().allowed).toBe(true)
    register('a')
    expect(manager.canLaunchAsync().allowed).toBe(false)
    researcher.finish({})
    expect((await result).error).toBeUndefined()
    const second = setUp(returning({}), { maxAsyncTasks: 0 })
    expect((await second.call()).metadata).toMatchObject({ status: 'completed' })
  })

  it.each([
    ['rejects', () => Promise.reject(new Error('no network'))],
    [
      'throws',
      () => {
        throw new Error('no network')
      },
    ],
  ])('whose run %s is an error that names the reason, and owes nothing', async (_what, run) => {
    const { call, manager } = setUp(run)
    expect(await call()).toEqual({
      llmContent: JSON.stringify({ agent_id: 'researcher-1', status: 'failed', error: 'no network' }, null, 2),
      returnDisplay: 'Task failed: **researcher** (`researcher-1`)\n\nno network',
      metadata: { agentId: 'researcher-1', async: false, status: 'failed', effectiveTimeoutSeconds: 900 },
      deliveryIds: ['wait-2'],
      error: { message: 'no network', type: 'execution_failed' },
    })
    expect(manager.getTask('researcher-1')?.delivery).toBe('delivered')
  })

  it('returns an error that names the limit when its deadline passes', async () => {
    const researcher = controlledRun<SubagentRequest>()
    const { call, clock } = setUp(researcher.run, { graceMs: 10 })
    const result = call({ timeout_seconds: 60 })
    const { context } = await researcher.started
    clock.advance(60_000)
    expect(context.signal.aborted).toBe(true)
    clock.advance(10)
    const { error, metadata } = await result
    expect(error?.message).toContain('60 s')
    expect(metadata).toMatchObject({ status: 'failed', effectiveTimeoutSeconds: 60 })
  })

  it('says that its timeout was cut to the limit', async () => {
    const { call, manager } = setUp(returning({}))
    const { llmContent, metadata } = await call({ timeout_seconds: 3_600 })
    expect(llmContent).toMatch(/\}\n\nThe timeout was cut to the limit of 1800 seconds \(asked: 3600\)\.$/)
    expect(metadata).toMatchObject({ effectiveTimeoutSeconds: 1_800 })
    expect(manager.getTask('researcher-1')?.timeoutMs).toBe(1_800_000)
  })

  it('has no deadline when the setting is none', async () => {
    const { call, manager } = setUp(returning({}), { defaultTimeoutSeconds: -1, maxTimeoutSeconds: -1 })
    const { metadata, returnDisplay } = await call()
    expect(metadata).toMatchObject({ effectiveTimeoutSeconds: -1 })
    expect(returnDisplay).toBe('Task completed: **researcher** (`researcher-1`)')
    expect(manager.getTask('researcher-1')).not.toHaveProperty('timeoutMs')
  })

  it('A7: has its text cut when it is long, and the rest can be read', async () => {
    const { call, manager } = setUp(returning({ final_message: 'x'.repeat(1_000) }), {
      maxMessageChars: 200,
      maxAsyncTasks: 0,
    })
    const { llmContent, returnDisplay } = await call()
    expect(llmContent).toContain('[Cut after 200 of ')
    expect(llmContent).toContain('"task_id":"researcher-1","action":"output","part":"result","cursor":200')
    expect(returnDisplay).toHaveLength(200)
    expect(manager.getTask('researcher-1')?.delivery).toBe('delivered')
  })
})

describe('aborting a task in place', () => {
  it.each([false, true])('A8: cancels it, and owes nothing (notifyCancelled: %s)', async (notifyCancelled) => {
    const researcher = controlledRun<SubagentRequest>()
    const { call, manager } = setUp(researcher.run, { notifyCancelled })
    const controller = new AbortController()
    const removeListener = vi.spyOn(controller.signal, 'removeEventListener')
    const result = call({}, controller.signal)
    const { context } = await researcher.started
    controller.abort()
    expect(context.signal.aborted).toBe(true)
    expect(await result).toMatchObject({
      llmContent: JSON.stringify({ agent_id: 'researcher-1', status: 'cancelled' }, null, 2),
      metadata: { agentId: 'researcher-1', async: false, status: 'cancelled', effectiveTimeoutSeconds: 900 },
      error: { message: 'Task researcher-1 was cancelled, because its call was aborted.', type: 'cancelled' },
    })
    expect(manager.getPendingNotifications()).toEqual([])
    expect(removeListener).toHaveBeenCalledWith('abort', expect.any(Function))
  })

  it('does not start a run that has not started', async () => {
    const run = vi.fn(returning({}))
    const controller = new AbortController()
    const { call, manager } = setUp(run)
    manager.transitions$.subscribe(() => controller.abort())
    expect((await call({}, controller.signal)).metadata).toMatchObject({ status: 'cancelled' })
    await settle()
    expect(run).not.toHaveBeenCalled()
  })

  it('creates no task when the call was aborted before', async () => {
    const run = vi.fn(returning({}))
    const { call, manager } = setUp(run)
    expect((await call({}, AbortSignal.abort())).error?.type).toBe('aborted')
    expect(manager.getAllTasks()).toEqual([])
    expect(run).not.toHaveBeenCalled()
  })

  it('ends a lookup that hangs, and creates no task', async () => {
    const controller = new AbortController()
    const { call, manager } = setUp(returning({}), { resolveSubagent: () => new Promise(() => undefined) })
    const result = call({}, controller.signal)
    await settle()
    controller.abort()
    expect((await result).error).toEqual({ type: 'aborted', message: 'The call of task was aborted.' })
    expect(manager.getAllTasks()).toEqual([])
  })

  it('A1: changes nothing once the run has returned', async () => {
    const controller = new AbortController()
    const { call, manager } = setUp(returning({ final_message: 'done' }))
    manager.settled$.subscribe(() => controller.abort())
    expect((await call({}, controller.signal)).metadata).toMatchObject({ status: 'completed' })
  })
})

it('a task in place that a person cancels returns the error `cancelled`', async () => {
  const researcher = controlledRun<SubagentRequest>()
  const { call, manager } = setUp(researcher.run)
  const result = call()
  await researcher.started
  manager.cancelTask('researcher-1')
  expect((await result).error?.type).toBe('cancelled')
})

it('A9: a task in place ends when the manager is disposed, and none starts afterwards', async () => {
  const researcher = controlledRun<SubagentRequest>()
  const { call, manager } = setUp(researcher.run)
  const result = call()
  await researcher.started
  const disposal = manager.dispose()
  expect((await result).error?.type).toBe('cancelled')
  researcher.finish({})
  await disposal
  expect((await call()).error).toEqual({
    type: 'execution_failed',
    message: 'task failed: The task manager was disposed: it takes no new tasks.',
  })
})

describe('a subagent that cannot be found', () => {
  it.each([
    [{}, ''],
    [{ listSubagents: () => ['researcher', 'coder'] }, ' Known: researcher, coder.'],
    [{ listSubagents: () => [] }, ' There are none.'],
  ])('because there is none of that name is an error, and no task (%j)', async (options, known) => {
    for (const isAsync of [false, true]) {
      const { call, manager } = setUp(returning({}), { maxAsyncTasks: 1, ...options })
      const result = await call({ subagent_name: 'nobody', async: isAsync })
      const message = `params.subagent_name: got "nobody", expected the name of a subagent.${known}`
      expect(result).toEqual({
        llmContent: message,
        returnDisplay: message,
        error: { message, type: 'parameter_validation' },
      })
      expect(manager.getAllTasks()).toEqual([])
      expect(manager.canLaunchAsync().allowed).toBe(true)
    }
  })

  it('fails the task when its context is nested too deep to arrive as it is', async () => {
    const { call } = setUp(returning({}))
    expect((await call({ context: nested(101) })).error?.message).toMatch(
      /^params\.context: got .+, expected a value nested at most 100 levels deep\.$/,
    )
  })

  it('fails the task when its lookup throws', async () => {
    const { call } = setUp(returning({}), { resolveSubagent: () => Promise.reject(new Error('no registry')) })
    expect(await call()).toMatchObject({
      error: { message: 'no registry', type: 'execution_failed' },
      metadata: { agentId: 'researcher-1', status: 'failed' },
    })
  })

  it('fails the task when it is invalid, and is an unknown name when it is undefined', async () => {
    const wrongs: [unknown, string][] = [
      [{ start: 1 }, '{"start":1}'],
      [{ run: 1 }, '{"run":1}'],
      ['run', '"run"'],
      [1, '1'],
    ]
    for (const [given, shown] of wrongs) {
      const wrong = setUp(returning({}), { resolveSubagent: () => given as never })
      expect((await wrong.call()).error?.message).toBe(
        `resolveSubagent('researcher'): got ${shown}, expected a function, or { run }.`,
      )
    }
    const nothing = setUp(returning({}), { resolveSubagent: () => null as never })
    expect((await nothing.call()).error?.type).toBe('parameter_validation')
  })
})

describe('the parameters', () => {
  it.each([
    [{ subagent_name: ' ' }, 'params.subagent_name: got " ", expected the name of a subagent.'],
    [{ subagent_name: 'x'.repeat(257) }, /^params\.subagent_name: got "xxx.*, expected at most 256 characters\.$/],
    [{ goal_prompt: '' }, 'params.goal_prompt: got "", expected a goal, in words.'],
    [{ goal_prompt: ' \n' }, 'params.goal_prompt: got " \\n", expected a goal, in words.'],
    [{ goal_prompt: undefined }, 'params.goal_prompt: got undefined, expected a string.'],
    [{ behaviour_prompts: 'x' }, 'params.behaviour_prompts: got "x", expected an array.'],
    [{ tool_whitelist: [1] }, 'params.tool_whitelist[0]: got 1, expected a string.'],
    [{ expected_outputs: { a: 1 } }, 'params.expected_outputs.a: got 1, expected a string.'],
    [{ timeout_seconds: 0 }, 'params.timeout_seconds: got 0, expected a number of seconds > 0, or -1 for no deadline.'],
    [
      { timeout_seconds: -2 },
      'params.timeout_seconds: got -2, expected a number of seconds > 0, or -1 for no deadline.',
    ],
    [{ timeout_seconds: NaN }, 'params.timeout_seconds: got NaN, expected a number.'],
    [{ context: 'x' }, 'params.context: got "x", expected a record.'],
    [{ async: 'yes' }, 'params.async: got "yes", expected a boolean.'],
    [{ prompt: 'x' }, 'params.prompt: got "x", expected a known field; the nearest is goal_prompt.'],
  ])('%j are refused, and no task is made', async (input, message) => {
    const run = vi.fn(returning({}))
    const { call, manager } = setUp(run)
    const { error } = await call(input as never)
    expect(error?.type).toBe('parameter_validation')
    expect(error?.message).toEqual(typeof message === 'string' ? message : expect.stringMatching(message))
    expect(manager.getAllTasks()).toEqual([])
    expect(run).not.toHaveBeenCalled()
  })

  it('have a JSON schema with exactly the documented fields', () => {
    const schema = z.toJSONSchema(setUp(returning({})).tool.inputSchema)
    expect(schema.required).toEqual(['subagent_name', 'goal_prompt'])
    expect(schema.additionalProperties).toBe(false)
    expect(Object.keys(schema.properties ?? {})).toEqual([
      'subagent_name',
      'goal_prompt',
      'behaviour_prompts',
      'tool_whitelist',
      'expected_outputs',
      'timeout_seconds',
      'background_after_seconds',
      'context',
      'async',
      'after',
      'on_failed_dependency',
      'concurrency_key',
    ])
  })
})

it.each([{ defaultTimeoutSeconds: 0 }, { maxTimeoutSeconds: -5 }, { maxMessageChars: 3 }])(
  'refuses the option %j',
  (option) => {
    expect(() => setUp(returning({}), option)).toThrow(InvalidSettingError)
  },
)

describe('the class', () => {
  it('is a drop-in', async () => {
    const { getAsyncTaskManager } = setUpHost({ clock: createManualClock() })
    const tool = new TaskTool({ getAsyncTaskManager, resolveSubagent: () => returning({ final_message: 'done' }) })
    expect([TaskTool.Name, tool.name, tool.displayName, tool.kind]).toEqual(['task', 'task', 'Task', 'execute'])
    expect(tool.description).toContain('Run a subagent')
    const { signal } = new AbortController()
    const result = await tool.build({ subagent_name: 'researcher', goal_prompt: 'find out' }).execute(signal)
    expect(result.llmContent).toContain('"final_message": "done"')
  })

  it('describes what it would run', () => {
    const tool = new TaskTool({ ...setUpHost(), resolveSubagent: () => undefined })
    const params = { subagent_name: 'coder', goal_prompt: 'g'.repeat(101) }
    expect(tool.build(params).getDescription()).toBe(`Run subagent 'coder': ${'g'.repeat(100)}...`)
    expect(tool.build({ ...params, goal_prompt: 'code', async: true }).getDescription()).toBe(
      "Run subagent 'coder' in the background: code",
    )
  })
})
