/**
 * The configuration of the server: one schema, and how its values are found. Options win over the environment, the environment over the
 * file, the file over the defaults. The first value that is not allowed stops the start, with its name, the value and what is allowed.
 */
import { z } from 'zod'
import { InvalidSettingError } from '../errors.js'

const MIB = 1024 * 1024

/** What a leaf says about itself beyond its type. A type, not an interface, because zod wants an index signature. */
type LeafMeta = {
  readonly description: string
  /** What is allowed, in words. */
  readonly expected: string
  /** Its environment variable. */
  readonly env?: string
  /** Its value is never shown. */
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

/** The whole configuration; `description` and `env` of each value are in its `meta()`. */
export const serverConfigSchema = z.strictObject({
  /** The address to listen at. */
  host: z
    .string()
    .min(1)
    .default('127.0.0.1')
    .meta(
      about('The address to listen at. Any but a loopback address asks for tokens.', 'an address or a host name', {
        env: 'HOST',
      }),
    ),
  /** The port of REST, and of the socket at /ws. */
  port: port(3300, 'The port of REST, and of the socket at /ws. 0 picks a free one.', 'PORT'),
  /** What is logged. */
  logLevel: z
    .enum(['silent', 'error', 'warn', 'info', 'debug'])
    .default('info')
    .meta(about('What is logged.', 'silent, error, warn, info or debug', { env: 'LOG_LEVEL' })),
  /** Names beyond loopback names and addresses under which the server may be called. */
  allowedHosts: z
    .array(z.string().min(1).max(253))
    .default([])
    .meta(
      about('Names beyond loopback names and addresses under which the server may be called.', 'a list of host names', {
        env: 'ALLOWED_HOSTS',
      }),
    ),
  /** Who may use the server. */
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
          'Whoever sends one of these may use the server; none lets everyone on this machine.',
          'a list of tokens of visible ASCII characters',
          {
            env: 'AUTH_TOKENS',
            isSecret: true,
          },
        ),
      ),
  }),
  /** Which pages may use the server. */
  cors: z.strictObject({
    origins: z
      .array(z.string().regex(/^(null|[a-z][a-z0-9+.-]*:\/\/[^\s/,*]+)$/))
      .default([])
      .meta(
        about(
          'Origins beyond its own whose pages may use the server.',
          'a list of origins such as https://app.example or chrome-extension://abc',
          {
            env: 'CORS_ORIGINS',
          },
        ),
      ),
  }),
  /** With a certificate the server speaks HTTPS and WSS. */
  tls: z.strictObject({
    certPath: path('The certificate; with it the server speaks HTTPS and WSS.', 'TLS_CERT_PATH'),
    keyPath: path('The key of the certificate.', 'TLS_KEY_PATH'),
  }),
  /** Where clients open their sockets, and how long tasks may take and are kept. */
  tasks: z.strictObject({
    enabled: z
      .boolean()
      .default(true)
      .meta(about('Whether tasks are taken.', 'true or false', { env: 'TASKS_ENABLED' })),
    wsPort: port(3400, 'The port of the socket for clients. 0 picks a free one.', 'TASKS_WS_PORT'),
    commandTimeout: integer(1, DAY_MS, 60_000, 'The longest a command may take, in ms.', 'TASKS_COMMAND_TIMEOUT'),
    maxQueueSize: integer(
      0,
      1_000_000,
      100,
      'The most tasks of one instance that have not ended. 0 accepts none.',
      'TASKS_MAX_QUEUE_SIZE',
    ),
    abortGraceMs: integer(0, DAY_MS, 2000, 'How long an aborted command holds its lane, in ms.'),
    retentionMs: integer(0, 365 * DAY_MS, 3_600_000, 'How long an ended task is kept, in ms.'),
    maxRetained: integer(0, 1_000_000, 1000, 'How many ended tasks are kept.'),
    drainMs: integer(0, DAY_MS, 10_000, 'How long running tasks get to end when the server closes, in ms.'),
  }),
  /** The bounds of what one client may do. */
  limits: z.strictObject({
    bodyBytes: integer(1, 1024 * MIB, MIB, 'The largest body of a request, in bytes.'),
    frameBytes: integer(1, 1024 * MIB, MIB, 'The largest frame of a socket, in bytes.'),
    nesting: integer(1, 1000, 64, 'How deep arrays and objects of a message may be nested.'),
    subscriptionsPerClient: integer(0, 1_000_000, 1000, 'The most subscriptions of one connection.'),
    connectionsPerClient: integer(
      1,
      1_000_000,
      1000,
      'The most connections from one address that stay: sockets and event streams.',
    ),
    requestsPerMinute: integer(1, 1e9, 60_000, 'The most requests and upgrades from one address in a minute.'),
    framesPerMinute: integer(1, 1e9, 600_000, 'The most frames from one address in a minute.'),
    slowReaderBytes: integer(
      1,
      1024 * MIB,
      4 * MIB,
      'With more than this waiting for it, a subscriber loses progress messages.',
    ),
    deadReaderBytes: integer(
      1,
      1024 * MIB,
      32 * MIB,
      'With more than this waiting for it, a subscriber is closed (1013).',
    ),
    authenticateMs: integer(1, DAY_MS, 10_000, 'How long a new socket may take to say who it is, in ms.'),
  }),
})

