/** The subagents of a configuration that run on workers. The server that sends their tasks uses this file, and so does the worker that runs them. */
import { systemClock } from '../system/clock.js'
import { InvalidSettingError } from '../errors.js'
import { configuredSubagents } from '../mcp/configured-subagents.js'
import { configuredTerms, type AgentConfig } from '../protocol/agent-config.js'
import type { SubagentDefinition } from '../tools/subagents.js'
import { loadBullmq } from './load-bullmq.js'

/** The environment variable that contains the URL of the Redis. */
export const CONNECTION_VARIABLE = 'AGENT_TASKS_CONNECTION'

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Returns the URL of the Redis.
 * @param why what the Redis is needed for, for the error
 * @throws INVALID_SETTING when no URL is set
 */
export function redisAccess({ workers }: AgentConfig, env: Environment, option: string | undefined, why: string) {
  const connection = option ?? workers.connection ?? env[CONNECTION_VARIABLE]
  const { allowNoPassword } = workers
  if (connection !== undefined && connection !== '') return { connection, allowNoPassword }
  const expected = `the URL of a Redis, because ${why} (or --connection, or ${CONNECTION_VARIABLE})`
  throw new InvalidSettingError('workers.connection', undefined, expected)
}

/**
 * Returns the URL of the Redis for workers.
 * @throws INVALID_SETTING when no URL is set
 */
export const workersAccess = (config: AgentConfig, env: Environment, option?: string) =>
  redisAccess(config, env, option, 'a subagent runs on workers')

export async function loadRedisChecks() {
  const [{ connectBriefly }, { checkRedis }] = await loadBullmq(() =>
    Promise.all([import('../bullmq/connection.js'), import('../bullmq/redis-checks.js')]),
  )
  return { connectBriefly, checkRedis }
}

export async function sentSubagents(
  config: AgentConfig,
  env: Environment,
  log: (line: string) => void,
): Promise<Record<string, SubagentDefinition>> {
  const sent = config.subagents.filter(({ runsOn }) => runsOn === 'workers')
  if (sent.length === 0) return {}
  const { bullmqRunner } = await loadBullmq(() => import('../bullmq/bullmq-runner.js'))
  const access = { ...workersAccess(config, env), lockMs: config.workers.lockMs, log }
  return Object.fromEntries(
    sent.map(({ name, description, retry, stdin, ...subagent }) => [
      name,
      {
        ...bullmqRunner({ ...access, queue: name, takesMessages: stdin === 'messages' }),
        name,
        description,
        retry,
        ...configuredTerms(subagent),
      },
    ]),
  )
}

/**
 * Returns the subagents that a worker runs, by name.
 * @throws INVALID_SETTING when the configuration has no such subagent
 */
export function workerSubagents(config: AgentConfig, folder: string): Record<string, SubagentDefinition> {
  const subagents = config.subagents.filter(({ runsOn }) => runsOn === 'workers')
  if (subagents.length === 0) {
    throw new InvalidSettingError(
      'subagents',
      config.subagents.length,
      'at least one subagent with "runsOn": "workers"',
    )
  }
  return Object.fromEntries(
    configuredSubagents({ ...config, subagents }, { folder, projectFolder: process.cwd() }, systemClock),
  )
}
