/**
 * The configuration of the task server: its schema, and how each setting gets its value. Options override environment variables, which
 * override the configuration file, which overrides the defaults.
 */
import { z } from 'zod'
import { InvalidSettingError } from '../errors.js'
import { expectedName } from '../data/nearest-name.js'
import { HIDDEN, shownUnknown } from './option-checks.js'
import { MAX_LEVELS } from '../data/plain-data.js'

const MIB = 1024 * 1024

/** The metadata of a setting. zod requires an index signature here, so this is a type and not an interface. */
type LeafMeta = {
  readonly description: string
  /** Describes the allowed values, for errors. */
  readonly expected: string
  /** The environment variable of the setting. */
  readonly env?: string
  /** Whether errors hide the value. */
  readonly isSecret?: boolean
}

const about = (description: string, expected: string, more: { env?: string; isSecret?: boolean } = {}): LeafMeta => ({
  description,
  expected,
  ...more,
})

const integer = (least: number, most: number, fallback: number, description: string, env?: string) =>
  z
    .number()
    .int()
    .min(least)
    .max(most)
    .default(fallback)
    .meta(about(description, `an integer from ${least} to ${most}`, env === undefined ? {} : { env }))

const DAY_MS = 86_400_000
const port = (fallback: number, description: string, env: string) => integer(0, 65_535, fallback, description, env)
const path = (description: string, env: string) =>
  z
    .string()
    .min(1)
    .optional()
    .meta(about(description, 'the path of a PEM file', { env }))

/** The schema of the whole configuration. The `description` and the `env` of each setting are in its `meta()`. */
export const serverConfigSchema = z.strictObject({
  /** The address to listen on. */
  host: z
    .string()
    .min(1)
    .default('127.0.0.1')
    .meta(
      about(
        'The address to listen on. An address that other machines can reach requires tokens.',
        'an address or a host name',
        {
          env: 'HOST',
        },
      ),
    ),
  /** The port of the REST routes and of the WebSocket at /ws. */
  port: port(3300, 'The port of REST and of the WebSocket at /ws. 0 picks a free one.', 'PORT'),
  /** The log level. */
  logLevel: z
    .enum(['silent', 'error', 'warn', 'info', 'debug'])
    .default('info')
    .meta(about('The log level.', 'silent, error, warn, info or debug', { env: 'LOG_LEVEL' })),
  /** More host names that requests may use. Loopback names and IP addresses are always allowed. */
  allowedHosts: z
    .array(z.string().min(1).max(253))
    .default([])
    .meta(
      about(
        'More host names that requests may use. Loopback names and IP addresses are always allowed.',
        'a list of host names',
        {
          env: 'ALLOWED_HOSTS',
        },
      ),
    ),
  /** Authentication. */
  auth: z.strictObject({
    tokens: z
      .array(
        z
          .string()
          .min(1)
          .max(4096)
          .regex(/^[\x21-\x7e]+$/),
      )
      .default([])
      .meta(
        about(
          'Bearer tokens. Each one grants access. Without tokens, every program on this machine has access.',
          'a list of tokens of visible ASCII characters',
          {
            env: 'AUTH_TOKENS',
            isSecret: true,
          },
        ),
      ),
  }),
  /** Which web pages of other origins may use the server. */
  cors: z.strictObject({
    origins: z
      .array(z.string().regex(/^(null|[a-z][a-z0-9+.-]*:\/\/[^\s/,*]+)$/))
      .default([])
      .meta(
        about(
          'Origins whose web pages may use the server, in addition to the pages of the server itself.',
          'a list of origins such as https://app.example or chrome-extension://abc',
          {
            env: 'CORS_ORIGINS',
          },
        ),
      ),
  }),
  /** With a certificate the server uses HTTPS and WSS. */
  tls: z.strictObject({
    certPath: path('The certificate. With a certificate the server uses HTTPS and WSS.', 'TLS_CERT_PATH'),
    keyPath: path('The private key of the certificate.', 'TLS_KEY_PATH'),
  }),
  /** The port of the client WebSocket, and the limits of tasks. */
  tasks: z.strictObject({
    enabled: z
      .boolean()
      .default(true)
      .meta(about('Whether tasks are accepted.', 'true or false', { env: 'TASKS_ENABLED' })),
    wsPort: port(3400, 'The port of the client WebSocket. 0 picks a free one.', 'TASKS_WS_PORT'),
    commandTimeout: integer(1, DAY_MS, 60_000, 'The longest timeout of a command, in ms.', 'TASKS_COMMAND_TIMEOUT'),
    maxQueueSize: integer(
      0,
      1_000_000,
      100,
      'The maximum number of queued and running tasks of one instance. 0 accepts no task.',
      'TASKS_MAX_QUEUE_SIZE',
    ),
    abortGraceMs: integer(0, DAY_MS, 2000, 'How long the next command waits for an aborted one to stop, in ms.'),
    retentionMs: integer(0, 365 * DAY_MS, 3_600_000, 'How long an ended task is kept, in ms.'),
    maxRetained: integer(0, 1_000_000, 1000, 'The maximum number of ended tasks that are kept.'),
    maxResultBytes: integer(1, 1024 * MIB, 16 * MIB, 'The largest result of a command, in bytes of JSON.'),
    maxTaskBytes: integer(1, 1024 * MIB, 64 * MIB, 'The maximum size of a task with its results, in bytes of JSON.'),
    maxBytes: integer(
      1,
      64 * 1024 * MIB,
      256 * MIB,
      'The maximum size of all tasks together, in bytes of JSON. At the limit, ended tasks are removed before retentionMs.',
    ),
    store: z
      .string()
      .min(1)
      .optional()
      .meta(
        about(
          'The file that keeps tasks when the server ends, or the URL of a PostgreSQL database (postgres://USER@HOST/DATABASE). Default: tasks are lost when the server ends.',
          'the path of a store, or postgres://…',
          {
            env: 'TASKS_STORE',
          },
        ),
      ),
    instanceGraceMs: integer(
      0,
      DAY_MS,
      90_000,
      'With a store: how long queued tasks wait for their instance after a restart, in ms.',
    ),
    drainMs: integer(
      0,
      DAY_MS,
      10_000,
      'How long running tasks may continue when the server closes, in ms. Then they are cancelled.',
    ),
  }),
  /** The limits of each client. */
  limits: z.strictObject({
    bodyBytes: integer(1, 1024 * MIB, MIB, 'The largest request body, in bytes.'),
    frameBytes: integer(1, 1024 * MIB, MIB, 'The largest WebSocket frame, in bytes.'),
    nesting: integer(1, MAX_LEVELS, 64, 'The maximum depth of nested JSON in a message, in levels.'),
    subscriptionsPerClient: integer(0, 1_000_000, 1000, 'The most subscriptions of one connection.'),
    connectionsPerClient: integer(1, 1_000_000, 1000, 'The most open WebSockets and event streams of one address.'),
    requestsPerMinute: integer(1, 1e9, 60_000, 'The most requests and upgrades of one address per minute.'),
    framesPerMinute: integer(1, 1e9, 600_000, 'The most WebSocket frames of one address per minute.'),
    slowReaderBytes: integer(
      1,
      1024 * MIB,
      4 * MIB,
      'A subscriber with more unread data than this, in bytes, loses progress messages.',
    ),
    deadReaderBytes: integer(
      1,
      1024 * MIB,
      32 * MIB,
      'The connection of a subscriber with more unread data than this, in bytes, is closed (1013).',
    ),
    toolCallMs: integer(
      1,
      DAY_MS,
      120_000,
      'How long a call over POST /api/tools/:name may take, including its wait in the queue, in ms.',
    ),
    authenticateMs: integer(1, DAY_MS, 10_000, 'How long a new socket may take to authenticate, in ms.'),
  }),
})

