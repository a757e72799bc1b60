/** Checks whether a Redis can be used, and keeps the data that it has accepted. The checks read its version, its role and its settings. */
import type { Redis } from 'ioredis'
import { AgentTasksError } from '../errors.js'
import { describeFailure } from '../protocol/outcomes.js'

export interface RedisFinding {
  readonly check: 'access' | 'version' | 'role' | 'mode' | 'maxmemory-policy' | 'appendonly' | 'appendfsync'
  /** `lossy`: accepted tasks can be lost, as `detail` explains. `note`: for information. `unusable`: this package cannot use the Redis. */
  readonly state: 'ok' | 'note' | 'lossy' | 'unusable'
  /** The result as a sentence. If `state` is `ok`, only the version or the value of the setting. */
  readonly detail: string
}

/** The oldest version of Redis that has all commands that this package uses. Valkey reports itself as Redis 7.2. */
const LEAST_VERSION = [6, 2] as const

/** The errors of Redis for a missing or wrong password, and for a user without permission for a command. */
const REFUSAL = /^(?:NOAUTH|WRONGPASS|NOPERM)\b/

/** Checks a connected Redis. Rejects when Redis does not answer. */
export async function checkRedis(redis: Redis): Promise<RedisFinding[]> {
  let info: string
  try {
    info = await redis.info()
  } catch (error) {
    const detail = describeFailure(error)
    if (!REFUSAL.test(detail)) throw error
    return [{ check: 'access', state: 'unusable', detail: `Redis refuses this connection: ${detail}` }]
  }
  // A hosted Redis may refuse `CONFIG`. Then the check of `appendfsync` is left out.
  const fsync = await redis.config('GET', 'appendfsync').catch(() => [])
  return judgeRedis(info, Array.isArray(fsync) ? String(fsync[1] ?? '') : '')
}

/** The lines that this process has logged. Their number stays small, because a process connects to few Redis servers. */
const logged = new Set<string>()

/**
 * Checks a Redis before it is used, and logs each risk once for each process.
 * @throws AgentTasksError with the code `REDIS_UNUSABLE` when Redis refuses the connection, is too old, a replica or a node of a Redis Cluster
 */
export async function reportFindings(
  redis: Redis,
  { name, log }: { readonly name: string; readonly log: (line: string) => void },
): Promise<void> {
  for (const { check, state, detail } of await checkRedis(redis)) {
    if (state === 'unusable') throw new AgentTasksError('REDIS_UNUSABLE', `Redis at ${name}: ${detail}`)
    if (state === 'ok') continue
    const line = `Redis at ${name}, ${check}: ${detail}`
    // A process may open several connections to the same Redis. The risk is logged only for the first one.
    if (!logged.has(line)) log(line)
    logged.add(line)
  }
}

/**
 * Evaluates the version and the settings of a Redis.
 * @param info the reply to `INFO`
 * @param fsync the setting `appendfsync`; empty when it is unknown
 */
export function judgeRedis(info: string, fsync: string): RedisFinding[] {
  const read = (field: string): string | undefined => new RegExp(`^${field}:(.*?)\\r?$`, 'm').exec(info)?.[1]
  return [
    judgeVersion(read('redis_version') ?? '', read('valkey_version')),
    ...judgeRole(read('role'), `${read('master_host') ?? ''}:${read('master_port') ?? ''}`),
    ...judgeMode(read('redis_mode') ?? read('server_mode')),
    judgePolicy(read('maxmemory_policy')),
    ...judgeFile(read('aof_enabled'), fsync),
  ]
}

function judgeVersion(version: string, valkey: string | undefined): RedisFinding {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const isNewEnough = major > LEAST_VERSION[0] || (major === LEAST_VERSION[0] && minor >= LEAST_VERSION[1])
  const name = valkey === undefined ? `Redis ${version}` : `Valkey ${valkey}`
  return isNewEnough
    ? { check: 'version', state: 'ok', detail: name }
    : {
        check: 'version',
        state: 'unusable',
        detail: `${name} is too old. Use version ${LEAST_VERSION.join('.')} or newer.`,
      }
}

function judgeRole(role: string | undefined, primary: string): RedisFinding[] {
  if (role !== 'slave') return []
  const detail = `This Redis is a replica of ${primary}, and a replica accepts no tasks. Connect to its primary.`
  return [{ check: 'role', state: 'unusable', detail }]
}

function judgeMode(mode: string | undefined): RedisFinding[] {
  if (mode !== 'cluster') return []
  const detail = 'This Redis is a node of a Redis Cluster, which is not supported. Use a Redis with cluster-enabled no.'
  return [{ check: 'mode', state: 'unusable', detail }]
}

function judgePolicy(policy: string | undefined): RedisFinding {
  const check = 'maxmemory-policy'
  if (policy === undefined) {
    return { check, state: 'note', detail: 'The setting cannot be read. It must be noeviction.' }
  }
  return policy === 'noeviction'
    ? { check, state: 'ok', detail: policy }
    : {
        check,
        state: 'lossy',
        detail: `The policy is ${policy}: when the memory of Redis is full, it deletes tasks that it has accepted. Set maxmemory-policy noeviction.`,
      }
}

function judgeFile(enabled: string | undefined, fsync: string): RedisFinding[] {
  const check = 'appendonly'
  if (enabled === undefined) return [{ check, state: 'note', detail: 'The setting cannot be read. It must be yes.' }]
  if (enabled !== '1') {
    const detail =
      'There is no append-only file: when Redis ends, it loses all tasks since its last snapshot. Set appendonly yes.'
    return [{ check, state: 'lossy', detail }]
  }
  return [{ check, state: 'ok', detail: 'yes' }, ...judgeSync(fsync)]
}

function judgeSync(fsync: string): RedisFinding[] {
  const check = 'appendfsync'
  if (fsync === 'always') return [{ check, state: 'ok', detail: fsync }]
  if (fsync === 'everysec') {
    const detail =
      'everysec: the writes of up to two seconds are lost when the machine fails, or when Redis is killed while its disk is busy.'
    return [{ check, state: 'note', detail }]
  }
  if (fsync === '') return []
  const detail = `The setting is ${fsync}: when the machine fails, everything that the operating system has not yet written to disk is lost. Set appendfsync everysec or always.`
  return [{ check, state: 'lossy', detail }]
}
