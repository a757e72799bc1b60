/** The instances that clients can use, with their tools: the instances of the configuration, or those of a cluster. */
import type { TaskManager } from '../command-tasks/task-manager.js'
import type { ClusterTasks } from '../command-tasks/cluster-tasks.js'
import type { ToolDescription } from '../command-tasks/instances/instance.js'
import type { InstanceSource } from '../tools/instance-source.js'
import type { InstancePool } from './instance-pool.js'

/** How long `list_instances` waits for instances that are being connected, in ms. */
const LIST_MS = 5000

export const instancesOfPool = (pool: InstancePool, tasks?: TaskManager): InstanceSource => ({
  none: 'No instances are configured',
  ready: (id) => pool.ready(id),
  settle: () => pool.connectAll(LIST_MS),
  list: () =>
    Promise.resolve(
      pool.list().map((pooled) => {
        const instance = pooled.state === 'connected' ? pool.instances.get(pooled.id)?.instance : undefined
        const isPaused = tasks?.pausedInstances.has(pooled.id) === true
        return { ...pooled, ...(isPaused && { isPaused }), ...(instance && { listTools: () => instance.listTools() }) }
      }),
    ),
})

export const instancesOfCluster = (tasks: ClusterTasks): InstanceSource => ({
  none: 'The cluster has no instances',
  // The servers of the cluster connect the instances.
  ready: () => Promise.resolve(undefined),
  settle: () => Promise.resolve(),
  list: async () =>
    (await tasks.listInstances()).map(({ id, isConnected, tools }) =>
      isConnected ? { id, state: 'connected', listTools: () => toolsOrFailure(tools) } : { id, state: 'disconnected' },
    ),
})

const toolsOrFailure = (tools: readonly ToolDescription[] | undefined): Promise<readonly ToolDescription[]> =>
  tools === undefined ? Promise.reject(new Error('the instance has not listed its tools yet')) : Promise.resolve(tools)
