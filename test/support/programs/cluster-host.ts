/**
 * A host with a store, for tests that kill it. It runs commands on an instance of a cluster, and prints how its tasks end. Each line of its output is
 * JSON.
 */
import { bullmqCluster } from 'agent-tasks/bullmq'
import { createAgentTasks } from 'agent-tasks'
import { sqliteStore } from 'agent-tasks/store'

const [url = '', file = '', ...marks] = process.argv.slice(2)
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`)

const taskManager = bullmqCluster({ connection: url }).tasks({ log: (log) => say({ log }) })
const { tools } = createAgentTasks({ store: sqliteStore(file), maxAsyncTasks: -1, taskManager })
for (const mark of marks) {
  const commands = [{ tool_name: 'hold', intention: '', args: { mark, reports: 2 } }]
  const { metadata } = await tools.submit_commands.execute({ task_name: mark, instanceId: 'w', commands })
  say({ launched: mark, id: metadata?.['agentId'] })
}
