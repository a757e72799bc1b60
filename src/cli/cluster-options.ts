/** The options of `serve` that make it one of several servers. */
import { InvalidInputError } from '../errors.js'
import type { TaskCluster } from '../server/task-backend.js'
import { loadBullmq } from './load-bullmq.js'

/** What the command line says about the cluster. */
export interface ClusterFlags {
  readonly connection?: string
  readonly cluster?: string
  readonly publicUrl?: string
  readonly redisWithoutPassword?: boolean
}

/**
 * The cluster to join; undefined when the server is alone.
 * @throws InvalidInputError for an option that needs `--connection`, AgentTasksError `PACKAGES_MISSING`
 */
export async function readCluster(
  { connection: given, cluster: name, publicUrl, redisWithoutPassword }: ClusterFlags,
  env: Readonly<Record<string, string | undefined>>,
): Promise<TaskCluster | undefined> {
  const connection = given ?? (env['TASKS_CONNECTION'] === '' ? undefined : env['TASKS_CONNECTION'])
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
    ...(name !== undefined && { name }),
    ...(publicUrl !== undefined && { publicUrl }),
    ...(redisWithoutPassword === true && { allowNoPassword: true }),
  })
}
