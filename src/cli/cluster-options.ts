/** The options with which `serve` joins a cluster of servers, and those with which `mcp` runs commands in a cluster. */
import type { ClusterTasks } from '../command-tasks/cluster-tasks.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { InvalidInputError } from '../errors.js'
import type { TaskCluster } from '../server/backend/task-backend.js'
import type { AgentConfig } from '../protocol/agent-config.js'
import { loadBullmq } from './load-bullmq.js'
import { CONNECTION_VARIABLE, redisAccess } from './worker-subagents.js'

export interface ClusterFlags {
  readonly connection?: string
  readonly cluster?: string
  readonly publicUrl?: string
  readonly redisWithoutPassword?: boolean
}

/**
 * Returns the cluster to join; undefined if neither `--connection` nor the environment names a Redis.
 * @throws INVALID_INPUT for an option that needs `--connection`
 * @throws AgentTasksError `PACKAGES_MISSING` when the packages for clusters are not installed
 */
export async function readCluster(
  { connection: given, cluster: name, publicUrl, redisWithoutPassword }: ClusterFlags,
  env: Readonly<Record<string, string | undefined>>,
): Promise<TaskCluster | undefined> {
  const connection =
    given ?? [env['TASKS_CONNECTION'], env[CONNECTION_VARIABLE]].find((url) => url !== undefined && url !== '')
  if (connection === undefined) {
    const flags = { '--cluster': name, '--public-url': publicUrl, '--redis-without-password': redisWithoutPassword }
    for (const [flag, value] of Object.entries(flags)) {
      if (value !== undefined) throw new InvalidInputError(flag, value, 'no such option without --connection')
    }
    return undefined
  }
  const { bullmqCluster } = await loadBullmq(() => import('../bullmq/index.js'))
  return bullmqCluster({
    connection,
    ...omitUndefined({ name, publicUrl }),
    ...(redisWithoutPassword === true && { allowNoPassword: true }),
  })
}

export interface ClusterUse {
  readonly connection?: string | undefined
  /** The name of the cluster; `true` for the default name. */
  readonly cluster?: string | boolean | undefined
}

/**
 * Returns the command tasks of the cluster. Returns undefined without `--connection` and `--cluster`: if only the configuration or the environment names
 * a Redis, it is used for subagents on workers.
 * @throws INVALID_SETTING when no Redis is named
 * @throws INVALID_INPUT for an invalid option
 * @throws AgentTasksError `PACKAGES_MISSING` when the packages for clusters are not installed
 */
export async function readClusterTasks(
  { connection, cluster }: ClusterUse,
  config: AgentConfig,
  env: Readonly<Record<string, string | undefined>>,
  log: (line: string) => void,
): Promise<ClusterTasks | undefined> {
  if (connection === undefined && (cluster === undefined || cluster === false)) return undefined
  const access = redisAccess(config, env, connection, '--cluster is given')
  const { bullmqCluster } = await loadBullmq(() => import('../bullmq/index.js'))
  return bullmqCluster({ ...access, ...(typeof cluster === 'string' && { name: cluster }) }).tasks({ log })
}
