/** The state that all connections of one MCP server share: the async tasks, the subagents, and the instances with their lanes. */
import { randomUUID } from 'node:crypto'
import { AsyncTaskManager } from '../async-tasks/manager.js'
import type { AsyncTaskManagerOptions } from '../async-tasks/manager-options.js'
import { systemClock, type Clock } from '../system/clock.js'
import type { ClusterTasks } from '../command-tasks/cluster-tasks.js'
import { TaskManager } from '../command-tasks/task-manager.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { createFairEngine } from '../engine/fair-engine.js'
import { createInProcessEngine } from '../engine/in-process.js'
import { aRunnable, resolveRunner } from '../engine/definition.js'
import { createLog, type Log } from '../server/http/log.js'
import {
  accepts,
  aClock,
  aFunction,
  aName,
  anObject,
  aStore,
  aString,
  custom,
  objectWith,
  recordOf,
  textOfLength,
  type OptionTypes,
} from '../protocol/option-checks.js'
import {
  agentConfigSchema,
  MAX_SESSION_KEY,
  type AgentConfig,
  type AgentConfigInput,
} from '../protocol/agent-config.js'
import { InvalidInputError } from '../errors.js'
import { parseInput } from '../protocol/parse.js'
import { aTelemetry, type Telemetry } from '../protocol/telemetry.js'
import type { OpenStore } from '../store/open-store.js'
import type { SessionOfStore } from '../store/sessions/session-store.js'
import { findCommandRunner } from '../tools/cluster-command-run.js'
import { subagentOffer } from '../tools/offered-subagents.js'
import type { ResolvedSubagent, Subagent } from '../tools/subagents.js'
import { clientOf, STDIO_OWNER } from './callers.js'
import { MAX_IN_PLACE_OF_ALL, ClientSlots, type ClientLimits } from './client-slots.js'
import { configuredSubagents } from './configured-subagents.js'
import type { InstanceSource } from '../tools/instance-source.js'
import { createInstancePool, type InstancePool } from './instance-pool.js'
import { instancesOfCluster, instancesOfPool } from './instance-source.js'
import type { Clients } from './mcp-feature.js'
import { mcpFeatures } from './mcp-features.js'
import { createSession } from './session.js'
import type { UntrustedFile } from './trust.js'

/** Options of every MCP server. */
export interface McpServerOptions {
  /** The content of `agent-tasks.config.json`. Default: every setting at its default. */
  readonly config?: AgentConfigInput
  /** The directory that relative paths of the configuration start from. Default: the working directory. */
  readonly folder?: string
  /** The path of the configuration file, which the tool `task` names when there are no subagents. */
  readonly configFile?: string
  /**
   * A configuration file that was found but that the user does not trust (`untrusted` of `loadAgentConfig`). The server then lists its tools, but opens
   * no store. Each call of a tool returns the command with which the user can trust the file.
   */
  readonly untrusted?: UntrustedFile | undefined
  /**
   * The directory in which subagents without a `cwd` run. Over stdio, the project folder that the client reports (MCP roots) comes first. Default: the
   * working directory.
   */
  readonly projectFolder?: string
  /**
   * Where tasks and results are kept when the process ends: a folder, or an open store (`await openStore(postgresStore({ … }))`). The server closes the
   * open store when it closes. An open store already belongs to a session, so the server ignores `session` then. Overrides `store` of the configuration.
   * Default: no store, so tasks end with the process.
   */
  readonly store?: string | OpenStore
  /**
   * The name of the session in the store. A server takes over the tasks and results that ended servers of the same session left. Overrides `session` of
   * the configuration. Default: `projectFolder`.
   */
  readonly session?: string
  /** Additional subagents by name, which run in this process. If a configured subagent has the same name, the one given here is used. */
  readonly subagents?: Readonly<Record<string, Subagent>>
  /**
   * The tasks of a cluster (`bullmqCluster(…).tasks()` of `agent-tasks/bullmq`). `submit_commands` then runs commands on the instances of the cluster.
   * The server closes this object when it closes. Default: commands run on the `instances` of the configuration.
   */
  readonly taskManager?: ClusterTasks | undefined
  /** Traces calls of tools and the tasks that they start, and counts tasks (`agent-tasks/telemetry`). Default: none. */
  readonly telemetry?: Telemetry
  /** The source of time. Default: the system's. */
  readonly clock?: Clock
  /** Called with each line of the log. Default: `console.error`. */
  readonly writeLog?: (line: string) => void
}

/** The parts of a backend that exist once its work has begun. */
type Begun = Pick<Backend, 'manager' | 'slots'>