/**
 * The value of every setting, after defaults.
 * @useDeclaredType
 */
export type ServerConfig = z.output<typeof serverConfigSchema>

/** The same object type with all properties optional, at every level. */
export type PartOf<T> = {
  readonly [K in keyof T]?:
    (T[K] extends readonly unknown[] ? T[K] : T[K] extends object ? PartOf<T[K]> : T[K]) | undefined
}

/** Settings as in options and in the file. A setting that is absent comes from the next source, which `ConfigSources` lists. */
export type ServerConfigInput = PartOf<ServerConfig>

/** The sources of the configuration. The first one that has a setting determines its value. */
export interface ConfigSources {
  /** Settings given in code. */
  readonly options?: ServerConfigInput
  /** Environment variables. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** The parsed content of the configuration file. */
  readonly file?: unknown
  /** The path of that file, for errors. */
  readonly fileName?: string
}

interface Leaf extends LeafMeta {
  readonly path: readonly string[]
  readonly schema: z.ZodType
}

/**
 * Determines the value of every setting.
 * @throws INVALID_SETTING for the first invalid setting; its message shows no secret
 */
export function resolveServerConfig(sources: ConfigSources = {}): ServerConfig {
  const leaves = leavesOf(serverConfigSchema)
  checkNames(sources.options, 'options', leaves)
  const { fileName } = sources
  checkNames(sources.file, 'file', leaves, fileName === undefined ? '' : ` in ${fileName}`)
  const config: Record<string, unknown> = {}
  for (const leaf of leaves) put(config, leaf.path, valueOf(leaf, sources))
  const resolved = config as ServerConfig
  checkTogether(resolved)
  return resolved
}

