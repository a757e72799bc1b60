/**
 * Checks the address of Redis, and opens connections to it. A client that can write to Redis can start programs on the workers. So Redis must have a
 * password, or listen only on this machine.
 */
import { Redis, type RedisOptions } from 'ioredis'
import { AgentTasksError, InvalidInputError } from '../errors.js'
import { describeFailure } from '../protocol/outcomes.js'
import { aBoolean, aFunction, custom, required, type OptionTypes } from '../protocol/option-checks.js'
import { isLoopback } from '../protocol/server-config.js'
import { failureLog } from './failure-log.js'

/** The longest wait between two attempts to connect, in ms. */
const MAX_RECONNECT_MS = 1000

/** The maximum wait before the next attempt while Redis loads its data, in ms. The wait that Redis itself proposes can be many seconds too long. */
const LOADING_AGAIN_MS = 500

/** How to reach Redis. */
export interface RedisAccess {
  /** The URL (`redis://` or `rediss://`), or options of ioredis. */
  readonly connection: string | RedisOptions
  /**
   * Whether to accept a Redis that has no password and that other machines can reach. Any of these machines can then run programs on the workers.
   * With false, only a Redis on a loopback address may have no password. Default false.
   */
  readonly allowNoPassword?: boolean
  /** Receives one line each time a connection is lost or restored. Default: `console.error`. */
  readonly log?: (line: string) => void
}

const aConnection = custom(
  "'redis://…', 'rediss://…' or options of ioredis",
  (value) => typeof value === 'string' || (typeof value === 'object' && value !== null),
  { isSecret: true },
)

/** The option types of `RedisAccess`. Functions that take these options spread them into their own tables of option types. */
export const redisAccessTypes: OptionTypes<RedisAccess> = {
  connection: required(aConnection),
  allowNoPassword: aBoolean,
  log: aFunction,
}

export interface RedisAddress {
  readonly options: RedisOptions
  /** Host and port, the path of the Unix socket, or the name of the sentinel group. Never contains the password. */
  readonly name: string
}

const FIELD = 'options.connection'

/** Replaces the URL in error messages, because the URL contains the password. */
const HIDDEN = '(not shown)'

/**
 * Checks an address of Redis.
 * @throws INVALID_INPUT for an invalid address
 * @throws INVALID_INPUT for a Redis that has no password and that other machines can reach
 */
export function toRedisAddress({ connection, allowNoPassword = false }: RedisAccess): RedisAddress {
  const options = typeof connection === 'string' ? optionsOfUrl(connection) : connection
  const { port, path, password, sentinels, keyPrefix } = options
  const host = hostOf(options)
  if (keyPrefix !== undefined && keyPrefix !== '') {
    throw new InvalidInputError(
      `${FIELD}.keyPrefix`,
      keyPrefix,
      "no key prefix of ioredis, because BullMQ does not support it (set the option 'prefix' instead)",
    )
  }
  // ioredis treats undefined, null and the empty string alike: the option is not set.
  const isLocal = !sentinels && (Boolean(path) || isLoopback(host))
  if (!isLocal && !allowNoPassword && !password) {
    const expected =
      'a Redis with a password or on a loopback address, because every client of this Redis can run programs on the workers ' +
      "(to accept a Redis without a password, set the option 'allowNoPassword' or, on the command line of serve, '--redis-without-password')"
    throw new InvalidInputError(FIELD, sentinels ? 'sentinels' : host, expected)
  }
  const name = sentinels ? `sentinel ${options.name ?? ''}` : path || `${host}:${port ?? 6379}`
  return { options, name }
}

/** The host that ioredis connects to. A host in the TLS options replaces the host of the connection. */
function hostOf({ host, tls }: RedisOptions): string {
  return (tls && 'host' in tls ? tls.host : undefined) || host || 'localhost'
}

function optionsOfUrl(text: string): RedisOptions {
  const refuse = (expected: string): never => {
    throw new InvalidInputError(FIELD, HIDDEN, expected)
  }
  const expected =
    'redis://[[user]:password@]host[:port][/database], or the same with rediss:// for TLS ' +
    '(in user and password, write / as %2F, # as %23, ? as %3F, @ as %40, % as %25)'
  const url = URL.canParse(text) ? new URL(text) : refuse(expected)
  const { protocol, hostname, port, username, password, pathname, search, hash } = url
  if (!['redis:', 'rediss:'].includes(protocol) || hostname === '' || search !== '' || hash !== '') refuse(expected)
  const database = pathname.replace(/^\//, '')
  if (!/^\d*$/.test(database)) refuse(`${expected}, with a number as the database`)
  const decoded = (part: string): string => {
    try {
      return decodeURIComponent(part)
    } catch {
      return refuse(expected)
    }
  }
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? 6379 : Number(port),
    ...(username !== '' && { username: decoded(username) }),
    ...(password !== '' && { password: decoded(password) }),
    ...(database !== '' && { db: Number(database) }),
    ...(protocol === 'rediss:' && { tls: {} }),
  }
}

