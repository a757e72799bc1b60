/** Without subagents, the tool `task` names the file that the user can add them to. */
import { expect, it } from 'vitest'
import { createBackend } from '../../../src/mcp/backend.js'
import { createTaskTools } from '../../../src/mcp/task-tools.js'

it.each([
  ['/home/me/agent-tasks.config.json', ' the user can add them to /home/me/agent-tasks.config.json.'],
  [undefined, ''],
])('with the file %s', async (configFile, where) => {
  const backend = createBackend({ ...(configFile !== undefined && { configFile }) })
  const [task] = createTaskTools(backend, 'main')
  const end = where === '' ? 'No subagents are configured.' : `No subagents are configured:${where}`
  expect(task?.description.split('\n').at(-1)).toBe(end)
  await backend.close()
})
