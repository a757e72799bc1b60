/** A node of a cluster as a separate process. The variable `NODE_SETUP` has its options. It prints its URLs in its first line. SIGTERM ends it. */
import { bullmqCluster } from 'agent-tasks/bullmq'
import { startTaskServer, localInstance, type TaskServerOptions } from 'agent-tasks/server'
import { disposeOnSignals } from 'agent-tasks'
import type { BullmqClusterOptions } from '../../../src/bullmq/cluster/bullmq-cluster.js'

const setup = JSON.parse(process.env['NODE_SETUP'] ?? '{}') as {
  cluster: BullmqClusterOptions
  server: TaskServerOptions
  /** The id of an instance of this process, with the tool `echo`. */
  local?: string
}

const server = await startTaskServer({
  ...setup.server,
  port: 0,
  env: {},
  cluster: bullmqCluster(setup.cluster),
  tasks: { wsPort: 0, ...setup.server.tasks },
  instances:
    setup.local === undefined
      ? []
      : [localInstance({ id: setup.local, tools: [{ name: 'echo', execute: (args: unknown) => args }] })],
})
disposeOnSignals(() => server.close(), { exitCode: 0, limitMs: Infinity })
console.log(JSON.stringify({ httpUrl: server.httpUrl, wsUrl: server.wsUrl }))
