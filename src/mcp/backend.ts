/** What all connections of one MCP server share: the async tasks, the subagents, and the instances with their lanes. */
import { randomUUID } from 'node:crypto'
import { AsyncTaskManager } from '../async-tasks/manager.js'
import { systemClock, type Clock } from '../clock.js'
import { TaskManager } from '../command-tasks/task-manager.js'
import { createFairEngine } from '../engine/fair-engine.js'
import { createInProcessEngine } from '../engine/in-process.js'
import { aDefinition } from '../engine/definition.js'
import { createLog, type Log } from '../http/log.js'
import { aClock, aFunction, anObject, aString, recordOf, type OptionTypes } from '../protocol/option-checks.js'
import { agentConfigSchema, type AgentConfig, type AgentConfigInput } from '../protocol/agent-config.js'
import { parseInput } from '../protocol/parse.js'
import { definitionOf, type SubagentDefinition } from '../tools/subagents.js'
import { ClientSlots } from './client-slots.js'
import { configuredSubagents } from './configured-subagents.js'
import { createInstancePool, type InstancePool } from './instance-pool.js'

/** Options of every MCP server. */
export interface McpServerOptions {
  /** The content of `agent-tasks.config.json`. Default: every setting at its default. */
  readonly config?: AgentConfigInput
  /** The directory that relative paths of the configuration start from. Default: the working directory. */
  readonly folder?: string
  /** The path of the configuration file, which the tool `task` names when there are no subagents. */
  readonly configFile?: string
  /**
   * The directory in which subagents without a `cwd` run, unless the client says where its project is (MCP roots, over stdio). Default: the
   * working directory.
   */
  readonly projectFolder?: string
  /** Further subagents, as functions of this process, by name. One with the name of a configured subagent replaces it. */
  readonly subagents?: Readonly<Record<string, SubagentDefinition>>
  /** The source of time. Default: the system's. */
  readonly clock?: Clock
  /** Called with each line of the log. Default: `console.error`. */
  readonly writeLog?: (line: string) => void
}

export const serverOptionTypes: OptionTypes<McpServerOptions> = {
  // Its schema checks the content.
  config: anObject,
  folder: aString,
  configFile: aString,
  projectFolder: aString,
  subagents: recordOf(aDefinition),
  clock: aClock,
  writeLog: aFunction,
}

export interface Backend {
  readonly configFile: string | undefined
  readonly config: AgentConfig
  readonly projectFolder: string
  readonly clock: Clock
  readonly log: Log
  readonly manager: AsyncTaskManager
  readonly taskManager: TaskManager
  readonly pool: InstancePool
  readonly slots: ClientSlots
  readonly subagents: ReadonlyMap<string, SubagentDefinition>
  /** Cancels every task and stops every program; resolves when they have ended. */
  close(): Promise<void>
}

/**
 * Starts connecting the instances and returns at once.
 * @throws InvalidInputError for an invalid configuration
 */
export function createBackend(options: McpServerOptions = {}): Backend {
  const { folder = process.cwd(), projectFolder = process.cwd(), clock = systemClock } = options
  const config = parseInput(agentConfigSchema, options.config ?? {}, 'config')
  const log = createLog('info', options.writeLog)
  const subagents = new Map([
    ...configuredSubagents(config, { folder, projectFolder }, clock),
    ...Object.entries(options.subagents ?? {}),
  ])
  const manager = new AsyncTaskManager({
    maxAsyncTasks: totalOf(config),
    clock,
    createId,
    findRunner: (name) => {
      const subagent = subagents.get(name)
      return subagent && definitionOf(subagent)
    },
    onError: (error, { source, taskId = 'none' }) =>
      log(source === 'late-result' ? 'warn' : 'error', `${source} of task ${taskId}`, error),
  })
  const pool = createInstancePool(config.instances, { folder, clock, log })
  const taskManager = new TaskManager({
    instances: pool.instances,
    clock,
    engine: createFairEngine(createInProcessEngine({ clock }), clock),
    onError: (error, { source }) => log(source === 'late-result' ? 'warn' : 'error', source, error),
  })
  let closing: Promise<void> | undefined
  return {
    configFile: options.configFile,
    ...{ config, projectFolder, clock, log, manager, taskManager, pool, subagents },
    slots: new ClientSlots(manager, config.maxAsyncTasks),
    close: () =>
      (closing ??= (async () => {
        await Promise.all([manager.dispose(), taskManager.dispose()])
        await pool.close()
      })()),
  }
}

/** The most background tasks of all clients, unless one alone may have more. */
const MIN_TOTAL = 50

function totalOf({ maxAsyncTasks, maxAsyncTasksOfAllClients }: AgentConfig): number {
  return maxAsyncTasksOfAllClients ?? (maxAsyncTasks === -1 ? -1 : Math.max(MIN_TOTAL, maxAsyncTasks))
}

/**
 * An id is the key to its task, so it must not be guessable (SEP-2663), and it travels in an HTTP header: it is random and ASCII.
 */
function createId(prefix: string): string {
  const name = prefix.replace(/[^A-Za-z0-9_-]+/g, '-').slice(0, 64)
  return `${name}-${randomUUID()}`
}