/**
 * How long live clients may take to reconnect after an outage of Redis, in ms. During the outage their locks may have expired, although the clients
 * live.
 */
const OTHERS_BACK_MS = 2 * MAX_RECONNECT_MS

/** Returns a function that reports whether Redis has been connected for long enough that all live clients have reconnected, too. */
export function othersAreBack(redis: Redis): () => boolean {
  let readyAt = performance.now()
  redis.on('ready', () => (readyAt = performance.now()))
  return () => redis.status === 'ready' && performance.now() - readyAt >= OTHERS_BACK_MS
}

/** The wait before the next attempt to connect, in ms. */
export const reconnectDelay = (attempt: number): number =>
  Math.min(50 * 2 ** Math.min(attempt - 1, 10), MAX_RECONNECT_MS)

/** The error of a Redis that has become a replica. In an error of a script the code is not always the first word. */
const READ_ONLY = /\bREADONLY\b/

/** A Redis that has refused no write for this time, in ms, counts as a primary again. */
const PRIMARY_MS = 10_000

/**
 * Returns options of ioredis that leave a Redis when it has become a replica. After a failover, an open connection may still lead to the old primary,
 * which refuses all writes from then on; a new connection leads to the new primary.
 * @param waits whether the refused command is sent again on the new connection
 * @param onRefused called with each refused write
 */
export function leaveReplica(waits: boolean, onRefused: (error: Error) => void) {
  let refused = 0
  let refusedAt = -Infinity
  const isReplica = (): boolean => performance.now() - refusedAt <= PRIMARY_MS
  return {
    reconnectOnError: (error: Error): false | 1 | 2 => {
      if (!READ_ONLY.test(error.message)) return false
      refused = isReplica() ? refused + 1 : 1
      refusedAt = performance.now()
      onRefused(error)
      return waits ? 2 : 1
    },
    // The new connection may lead to the replica again, until the failover is complete.
    retryStrategy: (attempt: number): number => reconnectDelay(Math.max(attempt, isReplica() ? refused : 0)),
  }
}

export interface ConnectionUse {
  /** The name of the connection in the log and in Redis' list of clients. */
  readonly use: string
  readonly log: (line: string) => void
  /**
   * Whether commands wait while Redis cannot be reached. With false they fail at once, so that no command is sent after its caller gave up. Default
   * true.
   */
  readonly waits?: boolean
}

/**
 * Opens a connection that reconnects until `disconnect` is called, also when Redis has become a replica. It logs one line when Redis becomes unreachable,
 * and one line when Redis is back.
 */
export function openConnection({ options, name }: RedisAddress, { use, log, waits = true }: ConnectionUse): Redis {
  const logFailure = failureLog(log)
  const redis = new Redis({
    connectionName: `agent-tasks ${use}`.replaceAll(' ', '-'),
    ...options,
    lazyConnect: false,
    // With 0, commands that Redis has not answered fail as soon as the connection is lost.
    maxRetriesPerRequest: waits ? null : 0,
    ...leaveReplica(waits, (error) =>
      logFailure('replica', `Redis at ${name} (${use}) accepts no writes, and is connected again`, error),
    ),
    maxLoadingRetryTime: LOADING_AGAIN_MS,
    ...(!waits && { enableOfflineQueue: false, autoResendUnfulfilledCommands: false }),
  })
  let isAway = false
  redis.on('error', (error: unknown) => {
    if (isAway) return
    isAway = true
    log(`Redis at ${name} (${use}): ${describeFailure(error).replace(/\.$/, '')}. Reconnecting until Redis is back.`)
  })
  redis.on('ready', () => {
    if (isAway) log(`Redis at ${name} (${use}) is back.`)
    isAway = false
  })
  return redis
}

/** Connects once, without reconnecting. Rejects with `REDIS_UNUSABLE` when Redis does not answer within `timeoutMs`. */
export async function connectBriefly(access: RedisAccess, timeoutMs: number): Promise<Redis> {
  const { options, name } = toRedisAddress(access)
  const redis = new Redis({
    ...options,
    lazyConnect: true,
    connectTimeout: timeoutMs,
    commandTimeout: timeoutMs,
    retryStrategy: () => null,
  })
  let cause: unknown
  redis.on('error', (error: unknown) => (cause = error))
  try {
    await redis.connect()
    return redis
  } catch (error) {
    redis.disconnect()
    throw new AgentTasksError('REDIS_UNUSABLE', `Redis at ${name}: ${describeFailure(cause ?? error)}`, {
      cause: error,
    })
  }
}
