/** The public types of `agent-tasks/page`. */
import { expectTypeOf } from 'vitest'
import { AsyncTaskManager, createAgentTasks } from 'agent-tasks'
import { createTaskPage, type TaskPage } from 'agent-tasks/page'
import type { TaskManager } from 'agent-tasks/server'
import type { TaskPageOptions } from '../../src/page/create-task-page.js'

expectTypeOf(createTaskPage).returns.resolves.toEqualTypeOf<TaskPage>()
expectTypeOf<TaskPage['url']>().toEqualTypeOf<string>()

export async function use(taskManager: TaskManager): Promise<void> {
  await createTaskPage({ tasks: createAgentTasks() })
  await createTaskPage({ tasks: createAgentTasks({ taskManager }), taskManager, port: 0, token: '0123456789abcdef' })
  await using page = await createTaskPage({ tasks: new AsyncTaskManager(), maxTasks: 10, maxBytes: 1024 })
  const options: TaskPageOptions = { taskManager, restUrl: page.url, host: '127.0.0.1', hints: 'mcp' }
  await createTaskPage(options)
  // @ts-expect-error neither tasks nor a task manager
  await createTaskPage()
  // @ts-expect-error an unknown option
  await createTaskPage({ taskManager, ports: 1 })
  // @ts-expect-error not the tasks of an agent host
  await createTaskPage({ tasks: {} })
}