const anUntrustedFile = custom(
  'untrusted of loadAgentConfig',
  (value) => typeof (value as Partial<UntrustedFile> | null)?.file === 'string',
)

const aFolderOrStore = custom(
  `${aName.expected}, or ${aStore.expected}`,
  (value) => accepts(aName, value) || accepts(aStore, value),
)

export const serverOptionTypes: OptionTypes<McpServerOptions> = {
  // The schema of the configuration checks its content.
  config: anObject,
  folder: aString,
  configFile: aString,
  untrusted: anUntrustedFile,
  projectFolder: aString,
  store: aFolderOrStore,
  session: textOfLength(MAX_SESSION_KEY),
  subagents: recordOf(aRunnable),
  taskManager: objectWith('the tasks of a cluster', 'submitTask', 'followTask', 'cancelTask', 'close'),
  telemetry: aTelemetry,
  clock: aClock,
  writeLog: aFunction,
}

export interface Backend {
  readonly configFile: string | undefined
  /** The configuration file that the user does not trust. While it is set, every call of a tool returns how to trust the file. */
  readonly untrusted: UntrustedFile | undefined
  readonly config: AgentConfig
  /** The directory that relative paths of the configuration start from. */
  readonly folder: string
  readonly projectFolder: string
  readonly clock: Clock
  readonly telemetry: Telemetry | undefined
  readonly log: Log
  /** The tasks. Exists once the work has begun; reading this property earlier throws. */
  readonly manager: AsyncTaskManager
  /** The session of the store; undefined without a store. */
  readonly session: SessionOfStore | undefined
  /** Runs command tasks on the instances of this process. */
  readonly taskManager: TaskManager
  /** Runs the commands that clients submit: `taskManager`, or a cluster. */
  readonly commandTasks: TaskManager | ClusterTasks
  readonly pool: InstancePool
  /** The instances that clients see: those of `pool`, or those of a cluster. */
  readonly instances: InstanceSource
  /** Exists once the work has begun; reading this property earlier throws. */
  readonly slots: ClientSlots
  readonly subagents: ReadonlyMap<string, ResolvedSubagent>
  readonly hasBegun: boolean
  /**
   * Begins the work, unless it has begun: opens the store, takes over what ended servers of the session left, and starts retries and schedules.
   * @throws StoreError when the store cannot be opened; the next call tries again
   */
  begin(): AsyncTaskManager
  /**
   * Resolves when every run has ended, except programs that survive the server. Without a store, all tasks are cancelled. With a store, the next server of
   * the session goes on with those that wait and with programs that survive, and runs the others again or reports them.
   */
  close(): Promise<void>
}

/**
 * Creates the backend, and begins its work. Connects no instance.
 * @throws INVALID_INPUT for an invalid configuration
 * @throws StoreError when the store cannot be opened
 * @throws INVALID_SETTING for a setting that needs a store, when there is none
 */
export function createBackend(options: McpServerOptions = {}): Backend {
  const backend = prepareBackend(options)
  backend.begin()
  return backend
}

/**
 * Creates a backend whose work begins later (`begin`). Until then no task of the store is touched, and nothing is started.
 * @param conversationKey returns the session key of the client's conversation when the work begins. Default: unknown
 * @throws INVALID_INPUT for an invalid configuration
 * @throws StoreError when the store cannot be read
 * @throws INVALID_SETTING for a setting that needs a store, when there is none
 */
