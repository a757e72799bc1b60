/** The state that all connections of one MCP server share: the async tasks, the subagents, and the instances with their lanes. */
import { currentRuns } from '../async-tasks/run-plan.js'
import { randomUUID } from 'node:crypto'
import { resolve } from 'node:path'
import { AsyncTaskManager } from '../async-tasks/manager.js'
import { continuing } from '../async-tasks/continuing.js'
import { schedules } from '../async-tasks/schedules/schedules.js'
import type { MonitorLimits } from '../async-tasks/monitors/monitors.js'
import { systemClock, type Clock } from '../clock.js'
import type { ClusterTasks } from '../command-tasks/cluster-tasks.js'
import { TaskManager } from '../command-tasks/task-manager.js'
import { defined } from '../defined.js'
import { createFairEngine } from '../engine/fair-engine.js'
import { taskName } from '../async-tasks/task-name.js'
import { createInProcessEngine } from '../engine/in-process.js'
import { aRunnable, flatRunner } from '../engine/definition.js'
import { createLog, type Log } from '../http/log.js'
import {
  aClock,
  aFunction,
  aName,
  aStore,
  anObject,
  objectWith,
  aString,
  recordOf,
  type OptionType,
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
import { definitionOf, type FlatSubagent, type Subagent } from '../tools/subagents.js'
import { STDIO_OWNER } from './callers.js'
import { MAX_IN_PLACE_OF_ALL, ClientSlots, type ClientLimits } from './client-slots.js'
import { configuredSubagents } from './configured-subagents.js'
import type { InstanceSource } from '../tools/instance-source.js'
import { createInstancePool, type InstancePool } from './instance-pool.js'
import { instancesOfCluster, instancesOfPool } from './instance-source.js'
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
   * A configuration file that was found but is not trusted (`untrusted` of `loadAgentConfig`). The tools are listed, each call returns the command that
   * trusts it, and no store is opened.
   */
  readonly untrusted?: UntrustedFile | undefined
  /**
   * The directory in which subagents without a `cwd` run, unless the client says where its project is (MCP roots, over stdio). Default: the
   * working directory.
   */
  readonly projectFolder?: string
  /**
   * The folder that keeps tasks and results when the process ends, or an open store (`await openStore(postgresStore({ … }))`). An open
   * store is closed with the server, and it names the session. Overrides `store` of the configuration. Default: none, so tasks end with the process.
   */
  readonly store?: string | OpenStore
  /**
   * With a store: the name of the session. A server takes over what ended servers of the same session left. Overrides `session` of the
   * configuration. Default: `projectFolder`.
   */
  readonly session?: string
  /** Further subagents, by name, that run in this process. They replace configured subagents with the same name. */
  readonly subagents?: Readonly<Record<string, Subagent>>
  /**
   * The tasks of a cluster (`bullmqCluster(…).tasks()` of `agent-tasks/bullmq`): `submit_commands` runs on the instances of its servers. They are closed
   * with the server. Default: the `instances` of the configuration.
   */
  readonly taskManager?: ClusterTasks | undefined
  /** Traces the calls and what they start, and counts the tasks (`agent-tasks/telemetry`). Default: none. */
  readonly telemetry?: Telemetry
  /** The source of time. Default: the system's. */
  readonly clock?: Clock
  /** Called with each line of the log. Default: `console.error`. */
  readonly writeLog?: (line: string) => void
}

const aSessionKey: OptionType = {
  expected: `a string of 1 to ${MAX_SESSION_KEY} characters`,
  accepts: (value) => typeof value === 'string' && value !== '' && value.length <= MAX_SESSION_KEY,
}

const anUntrustedFile: OptionType = {
  expected: 'untrusted of loadAgentConfig',
  accepts: (value) => typeof (value as Partial<UntrustedFile> | null)?.file === 'string',
}

const aFolderOrStore: OptionType = {
  expected: `${aName.expected}, or ${aStore.expected}`,
  accepts: (value) => aName.accepts(value) || aStore.accepts(value),
}

