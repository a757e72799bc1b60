/** The contract of the types of `agent-tasks/bullmq`. */
import { createAgentTasks } from 'agent-tasks'
import { bullmqCluster, type ClusterTasks } from 'agent-tasks/bullmq'
import { startMcpStdioServer } from 'agent-tasks/mcp'
import { startTaskServer } from 'agent-tasks/server'
import { createSubmitCommandsTool, findCommandRunner } from 'agent-tasks/tools'
import type { RedisAccess } from '../../src/bullmq/connection.js'
import type { RedisFinding } from '../../src/bullmq/redis-checks.js'

const access: RedisAccess = {
  connection: 'redis://localhost',
  allowNoPassword: true,
  log: (line: string) => console.log(line),
}
const withOptions: RedisAccess = { connection: { host: 'localhost', port: 6379 } }
// @ts-expect-error where Redis is must be said
const nowhere: RedisAccess = {}
// @ts-expect-error a port alone is no connection
const port: RedisAccess = { connection: 6379 }
declare const finding: RedisFinding
const state: 'ok' | 'note' | 'lossy' | 'unusable' = finding.state
export const used = [access, withOptions, nowhere, port, state]

/** A cluster has the tool `submit_commands`, as a task manager has. */
export async function useCluster(): Promise<void> {
  const cluster = bullmqCluster({ connection: 'redis://localhost' })
  await startTaskServer({ cluster })
  const taskManager: ClusterTasks = cluster.tasks({ log: (line: string) => console.log(line) })
  const { tools, getAsyncTaskManager } = createAgentTasks({ taskManager })
  await tools.submit_commands.execute({ task_name: 'x', commands: [{ tool_name: 'y' }] })
  createSubmitCommandsTool({ getAsyncTaskManager, taskManager })
  startMcpStdioServer({ taskManager })
  const run = findCommandRunner(taskManager)('x')
  const submitted = await taskManager.submitTask({
    type: 'task_submit',
    task_name: 'x',
    task_intention: '',
    commands: [],
  })
  const id: string = 'taskId' in submitted ? submitted.taskId : submitted.code
  const { signal } = new AbortController()
  const ended = await taskManager.followTask(id, { signal, onProgress: ({ status }) => console.log(status, run) })
  const at: number | undefined = ended?.completedAt
  // @ts-expect-error a task of a cluster is not there at once
  const { name } = taskManager.getTask(id)
  await taskManager.close()
  console.log(at, name)
}
