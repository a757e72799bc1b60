/** Where Redis is, and the connections to it. Whoever can write to it can run programs on the workers, so it has a password or is on this machine. */
import { Redis, type RedisOptions } from 'ioredis'
import { AgentTasksError, InvalidInputError } from '../errors.js'
import { describeFailure } from '../protocol/outcomes.js'
import { aBoolean, aFunction, required, type OptionType, type OptionTypes } from '../protocol/option-checks.js'
import { isLoopback } from '../protocol/server-config.js'

/** The longest wait between two attempts to connect, in ms. */
const MAX_RECONNECT_MS = 1000

/** The longest wait, in ms, before a Redis that loads its data is asked again whether it has: its own estimate can be many seconds too long. */
const LOADING_AGAIN_MS = 500

/** How Redis is reached. */
export interface RedisAccess {
  /** Its URL (`redis://` or `rediss://`), or options of ioredis. */
  readonly connection: string | RedisOptions
  /**
   * Whether a Redis without a password may be used that other machines reach: any of them can then run programs on the workers. Default false:
   * only on a loopback address.
   */
  readonly allowNoPassword?: boolean
  /** Called with what happens to the connections, one line each. Default: `console.error`. */
  readonly log?: (line: string) => void
}

const aConnection: OptionType = {
  expected: "'redis://…', 'rediss://…' or options of ioredis",
  accepts: (value) => typeof value === 'string' || (typeof value === 'object' && value !== null),
  isSecret: true,
}

/** The types of these options, for the tables of functions that take them. */
export const redisAccessTypes: OptionTypes<RedisAccess> = {
  connection: required(aConnection),
  allowNoPassword: aBoolean,
  log: aFunction,
}

/** Where Redis is, checked. */
export interface RedisAddress {
  readonly options: RedisOptions
  /** Host and port, or the path of the socket; without the password. */
  readonly name: string
}

const FIELD = 'options.connection'

/** The password of a connection is never shown. */
const HIDDEN = '(not shown)'

/**
 * Checks where Redis is.
 * @throws InvalidInputError for what is no address of Redis, and for one without a password that other machines reach
 */
export function toRedisAddress({ connection, allowNoPassword = false }: RedisAccess): RedisAddress {
  const options = typeof connection === 'string' ? optionsOfUrl(connection) : connection
  const { port, path, password, sentinels, keyPrefix } = options
  const host = hostOf(options)
  if (keyPrefix !== undefined && keyPrefix !== '') {
    throw new InvalidInputError(
      `${FIELD}.keyPrefix`,
      keyPrefix,
      "none: BullMQ does not support it, use the option 'prefix'",
    )
  }
  // What ioredis takes for "not set": undefined, null and the empty text.
  const isLocal = !sentinels && (Boolean(path) || isLoopback(host))
  if (!isLocal && !allowNoPassword && !password) {
    const expected =
      'a Redis with a password, or one on a loopback address: who reaches it can run programs on the workers ' +
      "(the option 'allowNoPassword' accepts that, or '--redis-without-password' of serve)"
    throw new InvalidInputError(FIELD, sentinels ? 'sentinels' : host, expected)
  }
  const name = sentinels ? `sentinel ${options.name ?? ''}` : path || `${host}:${port ?? 6379}`
  return { options, name }
}

/** Where ioredis connects to: options of TLS replace those of the connection. */
function hostOf({ host, tls }: RedisOptions): string {
  return (tls && 'host' in tls ? tls.host : undefined) || host || 'localhost'
}

function optionsOfUrl(text: string): RedisOptions {
  const refuse = (expected: string): never => {
    throw new InvalidInputError(FIELD, HIDDEN, expected)
  }
  const expected =
    'redis://[[user]:password@]host[:port][/database], or the same with rediss:// for TLS ' +
    '(in the password, write / as %2F, # as %23, ? as %3F, @ as %40, % as %25)'
  const url = URL.canParse(text) ? new URL(text) : refuse(expected)
  const { protocol, hostname, port, username, password, pathname, search, hash } = url
  if (!['redis:', 'rediss:'].includes(protocol) || hostname === '' || search !== '' || hash !== '') refuse(expected)
  const database = pathname.replace(/^\//, '')
  if (!/^\d*$/.test(database)) refuse(`${expected}; the database is a number`)
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

/** When Redis was away, locks have ended whose holders live: they are back within this time, in ms. */
const OTHERS_BACK_MS = 2 * MAX_RECONNECT_MS

/** Tells whether all others that live have had the time to connect again, too. */
export function othersAreBack(redis: Redis): () => boolean {
  let readyAt = performance.now()
  redis.on('ready', () => (readyAt = performance.now()))
  return () => redis.status === 'ready' && performance.now() - readyAt >= OTHERS_BACK_MS
}

/** How long to wait before the next attempt to connect, in ms. */
export const reconnectDelay = (attempt: number): number =>
  Math.min(50 * 2 ** Math.min(attempt - 1, 10), MAX_RECONNECT_MS)

/** What a connection is for. */
export interface ConnectionUse {
  /** Names it in the log, and in the list of clients of Redis. */
  readonly use: string
  readonly log: (line: string) => void
  /**
   * Whether a command waits while Redis is away. Otherwise it fails at once, so that nothing is sent later than its sender knows. Default true.
   */
  readonly waits?: boolean
}

/** Opens a connection, which connects again by itself until it is closed (`disconnect`). It says once that Redis is away, and once that it is back. */
export function openConnection({ options, name }: RedisAddress, { use, log, waits = true }: ConnectionUse): Redis {
  const redis = new Redis({
    connectionName: `agent-tasks ${use}`.replaceAll(' ', '-'),
    ...options,
    lazyConnect: false,
    // With 0 what Redis has not answered fails when the connection is lost.
    maxRetriesPerRequest: waits ? null : 0,
    retryStrategy: reconnectDelay,
    maxLoadingRetryTime: LOADING_AGAIN_MS,
    ...(!waits && { enableOfflineQueue: false, autoResendUnfulfilledCommands: false }),
  })
  let isAway = false
  redis.on('error', (error: unknown) => {
    if (isAway) return
    isAway = true
    log(`Redis at ${name} (${use}): ${describeFailure(error).replace(/\.$/, '')}. It is tried again until it is back.`)
  })
  redis.on('ready', () => {
    if (isAway) log(`Redis at ${name} (${use}) is back.`)
    isAway = false
  })
  return redis
}

/** Connects once, to look at it. Rejects when there is no answer in time. */
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