export const serverOptionTypes: OptionTypes<McpServerOptions> = {
  // The schema of the configuration checks its content.
  config: anObject,
  folder: aString,
  configFile: aString,
  untrusted: anUntrustedFile,
  projectFolder: aString,
  store: aFolderOrStore,
  session: aSessionKey,
  subagents: recordOf(aRunnable),
  taskManager: objectWith('the tasks of a cluster', 'submitTask', 'followTask', 'cancelTask', 'close'),
  telemetry: aTelemetry,
  clock: aClock,
  writeLog: aFunction,
}

export interface Backend {
  readonly configFile: string | undefined
  /** The untrusted configuration file; every call of a tool returns how to trust it. */
  readonly untrusted: UntrustedFile | undefined
  readonly config: AgentConfig
  /** The directory that relative paths of the configuration start from. */
  readonly folder: string
  readonly projectFolder: string
  readonly clock: Clock
  readonly telemetry: Telemetry | undefined
  readonly log: Log
  readonly manager: AsyncTaskManager
  /** Undefined without a store. */
  readonly session: SessionOfStore | undefined
  /** The command tasks of this process. */
  readonly taskManager: TaskManager
  /** Runs the commands of clients: `taskManager`, or a cluster. */
  readonly commandTasks: TaskManager | ClusterTasks
  readonly pool: InstancePool
  /** The instances that clients see: those of the pool, or of a cluster. */
  readonly instances: InstanceSource
  readonly slots: ClientSlots
  readonly subagents: ReadonlyMap<string, FlatSubagent>
  /** Stops every task and every program; resolves when they have ended. Running tasks are cancelled, or with a store, interrupted. */
  close(): Promise<void>
}

/**
 * Creates the backend. Connects no instance and starts no program.
 * @throws InvalidInputError for an invalid configuration; StoreError when the store cannot be opened, InvalidSettingError for a setting that needs one
 */
export function createBackend(options: McpServerOptions = {}): Backend {
  const { folder = process.cwd(), projectFolder = process.cwd(), clock = systemClock, telemetry } = options
  const { taskManager: cluster, untrusted } = options
  const config = parseInput(agentConfigSchema, options.config ?? {}, 'config')
  if (cluster !== undefined && config.instances.length > 0) {
    const expected = 'none, because commands run on the instances of a cluster'
    throw new InvalidInputError('config.instances', config.instances.map(({ id }) => id).join(', '), expected)
  }
  const findCommands = cluster && findCommandRunner(cluster)
  const maxCommands = config.commands?.maxCommands ?? 0
  const log = createLog('info', options.writeLog)
  checkRemote(config, options.subagents)
  const subagents = new Map([
    ...configuredSubagents(config, { folder, projectFolder }, clock),
    ...Object.entries(options.subagents ?? {}).map(([name, subagent]) => [name, flatRunner(subagent)] as const),
  ])
  // With an untrusted configuration the store stays closed: opening it would end earlier tasks, because their subagents are unknown.
  const session =
    untrusted === undefined ? createSession(config, { ...options, folder, projectFolder }, clock) : undefined
  const manager = new AsyncTaskManager({
    maxAsyncTasks: totalOf(config),
    maxCommands: maxCommands === -1 ? -1 : Math.max(MIN_TOTAL, maxCommands),
    maxForegroundTasks: MAX_IN_PLACE_OF_ALL,
    whenFull: config.whenFull,
    queue: { max: config.queueMax },
    ...(config.schedules && {
      schedules: { maxPerOwner: config.schedules.maxPerOwner, minPeriodMs: config.schedules.minPeriodSeconds * 1000 },
    }),
    monitors: monitorLimits(config, folder) ?? {},
    limits: config.limits,
    clock,
    createId,
    onError: (error, { source, taskId }) =>
      log(
        source === 'late-result' ? 'warn' : 'error',
        taskId === undefined ? source : `${source} of task ${taskId}`,
        error,
      ),
    ...defined({ store: session, telemetry }),
    findRunner: (name) => {
      const subagent = subagents.get(name)
      return findCommands?.(name) ?? (subagent && definitionOf(subagent))
    },
  })
  const pool = createInstancePool(config.instances, { folder, clock, log })
  const taskManager = new TaskManager({
    instances: pool.instances,
    clock,
    telemetry,
    engine: createFairEngine(createInProcessEngine({ clock }), clock),
    onError: (error, { source }) => log(source === 'late-result' ? 'warn' : 'error', source, error),
  })
  const slots = new ClientSlots(manager, clientLimits(config), session?.earlierTasks)
  manager.reads.use(schedules).launching = (owner, launch) => slots.launchScheduled(owner, launch)
  manager.reads.use(continuing).launching = (owner, launch) => slots.launchScheduled(owner, launch)
  manager.reads.use(subagentOffer).offer = {
    owner: STDIO_OWNER,
    list: () => subagents,
    launching: (owner, launch) => slots.launchScheduled(owner, launch),
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
    manager,
    session,
    taskManager,
    pool,
    subagents,
    commandTasks: cluster ?? taskManager,
    instances: cluster === undefined ? instancesOfPool(pool, taskManager) : instancesOfCluster(cluster),
    slots,
    close: () =>
      (closing ??= (async () => {
        if (session !== undefined) await leave(manager, session, subagents)
        await Promise.all([manager.dispose(), taskManager.dispose()])
        await Promise.all([pool.close(), cluster?.close()])
      })()),
  }
}

