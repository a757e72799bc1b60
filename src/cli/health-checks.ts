/** The checks of `agent-tasks doctor`. */
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { accessSync, constants, existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { examineHooks } from '../features/hooks/cli.js'
import { disposeOnSignals } from '../engine/dispose-on-signals.js'
import { taskServerAt } from '../server/http/port-holder.js'
import { mcpInstance } from '../command-tasks/instances/mcp-instance.js'
import { loadAgentConfig, type LoadedConfig } from '../mcp/config-file.js'
import { readFoundFile } from '../mcp/found-file.js'
import { sessionPlace, type SessionPlace } from '../mcp/session.js'
import { howToConfigure } from '../mcp/starter-config.js'
import { describeUntrusted } from '../mcp/trust.js'
import { unknownPlaceholders } from '../mcp/unknown-placeholders.js'
import type { AgentConfig } from '../protocol/agent-config.js'
import { resolveServerConfig } from '../protocol/server-config.js'
import { readConfigFile } from '../server/config-file.js'
import { CONNECTION_VARIABLE, loadRedisChecks, workersAccess } from './worker-subagents.js'
import { needsSqlitePackage, openDatabase, SQLITE_PACKAGE } from '../store/sqlite/driver.js'
import { readSessions } from '../store/locations/read-store-at.js'
import { STORE_KINDS } from '../store/locations/store-kinds.js'
import { storeUrlAt } from '../store/locations/store-url.js'
import { findProgram, type LookupOptions } from './program-lookup.js'
import { oneLine } from './table.js'

/** The default port of the page of `serve`. */
const PAGE_PORT = 3320
const OTHER_PORT = 'choose another with --port or --ws-port, or stop the program that uses it'

export interface Finding {
  readonly check: string
  /** Only a finding with the state `missing` makes `doctor` exit with code 6. */
  readonly state: 'ok' | 'note' | 'missing'
  readonly detail: string
}

/** The time limit of a request to a server, in ms. */
const ANSWER_MS = 2000
const LEAST_NODE = [20, 19] as const

const optionalPackages = {
  '@statelyai/inspect': 'the inspector in a browser, and its relay',
  'fast-check': 'agent-tasks/testing',
  ai: 'agent-tasks/adapters/ai-sdk',
  '@openai/agents': 'agent-tasks/adapters/openai-agents',
  '@langchain/core': 'agent-tasks/adapters/langchain',
  bullmq: 'agent-tasks/bullmq, and subagents on workers',
  ioredis: 'agent-tasks/bullmq, and subagents on workers',
  ...Object.fromEntries(
    STORE_KINDS.map(({ needs, schemes }) => [needs.package, `${needs.entry}, and stores at ${schemes[0]}://…`]),
  ),
  '@agentclientprotocol/sdk': 'agent-tasks/acp',
  croner: 'schedules with cron or a local time',
  re2js: 'monitors with regular expressions',
  '@opentelemetry/api': 'agent-tasks/telemetry',
} as const

export interface CheckupOptions {
  /** The path of the configuration; undefined for `agent-tasks.config.json` in the working directory. */
  readonly configPath: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** Whether to start the programs of instances. By default no program is started, because the configuration may have come with a repository. */
  readonly start: boolean
}

/** Runs all checks in order. Never throws. */
export async function* examine({ configPath, env, cwd, start }: CheckupOptions): AsyncGenerator<Finding> {
  yield checkNode(process.versions.node)
  for (const [name, use] of Object.entries(optionalPackages)) yield checkPackage(name, use, cwd)
  if (needsSqlitePackage()) {
    yield checkPackage(SQLITE_PACKAGE, `stores, as Node ${process.versions.node} has no safe SQLite`, cwd)
  }
  const loaded = attempt(() => loadAgentConfig(configPath, cwd, env))
  if ('error' in loaded) yield { check: 'configuration', state: 'missing', detail: loaded.error }
  else yield* checkConfigured(loaded.value, { env, cwd, start })
  yield* examineHooks(env, cwd)
  const server = attempt(() => resolveServerConfig({ env, file: readConfigFile(env['CONFIG_FILE']) }))
  if ('error' in server) yield { check: 'server settings', state: 'missing', detail: server.error }
  else {
    const { host, port, tasks } = server.value
    for (const one of new Set([port, tasks.wsPort])) yield await checkPort(host, one, OTHER_PORT)
    yield await checkPort('127.0.0.1', PAGE_PORT, 'the page of serve takes a free port, or that of --page-port')
  }
}

async function* checkConfigured(
  { config, file, path, folder, untrusted }: LoadedConfig,
  { env, cwd, start }: Pick<CheckupOptions, 'env' | 'cwd' | 'start'>,
): AsyncGenerator<Finding> {
  if (untrusted !== undefined) {
    yield { check: 'configuration', state: 'note', detail: describeUntrusted(untrusted).replaceAll('\n', ' ') }
  } else {
    const detail = file ?? `there is no file ${path}: the MCP server has no subagents. ${howToConfigure(path)}`
    yield { check: 'configuration', state: file === undefined ? 'note' : 'ok', detail }
  }
  for (const detail of unknownPlaceholders(config)) yield { check: 'placeholders', state: 'note', detail }
  const found = attempt(() => sessionPlace(config, { folder, projectFolder: cwd }))
  if ('error' in found) yield { check: 'store', state: 'missing', detail: found.error }
  else if (found.value !== undefined) {
    yield 'url' in found.value ? await checkServerStore(found.value) : checkStore(found.value)
  }
  for (const { name, command, cwd: own = '.', env: more } of config.subagents) {
    yield checkProgram(`subagent ${name}`, command, { cwd: resolve(folder, own), env: { ...env, ...more } })
  }
  yield* checkWorkers(config, env)
  const { shell = false, allow = [] } = config.commands ?? {}
  for (const command of shell ? ['/bin/sh'] : allow) yield checkProgram(`command ${command}`, command, { cwd, env })
  for (const { id, cwd: own = '.', ...location } of config.instances) {
    const check = `instance ${id}`
    const { command, env: more } = location
    const at = resolve(folder, own)
    // A URL is always checked, because this only lists its tools and starts no program.
    if (command === undefined || start) yield checkInstance(id, { ...location, cwd: at })
    else yield checkProgram(check, command, { cwd: at, env: { ...env, ...more } })
  }
}

/** Checks the Redis that the configuration or the environment names for subagents on workers. */
async function* checkWorkers(config: AgentConfig, env: CheckupOptions['env']): AsyncGenerator<Finding> {
  const isNamed = [config.workers.connection, env[CONNECTION_VARIABLE]].some((url) => url !== undefined && url !== '')
  if (!isNamed && !config.subagents.some(({ runsOn }) => runsOn === 'workers')) return
  try {
    const { connectBriefly, checkRedis } = await loadRedisChecks()
    const { connection, allowNoPassword } = workersAccess(config, env)
    const redis = await connectBriefly({ connection, allowNoPassword }, ANSWER_MS)
    try {
      for (const { check, state, detail } of await checkRedis(redis)) {
        yield { check: `Redis, ${check}`, state: toState[state], detail }
      }
    } finally {
      redis.disconnect()
    }
  } catch (error) {
    yield { check: 'Redis', state: 'missing', detail: oneLine((error as Error).message, 300) }
  }
}

/** A Redis that may lose tasks is only a note, because this can be intended. */
const toState = { ok: 'ok', note: 'note', lossy: 'note', unusable: 'missing' } as const

/** Reads the store of the MCP server's session, and does not open the store for writing. */
function checkStore({ folder, key }: Extract<SessionPlace, { folder: string }>): Finding {
  const check = 'store'
  const found = attempt(() => {
    // Without SQLite this fails, even if the store has no file yet.
    openDatabase(':memory:').close()
    const sessions = existsSync(folder) ? readSessions(folder) : []
    accessSync(nearestFolder(folder), constants.W_OK | constants.X_OK)
    return sessions
  })
  if ('error' in found) return { check, state: 'missing', detail: found.error }
  const own = found.value.filter(({ session }) => session === key)
  for (const { read } of own) if ('error' in read) return { check, state: 'missing', detail: read.error.message }
  const owners = own.flatMap(({ owner }) => owner ?? [])
  const use = owners.length === 0 ? '' : `, in use by ${owners.join(', ')}`
  return { check, state: 'ok', detail: `${folder}: ${own.length} file(s) of session ${JSON.stringify(key)}${use}` }
}

async function checkServerStore({ url, key }: Extract<SessionPlace, { url: string }>): Promise<Finding> {
  const check = 'store'
  try {
    const store = storeUrlAt(url, 'store', key)
    const [own] = (await store?.read()) ?? []
    if (own !== undefined && 'error' in own.read) return { check, state: 'missing', detail: own.read.error.message }
    const use = own?.holder === undefined ? '' : `, in use by ${own.holder}`
    return { check, state: 'ok', detail: `${store?.kind.name}: session ${JSON.stringify(key)}${use}` }
  } catch (error) {
    return { check, state: 'missing', detail: oneLine((error as Error).message, 300) }
  }
}

/** The folder itself, or the nearest parent folder that exists. */
const nearestFolder = (folder: string): string => (existsSync(folder) ? folder : nearestFolder(dirname(folder)))

export function checkNode(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const isNewEnough = major > LEAST_NODE[0] || (major === LEAST_NODE[0] && minor >= LEAST_NODE[1])
  const detail = isNewEnough ? version : `${version} is too old: install ${LEAST_NODE.join('.')} or newer`
  return { check: 'Node', state: isNewEnough ? 'ok' : 'missing', detail }
}

export function checkPackage(name: string, use: string, cwd: string): Finding {
  for (const from of [resolve(cwd, 'package.json'), import.meta.url]) {
    for (const folder of createRequire(from).resolve.paths(name) ?? []) {
      const version = versionIn(resolve(folder, name, 'package.json'))
      if (version !== undefined) return { check: name, state: 'ok', detail: `${version}, for ${use}` }
    }
  }
  return { check: name, state: 'note', detail: `not installed; needed only for ${use}` }
}

const manifestSchema = z.object({ version: z.string().max(100) })

/** The version in a manifest. The manifest is read as a file, because `require` could run code of the package. */
function versionIn(manifest: string): string | undefined {
  const found = readFoundFile(manifest)
  if (found === undefined || 'problem' in found) return undefined
  const read = attempt(() => manifestSchema.parse(JSON.parse(found.bytes.toString('utf8'))))
  return 'value' in read ? read.value.version : undefined
}

/** Looks up a program as the system does, without starting the program. */
function checkProgram(check: string, command: string, lookup: LookupOptions): Finding {
  const path = findProgram(command, lookup)
  if (path !== undefined) return { check, state: 'ok', detail: path === command ? path : `${command} is ${path}` }
  const where = /[\\/]/.test(command) ? `relative to ${lookup.cwd}` : 'in PATH'
  return {
    check,
    state: 'missing',
    detail: `there is no executable ${command} (${where}): install it, or set its path`,
  }
}

async function checkInstance(id: string, location: object): Promise<Finding> {
  const check = `instance ${id}`
  // Ctrl-C must also end the program. The exit of this process kills it.
  const unsubscribe = disposeOnSignals(() => undefined)
  try {
    // The configuration was checked when it was loaded, so the cast is safe.
    const instance = await mcpInstance({ ...(location as { command: string }), id })
    try {
      const { length } = await instance.listTools()
      return { check, state: 'ok', detail: `starts, and has ${length} tools` }
    } finally {
      await instance.close()
    }
  } catch (error) {
    return { check, state: 'missing', detail: oneLine((error as Error).message, 300) }
  } finally {
    unsubscribe()
  }
}

async function checkPort(host: string, port: number, whenTaken: string): Promise<Finding> {
  const check = `port ${port}`
  const code = await listenBriefly(host, port)
  if (code === undefined) return { check, state: 'ok', detail: `free on ${host}` }
  if (code !== 'EADDRINUSE') return { check, state: 'missing', detail: `cannot listen on ${host} (${code})` }
  const server = await taskServerAt(host, port)
  if (server !== undefined) return { check, state: 'ok', detail: `used by ${server}` }
  return { check, state: 'note', detail: `in use: ${whenTaken}` }
}

/**
 * Listens on a port for a moment.
 * @returns the error code if the port cannot be used
 */
function listenBriefly(host: string, port: number): Promise<string | undefined> {
  return new Promise((done) => {
    const probe = createServer()
    probe.once('error', (error: NodeJS.ErrnoException) => done(error.code ?? 'unknown'))
    probe.listen(port, host, () => probe.close(() => done(undefined)))
  })
}

function attempt<T>(read: () => T): { readonly value: T } | { readonly error: string } {
  try {
    return { value: read() }
  } catch (error) {
    return { error: (error as Error).message }
  }
}