export function prepareBackend(options: McpServerOptions = {}, conversationKey?: () => string | undefined): Backend {
  const { folder = process.cwd(), projectFolder = process.cwd(), clock = systemClock, telemetry } = options
  const { taskManager: cluster, untrusted } = options
  const config = parseInput(agentConfigSchema, options.config ?? {}, 'config')
  if (cluster !== undefined && config.instances.length > 0) {
    const expected = 'no instances, because options.taskManager runs commands on the instances of a cluster'
    throw new InvalidInputError('config.instances', config.instances.map(({ id }) => id).join(', '), expected)
  }
  const findCommands = cluster && findCommandRunner(cluster)
  const maxCommands = config.commands?.maxCommands ?? 0
  const log = createLog('info', options.writeLog)
  checkRemote(config, options.subagents)
  const subagents = new Map([
    ...configuredSubagents(config, { folder, projectFolder }, clock),
    ...Object.entries(options.subagents ?? {}).map(([name, subagent]) => [name, resolveRunner(subagent)] as const),
  ])
  // While the configuration is not trusted, its subagents are unknown. Opening the store would end the stored tasks of unknown subagents, so the store
  // stays closed.
  const session =
    untrusted === undefined
      ? createSession(config, { ...options, folder, projectFolder, ...omitUndefined({ conversationKey }) }, clock)
      : undefined
  session?.check()
  const pool = createInstancePool(config.instances, { folder, clock, log })
  const taskManager = new TaskManager({
    instances: pool.instances,
    clock,
    telemetry,
    engine: createFairEngine(createInProcessEngine({ clock }), clock),
    onError: (error, { source }) => log(source === 'late-result' ? 'warn' : 'error', source, error),
  })
  const begun = (): Begun => {
    const ofFeatures = mcpFeatures.map(({ managerOptions }) => managerOptions?.(config, folder))
    const manager = new AsyncTaskManager({
      maxAsyncTasks: totalOf(config),
      maxCommands: maxCommands === -1 ? -1 : Math.max(MIN_TOTAL, maxCommands),
      maxForegroundTasks: MAX_IN_PLACE_OF_ALL,
      whenFull: config.whenFull,
      queue: { max: config.queueMax },
      ...(Object.assign({}, ...ofFeatures) as AsyncTaskManagerOptions),
      limits: config.limits,
      clock,
      createId,
      onError: (error, { source, taskId }) =>
        log(
          source === 'late-result' ? 'warn' : 'error',
          taskId === undefined ? source : `${source} of task ${taskId}`,
          error,
        ),
      ...omitUndefined({ store: session, telemetry }),
      findRunner: (name) => {
        const subagent = subagents.get(name)
        return findCommands?.(name) ?? (subagent && resolveRunner(subagent))
      },
    })
    const slots = new ClientSlots(manager, clientLimits(config), session?.earlierTasks)
    const launching: Clients['launching'] = (owner, launch) => slots.launchScheduled(owner, launch)
    for (const { connect } of mcpFeatures) connect?.(manager, { groupOf: clientOf, launching })
    manager.reads.use(subagentOffer).offer = { owner: STDIO_OWNER, list: () => subagents, launching }
    return { manager, slots }
  }
  let work: Begun | undefined
  const theWork = (): Begun => {
    if (work === undefined) throw new Error('The work of the server has not begun.')
    return work
  }
  let closing: Promise<void> | undefined
  return {
    configFile: options.configFile,
    untrusted,
    config,
    folder,
    projectFolder,
    clock,
    telemetry,
    log,
    get manager() {
      return theWork().manager
    },
    get slots() {
      return theWork().slots
    },
    get hasBegun() {
      return work !== undefined
    },
    begin: () => {
      if (closing !== undefined) throw new Error('The server is closing.')
      return (work ??= begun()).manager
    },
    session,
    taskManager,
    pool,
    subagents,
    commandTasks: cluster ?? taskManager,
    instances: cluster === undefined ? instancesOfPool(pool, taskManager) : instancesOfCluster(cluster),
    close: () =>
      (closing ??= (async () => {
        await Promise.all([work === undefined ? session?.close() : work.manager.dispose(), taskManager.dispose()])
        await Promise.all([pool.close(), cluster?.close()])
      })()),
  }
}

/** Checks that every subagent that runs on workers has a runner. The command line makes these runners; a program passes them in `options.subagents`. */
function checkRemote({ subagents }: AgentConfig, runners: McpServerOptions['subagents'] = {}): void {
  const index = subagents.findIndex(({ name, runsOn }) => runsOn === 'workers' && !Object.hasOwn(runners, name))
  if (index === -1) return
  const expected = "'server', or a runner for this subagent in options.subagents (bullmqRunner of agent-tasks/bullmq)"
  throw new InvalidInputError(`config.subagents[${index}].runsOn`, 'workers', expected)
}

function clientLimits({ maxAsyncTasks, whenFull, queueMax, commands }: AgentConfig): ClientLimits {
  return {
    maxAsyncTasks,
    maxWaiting: whenFull === 'queue' ? queueMax : 0,
    maxCommands: commands?.maxCommands ?? 0,
  }
}

/** The limit for the tasks of all clients together is at least this number. */
const MIN_TOTAL = 50

function totalOf({ maxAsyncTasks, maxAsyncTasksOfAllClients, whenFull }: AgentConfig): number {
  if (whenFull === 'queue') return maxAsyncTasksOfAllClients ?? maxAsyncTasks
  return maxAsyncTasksOfAllClients ?? (maxAsyncTasks === -1 ? -1 : Math.max(MIN_TOTAL, maxAsyncTasks))
}

/**
 * The id of a task must not be guessable, because everyone who knows it can use the task (SEP-2663). It is ASCII, because it is sent in an HTTP header.
 */
function createId(prefix: string): string {
  const name = prefix.replace(/[^A-Za-z0-9_-]+/g, '-').slice(0, 64)
  return `${name}-${randomUUID()}`
}
