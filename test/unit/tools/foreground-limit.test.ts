/** `maxForegroundTasks`: how many synchronous calls may run a task at once. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { createAgentTasks, type AgentTasksOptions } from '../../../src/index.js'
import { InstanceManager, localInstance, TaskManager } from '../../../src/server/index.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { controlledSubagent, settle } from './tool-host.js'
import { TaskLimitError } from '../../../src/errors.js'

const refused = {
  llmContent:
    'Max foreground tasks (1) reached. Wait until one of these calls has returned, or run this one in the background (async: true).',
  error: { message: 'Max foreground tasks (1) reached', type: 'limit_reached' },
  metadata: { max: 1 },
}

function setUp(options: AgentTasksOptions = {}) {
  const clock = createManualClock()
  const { subagent, runs } = controlledSubagent()
  const tasks = createAgentTasks({ clock, subagents: { a: subagent }, maxForegroundTasks: 1, graceMs: 100, ...options })
  const manager = tasks.getAsyncTaskManager()
  onTestFinished(async () => {
    const disposal = tasks.dispose()
    clock.advance(100)
    await disposal
    expect(clock.pending).toBe(0)
  })
  const call = (more: object = {}, signal?: AbortSignal) =>
    tasks.tools.task.execute({ subagent_name: 'a', goal_prompt: 'g', ...more }, { signal })
  return { ...tasks, clock, runs, manager, call }
}

describe('maxForegroundTasks', () => {
  it('refuses one more synchronous call in words, before it looks for a subagent; the background is another limit', async () => {
    const { call, runs, manager } = setUp({ maxAsyncTasks: 1 })
    const first = call()
    await settle()
    expect(await call()).toMatchObject(refused)
    expect(await call({ subagent_name: 'nobody' })).toMatchObject(refused)
    expect((await call({ async: true })).error).toBeUndefined()
    expect(manager.canLaunchAsync().allowed).toBe(false)
    runs[0]?.finish({ final_message: 'one' })
    expect((await first).error).toBeUndefined()
    await settle()
    const second = call()
    await settle()
    runs[2]?.finish({})
    expect((await second).error).toBeUndefined()
  })

  it('counts a run that was cancelled until it has stopped', async () => {
    const { call, clock } = setUp()
    const abort = new AbortController()
    const first = call({}, abort.signal)
    await settle()
    abort.abort()
    expect((await first).error?.type).toBe('cancelled')
    expect(await call()).toMatchObject(refused)
    clock.advance(100)
    await settle()
    void call()
    await settle()
    expect((await call()).error).toMatchObject(refused.error)
  })

  it('refuses also what has found its subagent at the same time as another call', async () => {
    const { call, manager } = setUp()
    void call()
    expect(await call()).toMatchObject(refused)
    expect(manager.getAllTasks()).toHaveLength(1)
  })

  it('is a limit of launch, and counts nothing that a run launches', async () => {
    const { manager, runs, call } = setUp()
    void call()
    await settle()
    const input = { subagentName: 'b', goalPrompt: 'g', isForeground: true }
    expect(() => manager.launch(input, () => 'x')).toThrow(TaskLimitError)
    const { context } = await runs[0]!.started
    expect(context.launch({ ...input, id: 'child' }, () => 'x').status).toBe('running')
    await settle()
    expect(manager.getTask('child')?.status).toBe('completed')
  })

  it('is of submit_commands, too: nothing is submitted', async () => {
    const instances = new InstanceManager()
    const taskManager = new TaskManager({ instances })
    instances.connect(localInstance({ id: 'calc', tools: [{ name: 'add', execute: () => '3' }] }))
    onTestFinished(async () => {
      await Promise.all([taskManager.dispose(), instances.dispose()])
    })
    const { call, tools, runs } = setUp({ taskManager }) as ReturnType<typeof setUp> & {
      tools: { submit_commands: { execute(input: object): Promise<object> } }
    }
    void call()
    await settle()
    const submit = () =>
      tools.submit_commands.execute({ task_name: 't', commands: [{ tool_name: 'add' }], async: false })
    expect(await submit()).toMatchObject(refused)
    expect(taskManager.listTasks()).toEqual([])
    runs[0]?.finish({})
    await settle()
    expect(await submit()).not.toHaveProperty('error')
  })

  it('is no limit by default, may be 0, and is checked', async () => {
    const { call, runs } = setUp({ maxForegroundTasks: -1, maxAsyncTasks: 1 })
    for (let n = 0; n < 12; n += 1) void call()
    await settle()
    expect(runs).toHaveLength(12)
    expect((await setUp({ maxForegroundTasks: 0 }).call()).error?.message).toBe('Max foreground tasks (0) reached')
    expect(() => setUp({ maxForegroundTasks: 1.5 })).toThrow('Setting maxForegroundTasks: got 1.5')
  })
})
