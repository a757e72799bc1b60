/** A host whose `getAsyncTaskManager` returns no manager: the first call names it. */
import { expect, it } from 'vitest'
import { runCommandLine } from '../../../src/index.js'
import {
  createCheckAsyncTasksTool,
  createRunCommandTool,
  createSendToTaskTool,
  createSubmitCommandsTool,
  createTaskTool,
  createWaitForAsyncTasksTool,
} from '../../../src/tools/index.js'
import { InstanceManager, TaskManager } from '../../../src/server/index.js'
import { createTaskCommands } from '../../../src/parts.js'

const host = { getAsyncTaskManager: () => undefined as never }
const expected = 'options.getAsyncTaskManager(): got undefined, expected an AsyncTaskManager.'

it('is named by every tool', async () => {
  const taskManager = new TaskManager({ instances: new InstanceManager() })
  const results = await Promise.all([
    createTaskTool({ ...host, resolveSubagent: () => () => 'x' }).execute({
      subagent_name: 'a',
      goal_prompt: 'g',
      async: true,
    }),
    createCheckAsyncTasksTool(host).execute({}),
    createWaitForAsyncTasksTool(host).execute({}),
    createSendToTaskTool(host).execute({ task_id: 'a', message: 'm' }),
    createRunCommandTool({ ...host, commands: { allow: ['node'] } }).execute({ command: 'node' }),
    createSubmitCommandsTool({ ...host, taskManager }).execute({ task_name: 't', commands: [{ tool_name: 'x' }] }),
  ])
  expect(results.map(({ error }) => error?.message.replace(/^\w+ failed: /, ''))).toEqual(results.map(() => expected))
  expect(taskManager.listTasks()).toEqual([])
  await taskManager.dispose()
})

it('is named by the slash commands', async () => {
  expect(() => createTaskTool({ resolveSubagent: () => undefined } as never)).toThrow(
    'options.getAsyncTaskManager: got undefined',
  )
  const commands = createTaskCommands(host)
  expect(runCommandLine(commands, '/tasks')?.text).toContain(expected)
})
