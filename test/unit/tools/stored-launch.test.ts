/** Tools with a store: a model is told of a launch or a submission when it is stored, and that it failed when it is not. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { TaskManager } from '../../../src/command-tasks/task-manager.js'
import { InstanceManager } from '../../../src/command-tasks/instances/instance-manager.js'
import { localInstance } from '../../../src/command-tasks/instances/local-instance.js'
import { instanceTool } from '../../../src/protocol/instance-tools.js'
import { createRunCommandTool } from '../../../src/tools/run-command.js'
import { createSubmitCommandsTool } from '../../../src/tools/submit-commands.js'
import { createTaskTool } from '../../../src/tools/task-tool.js'
import { breakableStore } from '../../support/breakable-store.js'
import { setUpHost, settle } from './tool-host.js'

function setUp() {
  const { store, state, memory } = breakableStore()
  const host = setUpHost({ store, maxAsyncTasks: 1 })
  const { manager, clock, onError, getAsyncTaskManager } = host
  const instances = new InstanceManager({ clock })
  const taskManager = new TaskManager({ instances, clock, onError, store })
  const act = vi.fn(() => 'done')
  instances.connect(localInstance({ id: 'calc', tools: [instanceTool({ name: 'act', execute: act })], clock }))
  const run = vi.fn(() => ({ final_message: 'done' }))
  const task = createTaskTool({ getAsyncTaskManager, resolveSubagent: () => run })
  const commands = createSubmitCommandsTool({ getAsyncTaskManager, taskManager })
  const program = createRunCommandTool({ getAsyncTaskManager, commands: { allow: ['true'] } })
  onTestFinished(async () => {
    await Promise.all([manager.dispose(), taskManager.dispose(), instances.dispose()])
    expect(clock.pending).toBe(0)
  })
  const calls = {
    task: () => task.execute({ subagent_name: 'agent', goal_prompt: 'look', async: true }),
    run_command: () => program.execute({ command: 'true', async: true }),
    submit_commands: () => commands.execute({ task_name: 'it', commands: [{ tool_name: 'act', args: {} }] }),
    'submit_commands in place': () =>
      commands.execute({ task_name: 'it', commands: [{ tool_name: 'act', args: {} }], async: false }),
    'task in place': () => task.execute({ subagent_name: 'agent', goal_prompt: 'look' }),
  }
  return { manager, taskManager, memory, state, act, run, calls }
}

describe.each(['task', 'run_command', 'submit_commands', 'submit_commands in place', 'task in place'] as const)(
  '%s',
  (name) => {
    it('K1, K12: fails when what it starts cannot be stored; nothing runs, nothing is owed, and its slot is free', async () => {
      const { manager, taskManager, memory, state, act, run, calls } = setUp()
      state.isBroken = true
      const result = await calls[name]()
      expect(result.error?.message).toMatch(/could not be stored/)
      await settle()
      expect([act.mock.calls, run.mock.calls, taskManager.listTasks(), manager.getActiveTasks()]).toEqual([
        [],
        [],
        [],
        [],
      ])
      expect(
        [taskManager.progress$, taskManager.complete$].map((stream) => 'observed' in stream && stream.observed),
      ).toEqual([false, false])
      state.isBroken = false
      expect([manager.canLaunchAsync().allowed, manager.getPendingNotifications()]).toEqual([true, []])
      expect((await calls[name]()).error).toBeUndefined()
      expect(memory.contents().tasks).not.toEqual([])
    })
  },
)

it('K1: a launch is in the store when the model learns of it', async () => {
  const { calls, memory } = setUp()
  const { metadata } = await calls.task()
  expect(memory.contents().tasks).toMatchObject([{ id: metadata?.['agentId'] }])
})