/** Only the command line can send tasks to workers. Programs pass a runner of `agent-tasks/bullmq`. */
function checkRemote({ subagents }: AgentConfig, runners: McpServerOptions['subagents'] = {}): void {
  const index = subagents.findIndex(({ name, runsOn }) => runsOn === 'workers' && !Object.hasOwn(runners, name))
  if (index === -1) return
  const expected = "'server', unless options.subagents has its runner (bullmqRunner of agent-tasks/bullmq)"
  throw new InvalidInputError(`config.subagents[${index}].runsOn`, 'workers', expected)
}

const stopped = (what: string): string =>
  `The server ended before the program (${what}) did, and stopped it. Launch it again if it is still needed.`
const cancelled = (what: string): string =>
  `The server ended before the commands (${what}) did, and cancelled them. Launch them again if they are still needed.`

/** Stops running tasks, in a state from which the next server of the session reports them to its client. */
async function leave(
  manager: AsyncTaskManager,
  session: SessionOfStore,
  subagents: Backend['subagents'],
): Promise<void> {
  const { reads } = manager
  for (const entry of reads.ledger.running()) {
    const { id, subagentName, goalPrompt } = entry.record
    // The next server looks for runs that survive: programs, and commands of a cluster.
    const isProgram = subagents.get(subagentName)?.survivesHost === true
    if (!isProgram && reads.persistence?.keyOf(entry) === undefined) continue
    const run = currentRuns.get(entry)
    const what = taskName({ subagentName, goalPrompt })
    manager.failTask(id, isProgram ? stopped(what) : cancelled(what))
    run?.abort()
  }
  // After the store is sealed no change is written, not even the confirmation of answers that were written out.
  reads.persistence?.confirmOwner()
  // The failure was already reported.
  await manager.stored().catch(() => undefined)
  session.seal()
}

function clientLimits({ maxAsyncTasks, whenFull, queueMax, commands }: AgentConfig): ClientLimits {
  return {
    maxAsyncTasks,
    maxWaiting: whenFull === 'queue' ? queueMax : 0,
    maxCommands: commands?.maxCommands ?? 0,
  }
}

/** The monitor limits of the model; undefined where the configuration has no monitors. */
export function monitorLimits({ monitors }: AgentConfig, folder: string): MonitorLimits | undefined {
  return monitors && defined({ ...monitors, files: monitors.files?.map((file) => resolve(folder, file)) })
}

/** The minimum of the limit for background tasks of all clients. */
const MIN_TOTAL = 50

function totalOf({ maxAsyncTasks, maxAsyncTasksOfAllClients, whenFull }: AgentConfig): number {
  if (whenFull === 'queue') return maxAsyncTasksOfAllClients ?? maxAsyncTasks
  return maxAsyncTasksOfAllClients ?? (maxAsyncTasks === -1 ? -1 : Math.max(MIN_TOTAL, maxAsyncTasks))
}

/**
 * An id is the key to its task, so it must not be guessable (SEP-2663), and it travels in an HTTP header: it is random and ASCII.
 */
function createId(prefix: string): string {
  const name = prefix.replace(/[^A-Za-z0-9_-]+/g, '-').slice(0, 64)
  return `${name}-${randomUUID()}`
}
