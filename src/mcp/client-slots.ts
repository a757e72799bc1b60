/** Limits the tasks of each client, so that one client cannot take the slots of the others. */
import type { ActiveTaskInfo } from '../../machines/records.js'
import { isTerminal } from '../../machines/task-entry.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { AgentTasksError } from '../errors.js'
import { foregroundLimit } from '../tools/task-runs.js'
import { errorResult, type ToolResult } from '../tools/tool.js'
import type { SlotKind } from '../tools/tool-descriptor.js'
import { clientOf } from './callers.js'
import { FOLLOW_UPS } from './follow-ups.js'

/**
 * The maximum number of tasks that run while their call waits for them (`async: false`): of one client, and of all clients together. A task counts until
 * its run has ended.
 */
export const MAX_IN_PLACE = 50
export const MAX_IN_PLACE_OF_ALL = 500

const ADVICE = ['Wait until one has ended (wait_for_async_tasks)', `cancel one (${FOLLOW_UPS.cancel})`]

/** The limits of one client; -1 for no limit. */
export interface ClientLimits {
  readonly maxAsyncTasks: number
  /** The maximum number of further background tasks that wait for a slot. */
  readonly maxWaiting: number
  /** The maximum number of commands. A command counts until its program has ended, even if its task was cancelled earlier. */
  readonly maxCommands: number
}

interface Kind {
  /** -1 for no limit. */
  readonly max: number
  readonly countOf: (client: string) => number
  /** The result of a call at the limit. */
  readonly refuse: () => ToolResult
}

/** Counts the tasks that each client's calls launch. */
export class ClientSlots {
  readonly #manager: AsyncTaskManager
  readonly #kinds: Readonly<Record<SlotKind, Kind>>
  /** Calls that have not launched their task yet. A call that launches a background task stays here until it returns. */
  readonly #starting = new Set<{ readonly kind: SlotKind; readonly client: string }>()
  /** The ids of background tasks that have not ended. */
  readonly #background = new Set<string>()

  /** @param earlierTasks the ids of the tasks of an earlier process; those that still run count for their owner */
  constructor(manager: AsyncTaskManager, limits: ClientLimits, earlierTasks: ReadonlySet<string> = new Set()) {
    const { maxAsyncTasks, maxWaiting, maxCommands } = limits
    const { pools } = manager.reads
    const isCounted = (id: string): boolean => this.#background.has(id) || earlierTasks.has(id)
    // A client with a token may have several sessions. Each session is an owner.
    const isOf = (client: string) => (owner: string) => clientOf(owner) === client
    const queuedOf = (client: string) => manager.getQueuedTasks().filter(({ owner }) => clientOf(owner) === client)
    this.#manager = manager
    this.#kinds = {
      background: {
        max: maxAsyncTasks === -1 ? -1 : maxAsyncTasks + maxWaiting,
        countOf: (client) =>
          manager.getActiveTasks().filter(({ id, owner }) => clientOf(owner) === client && isCounted(id)).length,
        refuse: () => backgroundRefusal(limits),
      },
      inPlace: {
        max: MAX_IN_PLACE,
        // Two more groups count: background tasks above the limit, because a call that waited was moved to the background, and calls whose task waits
        // for its concurrency key.
        countOf: (client) =>
          pools.foreground.countOf(isOf(client)) +
          queuedOf(client).filter(({ isForeground }) => isForeground === true).length +
          excess(pools.task.countOf(isOf(client)), maxAsyncTasks),
        refuse: () => foregroundLimit(MAX_IN_PLACE),
      },
      command: {
        max: maxCommands,
        // Commands that wait for other tasks count, because they take a slot later.
        countOf: (client) =>
          pools.command.countOf(isOf(client)) + queuedOf(client).filter(({ kind }) => kind === 'command').length,
        refuse: () => commandRefusal(maxCommands),
      },
    }
    manager.settled$.subscribe(({ id }) => this.#background.delete(id))
  }

  /**
   * Makes a call that launches a task of this kind, or refuses it if the owner is at the limit.
   * @param call gets a function to report that the task was launched; without a report, the task counts as launched when the call returns
   */
  async launch(
    kind: SlotKind,
    owner: string,
    call: (onLaunched: () => void) => Promise<ToolResult>,
  ): Promise<ToolResult> {
    const { max, countOf, refuse } = this.#kinds[kind]
    const client = clientOf(owner)
    const calls = [...this.#starting].filter((each) => each.kind === kind && each.client === client).length
    if (max !== -1 && calls + countOf(client) >= max) return refuse()
    const starting = { kind, client }
    this.#starting.add(starting)
    try {
      const result = await call(() => {
        // A background task stays in `#starting` until `#follow` counts it.
        if (kind !== 'background') this.#starting.delete(starting)
      })
      if (kind !== 'command') this.#follow(result)
      return result
    } finally {
      this.#starting.delete(starting)
    }
  }

  /**
   * Launches a task for a schedule, or one that continues an earlier task.
   * @throws AgentTasksError `TASK_LIMIT` when the owner is at the limit for background tasks
   */
  launchScheduled(owner: string, launch: () => ActiveTaskInfo): ActiveTaskInfo {
    const { max, countOf, refuse } = this.#kinds.background
    if (max !== -1 && countOf(clientOf(owner)) >= max) {
      throw new AgentTasksError('TASK_LIMIT', refuse().error?.message ?? '')
    }
    const task = launch()
    this.#background.add(task.id)
    return task
  }

  /** Counts the task that a result names, if the task is queued or runs in the background. */
  #follow({ metadata: { agentId, async: isAsync } = {} }: ToolResult): void {
    const task = typeof agentId === 'string' ? this.#manager.getTask(agentId) : undefined
    if (task !== undefined && !isTerminal(task) && isAsync === true) this.#background.add(task.id)
  }
}

const excess = (count: number, max: number): number => (max === -1 ? 0 : Math.max(0, count - max))

function backgroundRefusal({ maxAsyncTasks, maxWaiting }: ClientLimits): ToolResult {
  const max = maxAsyncTasks + maxWaiting
  const queue = maxWaiting === 0 ? '' : `, and the queue of this client is full (${maxWaiting}, queueMax)`
  const advice =
    max === 0
      ? 'Run the task synchronously (async: false).'
      : `${ADVICE.join(', ')}, or run this one synchronously (async: false).`
  return refusal(`Max async tasks (${maxAsyncTasks}) reached${queue}`, advice, max)
}

function commandRefusal(max: number): ToolResult {
  const advice = `${ADVICE.join(', or ')}. A cancelled command counts until its program has ended.`
  return refusal(`Max commands (${max}) reached`, advice, max)
}

function refusal(reason: string, advice: string, max: number): ToolResult {
  return errorResult('limit_reached', reason, { llmContent: `${reason}. ${advice}`, metadata: { max } })
}
