/** What the tools and the slash commands do while tasks are paused: F19. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { createAgentTasks, runCommandLine, completeCommandLine } from '../../../src/index.js'
import { InstanceManager, localInstance, TaskManager } from '../../../src/server/index.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { ALICE, BOB, setUpApp } from '../mcp/wire.js'
import { settle } from './tool-host.js'
import { createTaskCommands } from '../../../src/parts.js'

const SINCE = '2024-01-01T00:00:00.000Z'

function setUp(options: { readonly maxAsyncTasks?: number; readonly owner?: string } = {}) {
  const clock = createManualClock(Date.UTC(2024, 0, 1))
  const started: string[] = []
  const looked: string[] = []
  const calls: string[] = []
  let last = 0
  const instances = new InstanceManager({ clock })
  instances.connect(localInstance({ id: 'calc', clock, tools: [{ name: 'add', execute: () => calls.push('add') }] }))
  const taskManager = new TaskManager({ instances, clock })
  const tasks = createAgentTasks({
    clock,
    createId: (prefix) => `${prefix}-${++last}`,
    maxAsyncTasks: 3,
    graceMs: 0,
    taskManager,
    commands: { allow: [process.execPath] },
    resolveSubagent: (name) => {
      looked.push(name)
      return ({ goal }) => {
        started.push(goal)
        return `did ${goal}`
      }
    },
    ...options,
  })
  onTestFinished(async () => {
    const disposal = Promise.all([tasks.dispose(), taskManager.dispose(), instances.dispose()])
    clock.advance(10_000)
    await disposal
  })
  const call = (goal: string, isAsync = true) =>
    tasks.tools.task.execute({ subagent_name: 'a', goal_prompt: goal, async: isAsync })
  // The commands of an operator, who sees the tasks of all owners.
  const commands = createTaskCommands({
    getAsyncTaskManager: () => tasks.manager,
    pausedOwner: options.owner ?? 'main',
  })
  const type = (line: string) => runCommandLine(commands, line)
  return { ...tasks, commands, clock, started, looked, calls, taskManager, call, type }
}

describe('the tools', () => {
  it('F19: queue what is launched, also when every slot is taken, and say why', async () => {
    const { call, pause, resume, started, tools, manager } = setUp({ maxAsyncTasks: 0 })
    pause('main')
    const { llmContent, metadata } = await call('first')
    expect(llmContent).toBe(
      "Async task queued: subagent 'a' (ID: a-1). Background tasks are paused: it waits until a person resumes them, and starts by itself. Its result will be delivered to you when it has ended: do not poll for it.",
    )
    expect(metadata).toMatchObject({ status: 'queued', async: true })
    const list = (await tools.check_async_tasks.execute({})).llmContent
    expect(list).toContain(`- Paused: the tasks of main, since ${SINCE}.`)
    expect(list).toMatch(/a - queued \(0s\), paused - first/)
    manager.setMaxAsyncTasks(1)
    resume('main')
    await settle()
    expect(started).toEqual(['first'])
    expect((await tools.check_async_tasks.execute({})).llmContent).not.toMatch(/paused/i)
  })

  it('F19: refuse what a call would wait for, before they look for a subagent', async () => {
    const { call, pause, looked, started, tools, manager, calls, taskManager } = setUp()
    pause()
    const refused = await call('first', false)
    expect(refused.error).toMatchObject({ type: 'paused' })
    expect(refused.llmContent).toBe(
      'Background tasks are paused. Run it with async: true: it starts when a person resumes them.',
    )
    const command = await tools.run_command.execute({ command: process.execPath, args: ['-v'] })
    expect(command.error).toMatchObject({ type: 'paused' })
    for (const async of [true, false]) {
      const submitted = await tools.submit_commands.execute({
        task_name: 'sum',
        async,
        commands: [{ tool_name: 'add', args: {} }],
      })
      expect(submitted.error).toMatchObject({ type: 'paused' })
      expect(submitted.llmContent).toContain('Submit the commands again')
    }
    await settle()
    expect([looked, started, calls, taskManager.listTasks(), manager.getAllTasks()]).toEqual([[], [], [], [], []])
    expect(manager.actor.getSnapshot()).toMatchObject({ slots: 0, reservations: 0 })
  })

  it('F19: queue a program that is to run in the background', async () => {
    const { pause, tools, manager } = setUp()
    pause()
    const { metadata } = await tools.run_command.execute({ command: process.execPath, args: ['-v'], async: true })
    expect(metadata).toMatchObject({ status: 'queued' })
    expect(manager.registry.pools.command.queue.size).toBe(1)
  })
})

describe('an MCP client', () => {
  it('F19: is not paused by the pause of another one', async () => {
    const { app, manager, call, clock } = setUpApp({ a: () => 'done' })
    onTestFinished(async () => {
      const closing = app.close()
      clock.advance(10_000)
      await closing
    })
    manager.pause(BOB.owner)
    const launch = (caller: typeof ALICE) =>
      call('task', { subagent_name: 'a', goal_prompt: 'go', async: true }, {}, caller)
    expect((await launch(ALICE)).result['structuredContent']).toMatchObject({ status: 'running' })
    expect((await launch(BOB)).result['structuredContent']).toMatchObject({ status: 'queued' })
  })
})

describe('/pause and /resume', () => {
  it('F19: pause the tasks of the host, and say so', async () => {
    const { type, pauses, call, started } = setUp({ owner: 'agent' })
    const paused = `Paused: the tasks of agent, since ${SINCE}, by /pause.`
    expect(type('/pause')).toEqual({
      type: 'info',
      text: `${paused} Running tasks continue. No other task starts until /resume.`,
    })
    expect(pauses()).toMatchObject([{ owner: 'agent' }])
    expect(type('/tasks')?.text).toBe(`No async tasks.\n${paused}`)
    await call('first')
    expect(type('/tasks')?.text).toBe(`${paused}\n[QUEUED] [a-1] a (0s, number 1 in the queue, paused) - first`)
    expect(type('/resume')).toEqual({ type: 'info', text: 'Background tasks start again.' })
    await settle()
    expect(started).toEqual(['first'])
    expect(type('/resume')).toEqual({ type: 'error', text: 'Nothing was paused.' })
    expect(type('/tasks')?.text).not.toContain('aused')
  })

  it('F19: pause everything, and leave the pauses of others alone', () => {
    const { type, pause, pauses } = setUp()
    pause('other', { deliveries: 'hold' })
    type('/pause')
    expect(type('/pause all')?.text).toContain(`Paused: all tasks, since ${SINCE}, by /pause.`)
    expect(type('/resume')?.text).toBe(
      `Background tasks start again.\nPaused: the tasks of other, since ${SINCE}; results are held.`,
    )
    expect(pauses().map(({ owner }) => owner)).toEqual(['other'])
  })

  it('F19: pause one owner alone where they are restricted to it', () => {
    const { manager } = setUp()
    const commands = createTaskCommands({ getAsyncTaskManager: () => manager, owner: 'mine' })
    expect(runCommandLine(commands, '/pause all')).toEqual({ type: 'error', text: 'Usage: /pause [all]' })
    expect(completeCommandLine(commands, '/pause ')).toEqual([])
    runCommandLine(commands, '/pause')
    manager.pause()
    expect(manager.pauses().map(({ owner }) => owner)).toEqual(['mine', undefined])
    expect(runCommandLine(commands, '/resume')?.text).toBe(
      `Background tasks start again.\nPaused: all tasks, since ${SINCE}.`,
    )
    expect(manager.pauses().map(({ owner }) => owner)).toEqual([undefined])
  })

  it('F19: name ten pauses in a list', () => {
    const { type, pause, manager } = setUp()
    for (let n = 0; n < 12; n += 1) pause(`owner ${n}`)
    const lines = () => type('/tasks')?.text.split('\n') ?? []
    expect(lines().slice(10)).toEqual([
      `Paused: the tasks of owner 9, since ${SINCE}.`,
      'Paused: the tasks of 2 more owner(s).',
    ])
    manager.pause()
    expect(lines().slice(1, 3)).toEqual([
      `Paused: all tasks, since ${SINCE}.`,
      `Paused: the tasks of owner 0, since ${SINCE}.`,
    ])
  })

  it('F19: refuse other words, and complete their own', () => {
    const { type, commands, pauses } = setUp()
    for (const line of ['/pause some', '/pause all now']) expect(type(line)?.type).toBe('error')
    expect(type('/resume all')).toEqual({ type: 'error', text: 'Usage: /resume' })
    expect(pauses()).toEqual([])
    expect(completeCommandLine(commands, '/pause a')).toEqual(['all'])
    expect(completeCommandLine(commands, '/pause x')).toEqual([])
  })
})