/** Whether a file of settings may have a field with this path, such as `tasks.drainMs`. */
export const isServerField = (path: string): boolean =>
  leavesOf(serverConfigSchema).some((leaf) => `${leaf.path.join('.')}.`.startsWith(`${path}.`))

/** Whether an address is a loopback address, which only programs on this machine can reach. */
export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, '').toLowerCase()
  return name === 'localhost' || name === '::1' || /^(::ffff:)?127(\.\d{1,3}){3}$/.test(name)
}

function checkTogether(config: ServerConfig): void {
  if (!isLoopback(config.host) && config.auth.tokens.length === 0) {
    throw new InvalidSettingError('HOST', config.host, 'a loopback address, or AUTH_TOKENS with at least one token')
  }
  const { certPath, keyPath } = config.tls
  if ((certPath === undefined) !== (keyPath === undefined)) {
    const [missing, given] =
      certPath === undefined ? ['TLS_CERT_PATH', 'TLS_KEY_PATH'] : ['TLS_KEY_PATH', 'TLS_CERT_PATH']
    throw new InvalidSettingError(missing, undefined, `a path, because ${given} is set`)
  }
  if (config.port !== 0 && config.tasks.enabled && config.port === config.tasks.wsPort) {
    throw new InvalidSettingError('TASKS_WS_PORT', config.tasks.wsPort, 'another port than PORT')
  }
}

function valueOf(leaf: Leaf, { options, env = {}, file }: ConfigSources): unknown {
  const name = leaf.path.join('.')
  const fromEnv = leaf.env === undefined ? undefined : env[leaf.env]
  const found: readonly (readonly [string, unknown])[] = [
    [name, read(options, leaf.path)],
    [leaf.env ?? name, fromEnv === undefined || fromEnv === '' ? undefined : fromText(leaf.schema, fromEnv)],
    [`${leaf.env ?? name} (${name} in the file)`, read(file, leaf.path)],
  ]
  const [label, value] = found.find(([, candidate]) => candidate !== undefined) ?? [name, undefined]
  const parsed = leaf.schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new InvalidSettingError(label, leaf.isSecret === true ? HIDDEN : value, leaf.expected)
}

const BOOLEANS = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
])

/** Converts the text of an environment variable to the type of its setting. Text that cannot be converted stays text, which the schema refuses. */
function fromText(schema: z.ZodType, text: string): unknown {
  const type = innerType(schema)
  if (type instanceof z.ZodNumber) return /^-?\d+$/.test(text.trim()) ? Number(text) : text
  if (type instanceof z.ZodBoolean) {
    return BOOLEANS.get(text.trim().toLowerCase()) ?? text
  }
  if (type instanceof z.ZodArray) {
    return text
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '')
  }
  return text
}

function innerType(schema: z.ZodType): z.ZodType {
  return schema instanceof z.ZodDefault || schema instanceof z.ZodOptional
    ? innerType(schema.unwrap() as z.ZodType)
    : schema
}

function leavesOf(schema: z.ZodObject, above: readonly string[] = []): Leaf[] {
  return Object.entries(schema.shape as Record<string, z.ZodType>).flatMap(([key, field]) => {
    const at = [...above, key]
    return field instanceof z.ZodObject
      ? leavesOf(field, at)
      : [{ ...(field.meta() as unknown as LeafMeta), path: at, schema: field }]
  })
}

/** Refuses unknown names. Otherwise a misspelt setting would silently have no effect. */
function checkNames(
  value: unknown,
  name: string,
  leaves: readonly Leaf[],
  where = '',
  above: readonly string[] = [],
): void {
  if (value === undefined) return
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidSettingError([name, ...above].join('.') + where, value, 'an object')
  }
  for (const [key, inner] of Object.entries(value)) {
    const at = [...above, key]
    const beneath = leaves.filter((leaf) => at.every((part, index) => leaf.path[index] === part))
    if (beneath.length === 0) {
      const known = [
        ...new Set(
          leaves
            .filter(({ path: all }) => above.every((part, i) => all[i] === part))
            .map(({ path: all }) => all[above.length] ?? ''),
        ),
      ]
      throw new InvalidSettingError([name, ...at].join('.') + where, shownUnknown(inner), expectedName(key, known))
    }
    if (beneath.some((leaf) => leaf.path.length > at.length)) checkNames(inner, name, leaves, where, at)
  }
}

function read(from: unknown, at: readonly string[]): unknown {
  return at.reduce<unknown>((value, key) => (value as Record<string, unknown> | null | undefined)?.[key], from)
}

function put(into: Record<string, unknown>, at: readonly string[], value: unknown): void {
  const [key = '', ...rest] = at
  if (rest.length === 0) into[key] = value
  else put((into[key] ??= {}) as Record<string, unknown>, rest, value)
}
