/** The options of `serve` that make it one of several servers. */
import { InvalidInputError } from '../errors.js'
import type { TaskCluster } from '../server/task-backend.js'

/** What the command line says about the cluster. */
export interface ClusterFlags {
  readonly connection?: string
  readonly cluster?: string
  readonly publicUrl?: string
  readonly redisWithoutPassword?: boolean
}

/**
 * The cluster to join; undefined when the server is alone.
 * @throws InvalidInputError for an option that needs `--connection`, and when the packages are missing
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
  const { bullmqCluster } = await loadCluster()
  return bullmqCluster({
    connection,
    ...(name !== undefined && { name }),
    ...(publicUrl !== undefined && { publicUrl }),
    ...(redisWithoutPassword === true && { allowNoPassword: true }),
  })
}

/** Loaded on demand: the packages that it needs are optional. */
async function loadCluster() {
  try {
    return await import('../bullmq/index.js')
  } catch (error) {
    const { code } = error as { code?: string }
    if (code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new InvalidInputError(
      '--connection',
      '(given)',
      'the packages bullmq and ioredis: npm install bullmq ioredis',
    )
  }
}
