/** What all clients of one MCP server share: the registry of tasks, the subagents, and the instances with their lanes. */
import { randomUUID } from 'node:crypto'
import { AsyncTaskManager } from '../async-tasks/manager.js'
import { systemClock, type Clock } from '../clock.js'
import { TaskManager } from '../command-tasks/task-manager.js'
import { createFairEngine } from '../engine/fair-engine.js'
import { createInProcessEngine } from '../engine/in-process.js'
import { agentConfigSchema, type AgentConfig, type AgentConfigInput } from '../protocol/agent-config.js'
import { parseInput } from '../protocol/parse.js'
import type { SubagentDefinition } from '../tools/subagents.js'
import { configuredSubagents } from './configured-subagents.js'
import { createInstancePool, type InstancePool } from './instance-pool.js'
import { createReport, type Report } from './report.js'

/** What an MCP server serves. */
export interface BackendOptions {
  /** As in `agent-tasks.config.json`. */
  readonly config?: AgentConfigInput
  /** Where its relative paths start. Default: the working directory. */
  readonly folder?: string
  /** Subagents that are functions of this process, by name, besides those of the configuration. */
  readonly subagents?: Readonly<Record<string, SubagentDefinition>>
  /** Drives every timer and timestamp. Default: the platform's. */
  readonly clock?: Clock
  /** Gets each line of the log. Default: `console.error`. */
  readonly writeLog?: (line: string) => void
}

export interface Backend {
  readonly config: AgentConfig
  readonly clock: Clock
  readonly report: Report
  readonly manager: AsyncTaskManager
  readonly taskManager: TaskManager
  readonly pool: InstancePool
  readonly subagents: ReadonlyMap<string, SubagentDefinition>
  /** Ends every task and every program; resolves when nothing of them is left. */
  close(): Promise<void>
}

/**
 * Makes it, and begins to connect the instances.
 * @throws InvalidInputError for a configuration that does not fit
 */
export function createBackend(options: BackendOptions = {}): Backend {
  const { folder = process.cwd(), clock = systemClock } = options
  const config = parseInput(agentConfigSchema, options.config ?? {}, 'config')
  const report = createReport(options.writeLog)
  const subagents = new Map([...configuredSubagents(config, folder, clock), ...Object.entries(options.subagents ?? {})])
  const manager = new AsyncTaskManager({
    maxAsyncTasks: config.maxAsyncTasks,
    clock,
    createId,
    onError: (error, { source, taskId = 'none' }) =>
      report(source === 'late-result' ? 'warn' : 'error', `${source} of task ${taskId}`, error),
  })
  const pool = createInstancePool(config.instances, { folder, clock, report })
  const taskManager = new TaskManager({
    instances: pool.instances,
    clock,
    engine: createFairEngine(createInProcessEngine({ clock }), clock),
    onError: (error, { source }) => report(source === 'late-result' ? 'warn' : 'error', source, error),
  })
  let closing: Promise<void> | undefined
  return {
    ...{ config, clock, report, manager, taskManager, pool, subagents },
    close: () =>
      (closing ??= (async () => {
        await Promise.all([manager.dispose(), taskManager.dispose()])
        await pool.close()
      })()),
  }
}

/**
 * Whoever knows the id of a task may ask for it (SEP-2663: ids must not be guessable), and it travels in an HTTP header, so
 * it is random and ASCII.
 */
function createId(prefix: string): string {
  const name = prefix.replace(/[^A-Za-z0-9_-]+/g, '-').slice(0, 64)
  return `${name}-${randomUUID()}`
}