/**
 * Every value, after defaults.
 * @useDeclaredType
 */
export type ServerConfig = z.output<typeof serverConfigSchema>

/** Some of the values, at every level. */
export type PartOf<T> = {
  readonly [K in keyof T]?:
    (T[K] extends readonly unknown[] ? T[K] : T[K] extends object ? PartOf<T[K]> : T[K]) | undefined
}

/** Values by name, as in options and in the file; what is absent comes from the next source. */
export type ServerConfigInput = PartOf<ServerConfig>

/** Where the values of the configuration come from; the first that has one wins. */
export interface ConfigSources {
  /** Values that a program gives. */
  readonly options?: ServerConfigInput
  /** The environment, or the part of it that counts. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** The parsed content of the configuration file. */
  readonly file?: unknown
}

interface Leaf extends LeafMeta {
  readonly path: readonly string[]
  readonly schema: z.ZodType
}

/**
 * Finds every value.
 * @throws InvalidSettingError for the first that is not allowed; the value of a secret is not shown
 */
export function resolveServerConfig(sources: ConfigSources = {}): ServerConfig {
  const leaves = leavesOf(serverConfigSchema)
  checkNames(sources.options, 'options', leaves)
  checkNames(sources.file, 'file', leaves)
  const config: Record<string, unknown> = {}
  for (const leaf of leaves) put(config, leaf.path, valueOf(leaf, sources))
  const resolved = config as ServerConfig
  checkTogether(resolved)
  return resolved
}

/** Whether an address can be reached from this machine alone. */
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
    throw new InvalidSettingError(missing, undefined, `a path as well, because ${given} is set`)
  }
  if (config.port !== 0 && config.tasks.enabled && config.port === config.tasks.wsPort) {
    throw new InvalidSettingError('TASKS_WS_PORT', config.tasks.wsPort, 'another port than PORT')
  }
}

function valueOf(leaf: Leaf, { options, env = {}, file }: ConfigSources): unknown {
  const name = leaf.path.join('.')
  const fromEnv = leaf.env === undefined ? undefined : env[leaf.env]
  const found: readonly (readonly [string, unknown])[] = [
    [leaf.env ?? name, read(options, leaf.path)],
    [leaf.env ?? name, fromEnv === undefined || fromEnv === '' ? undefined : fromText(leaf.schema, fromEnv)],
    [`${leaf.env ?? name} (${name} in the file)`, read(file, leaf.path)],
  ]
  const [label, value] = found.find(([, candidate]) => candidate !== undefined) ?? [name, undefined]
  const parsed = leaf.schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw new InvalidSettingError(label, leaf.isSecret === true ? HIDDEN : value, leaf.expected)
}

/** What stands for a secret in a message. */
const HIDDEN = '(not shown)'

/** A value as a variable spells it. Text that is no such value stays text, which the schema then refuses. */
function fromText(schema: z.ZodType, text: string): unknown {
  const type = innerType(schema)
  if (type instanceof z.ZodNumber) return /^-?\d+$/.test(text.trim()) ? Number(text) : text
  if (type instanceof z.ZodBoolean) {
    return { true: true, 1: true, false: false, 0: false }[text.trim().toLowerCase()] ?? text
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

/** A misspelt name is an error, not a default. */
function checkNames(value: unknown, name: string, leaves: readonly Leaf[], above: readonly string[] = []): void {
  if (value === undefined) return
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidSettingError([name, ...above].join('.'), value, 'an object')
  }
  for (const [key, inner] of Object.entries(value)) {
    const at = [...above, key]
    const beneath = leaves.filter((leaf) => at.every((part, index) => leaf.path[index] === part))
    if (beneath.length === 0) {
      const known = [
        ...new Set(
          leaves
            .filter(({ path: all }) => above.every((part, i) => all[i] === part))
            .map(({ path: all }) => all[above.length]),
        ),
      ]
      throw new InvalidSettingError([name, ...at].join('.'), HIDDEN, `one of the names ${known.join(', ')}`)
    }
    if (beneath.some((leaf) => leaf.path.length > at.length)) checkNames(inner, name, leaves, at)
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
