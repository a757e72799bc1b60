/** The instances that clients can use, and their tools: those of the configuration, or of a cluster. */
import type { ClusterTasks } from '../command-tasks/cluster-tasks.js'
import type { ToolDescription } from '../instances/instance.js'
import type { InstancePool, PooledState } from './instance-pool.js'

export interface ListedInstance {
  readonly id: string
  readonly state: PooledState | 'disconnected'
  /** Why it failed. */
  readonly error?: string
  /** Undefined when it is not connected. */
  readonly listTools?: (() => Promise<readonly ToolDescription[]>) | undefined
}

export interface InstanceSource {
  /** What is said when there are none. */
  readonly none: string
  /** Resolves when an instance, or without an id any of them, has connected or failed: with why none has. Never rejects. */
  ready(id?: string): Promise<string | undefined>
  /** Resolves when all have connected or failed, or after a short time. Never rejects. */
  settle(): Promise<void>
  list(): Promise<readonly ListedInstance[]>
}

/** How long a list waits for instances that are being connected, in ms. */
const LIST_MS = 5000

export const instancesOfPool = (pool: InstancePool): InstanceSource => ({
  none: 'No instances are configured',
  ready: (id) => pool.ready(id),
  settle: () => pool.connectAll(LIST_MS),
  list: () =>
    Promise.resolve(
      pool.list().map((pooled) => {
        const instance = pooled.state === 'connected' ? pool.instances.get(pooled.id)?.instance : undefined
        return { ...pooled, ...(instance && { listTools: () => instance.listTools() }) }
      }),
    ),
})

export const instancesOfCluster = (tasks: ClusterTasks): InstanceSource => ({
  none: 'The cluster has no instances',
  // Its servers connect them.
  ready: () => Promise.resolve(undefined),
  settle: () => Promise.resolve(),
  list: async () =>
    (await tasks.listInstances()).map(({ id, isConnected, tools }) =>
      isConnected ? { id, state: 'connected', listTools: () => toolsOrFailure(tools) } : { id, state: 'disconnected' },
    ),
})

const toolsOrFailure = (tools: readonly ToolDescription[] | undefined): Promise<readonly ToolDescription[]> =>
  tools === undefined ? Promise.reject(new Error('it has not told them yet')) : Promise.resolve(tools)
