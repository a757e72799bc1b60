/** What a model reads about the tools before it calls one: the subagents, and the deadlines that apply. */
import { expect, it } from 'vitest'
import { z } from 'zod'
import { createAgentTasks } from '../../../src/host/agent-tasks.js'
import { InstanceManager } from '../../../src/command-tasks/instances/instance-manager.js'
import { TaskManager } from '../../../src/command-tasks/task-manager.js'

const timeoutText = (schema: z.ZodObject): unknown =>
  (z.toJSONSchema(schema).properties as Record<string, { description?: string }>)['timeout_seconds']?.description

it('the description of task lists the subagents with what they are good at, as they are now', () => {
  const subagents: Record<string, { description?: string; run: () => Promise<object> } | (() => Promise<object>)> = {
    shout: { description: 'Prints the goal\n  in capitals.', run: () => Promise.resolve({}) },
    plain: () => Promise.resolve({}),
  }
  const { tools } = createAgentTasks({ subagents: subagents as never })
  expect(tools.task.description).toMatch(
    /automatically\.\nSubagents:\n- shout: Prints the goal in capitals\.\n- plain$/,
  )
  subagents['late'] = { description: 'x'.repeat(1000), run: () => Promise.resolve({}) }
  expect(tools.task.description).toMatch(/\n- late: x{300}\.\.\.$/)
  for (let index = 0; index < 1000; index += 1) subagents[`agent-${index}`] = () => Promise.resolve({})
  expect(tools.task.description.length).toBeLessThan(5000)
})

it('without a list, an unknown subagent is not said to be the only kind', async () => {
  const { tools } = createAgentTasks({ resolveSubagent: () => undefined })
  expect(tools.task.description).not.toContain('Subagents')
  const { error } = await tools.task.execute({ subagent_name: 'x', goal_prompt: 'y' })
  expect(error?.message).toBe('params.subagent_name: got "x", expected the name of a subagent.')
})

it.each([
  [{}, 'Default 900. At most 1800.'],
  [{ 'task-max-timeout-seconds': -1 }, 'Default 900. -1 for no deadline.'],
  [{ 'task-default-timeout-seconds': -1 }, 'Default 1800. At most 1800.'],
  [{ 'task-default-timeout-seconds': -1, 'task-max-timeout-seconds': -1 }, 'Default: no deadline. -1 for no deadline.'],
])('timeout_seconds names the default and the limit: %j', async (settings, text) => {
  const taskManager = new TaskManager({ instances: new InstanceManager() })
  const { tools } = createAgentTasks({ settings, taskManager })
  const whole = `The task is stopped after this many seconds. ${text}`
  expect(timeoutText(tools.task.inputSchema)).toBe(whole)
  expect(timeoutText(tools.submit_commands.inputSchema)).toBe(whole)
  await taskManager.dispose()
})

it('timeout_seconds follows a change of the settings', () => {
  const { tools, setSetting } = createAgentTasks()
  setSetting('task-max-timeout-seconds', 60)
  expect(timeoutText(tools.task.inputSchema)).toBe(
    'The task is stopped after this many seconds. Default 60. At most 60.',
  )
})

it('a task in place that is cancelled by a shutdown says so', async () => {
  const tasks = createAgentTasks({ subagents: { wait: () => new Promise<never>(() => undefined) }, graceMs: 0 })
  const call = tasks.tools.task.execute({ subagent_name: 'wait', goal_prompt: 'x' })
  // The subagent is looked up first.
  for (let tick = 0; tick < 20; tick += 1) await Promise.resolve()
  await tasks.dispose()
  const { error, llmContent } = await call
  expect(error?.message).toMatch(/^Task wait-\S+ was cancelled, because the task manager was disposed\.$/)
  expect(llmContent).toContain('because the task manager was disposed')
})

it('the list shows the goals', async () => {
  const tasks = createAgentTasks({ subagents: { wait: () => new Promise<never>(() => undefined) }, graceMs: 0 })
  await tasks.tools.task.execute({ subagent_name: 'wait', goal_prompt: `find\n out ${'x'.repeat(100)}`, async: true })
  const { llmContent } = await tasks.tools.check_async_tasks.execute({})
  expect(llmContent).toMatch(/ wait - running \(0s\) - find out x{51}\.\.\.$/)
  const waited = await tasks.tools.wait_for_async_tasks.execute({ timeout_seconds: 0 })
  expect(waited.llmContent).toMatch(/\] wait \(0s\) - find out x{51}\.\.\./)
  await tasks.dispose()
})
