/** How much each client may run at once: one client cannot take the slots of the others. */
import type { ActiveTaskInfo } from '../../machines/records.js'
import { isTerminal } from '../../machines/task-entry.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { AgentTasksError } from '../errors.js'
import { foregroundLimit } from '../tools/task-runs.js'
import { errorResult, type ToolResult } from '../tools/tool.js'
import type { SlotKind } from '../tools/tool-descriptor.js'
import { FOLLOW_UPS } from './follow-ups.js'

/** The most tasks that the calls of one client run in place, and those of all clients. They count until their runs have ended. */
export const MAX_IN_PLACE = 50
export const MAX_IN_PLACE_OF_ALL = 500

/** What a client can do when it has as much as it may. */
const ADVICE = ['Wait until one has ended (wait_for_async_tasks)', `cancel one (${FOLLOW_UPS.cancel})`]

/** What one client may have at once; -1 for no limit. */
export interface ClientLimits {
  /** Background tasks. */
  readonly maxAsyncTasks: number
  /** How many more of them may wait for a slot. */
  readonly maxWaiting: number
  /** Commands. A command counts until its program has ended, also where its task was cancelled before that. */
  readonly maxCommands: number
}

interface Kind {
  /** -1 for no limit. */
  readonly max: number
  /** How many tasks of the owner count. */
  readonly countOf: (owner: string) => number
  /** The result of a call that would be one too many. */
  readonly refuse: () => ToolResult
}

/** Counts what the calls of each client launch. */
export class ClientSlots {
  readonly #manager: AsyncTaskManager
  readonly #kinds: Readonly<Record<SlotKind, Kind>>
  /** The calls that have not launched their task yet; a call for the background counts until it has returned. */
  readonly #starting = new Set<{ readonly kind: SlotKind; readonly owner: string }>()
  /** The ids of tasks that calls have left in the background, until they end. */
  readonly #background = new Set<string>()

  /** @param earlierTasks the tasks that an earlier process left: those that run count for their owner */
  constructor(manager: AsyncTaskManager, limits: ClientLimits, earlierTasks: ReadonlySet<string> = new Set()) {
    const { maxAsyncTasks, maxWaiting, maxCommands } = limits
    const { pools } = manager.reads
    const isCounted = (id: string): boolean => this.#background.has(id) || earlierTasks.has(id)
    this.#manager = manager
    this.#kinds = {
      background: {
        max: maxAsyncTasks === -1 ? -1 : maxAsyncTasks + maxWaiting,
        countOf: (owner) => manager.getActiveTasks(owner).filter(({ id }) => isCounted(id)).length,
        refuse: () => backgroundRefusal(limits),
      },
      inPlace: {
        max: MAX_IN_PLACE,
        // Those that went on in the background above the limit of their client still count, and those that wait for a key.
        countOf: (owner) =>
          pools.foreground.countOf(owner) +
          manager.getQueuedTasks(owner).filter(({ isForeground }) => isForeground === true).length +
          excess(pools.task.countOf(owner), maxAsyncTasks),
        refuse: () => foregroundLimit(MAX_IN_PLACE),
      },
      command: {
        max: maxCommands,
        // One that waits for other tasks counts as well: it takes a slot when they have ended.
        countOf: (owner) =>
          pools.command.countOf(owner) + manager.getQueuedTasks(owner).filter(({ kind }) => kind === 'command').length,
        refuse: () => commandRefusal(maxCommands),
      },
    }
    manager.settled$.subscribe(({ id }) => this.#background.delete(id))
  }

  /**
   * Makes a call that launches a task, unless its owner has as much of the kind as it may.
   * @param call may say when it has launched it; otherwise it has when it returns
   */
  async launch(
    kind: SlotKind,
    owner: string,
    call: (onLaunched: () => void) => Promise<ToolResult>,
  ): Promise<ToolResult> {
    const { max, countOf, refuse } = this.#kinds[kind]
    const calls = [...this.#starting].filter((each) => each.kind === kind && each.owner === owner).length
    if (max !== -1 && calls + countOf(owner) >= max) return refuse()
    const starting = { kind, owner }
    this.#starting.add(starting)
    try {
      const result = await call(() => {
        // A task in the background is counted by the result of its call.
        if (kind !== 'background') this.#starting.delete(starting)
      })
      if (kind !== 'command') this.#follow(result)
      return result
    } finally {
      this.#starting.delete(starting)
    }
  }

  /** Launches a task of a schedule, or one that continues another. @throws AgentTasksError when its owner has as many background tasks as it may */
  launchScheduled(owner: string, launch: () => ActiveTaskInfo): ActiveTaskInfo {
    const { max, countOf, refuse } = this.#kinds.background
    if (max !== -1 && countOf(owner) >= max) throw new AgentTasksError('TASK_LIMIT', refuse().error?.message ?? '')
    const task = launch()
    this.#background.add(task.id)
    return task
  }

  /** Counts the task of a result, if it is queued or runs in the background. */
  #follow({ metadata: { agentId, async: isAsync } = {} }: ToolResult): void {
    const task = typeof agentId === 'string' ? this.#manager.getTask(agentId) : undefined
    if (task !== undefined && !isTerminal(task) && isAsync === true) this.#background.add(task.id)
  }
}

const excess = (count: number, max: number): number => (max === -1 ? 0 : Math.max(0, count - max))

function backgroundRefusal({ maxAsyncTasks, maxWaiting }: ClientLimits): ToolResult {
  const max = maxAsyncTasks + maxWaiting
  const queue = maxWaiting === 0 ? '' : `, and the queue of this client is full (${maxWaiting})`
  const advice =
    max === 0
      ? 'Run the task synchronously (async: false).'
      : `${ADVICE.join(', ')}, or run this one synchronously (async: false).`
  return refusal(`Max async tasks (${maxAsyncTasks}) reached${queue}`, advice, max)
}

function commandRefusal(max: number): ToolResult {
  const advice = `${ADVICE.join(', or ')}. One that was cancelled counts until its program has ended.`
  return refusal(`Max commands (${max}) reached`, advice, max)
}

function refusal(reason: string, advice: string, max: number): ToolResult {
  return errorResult('limit_reached', reason, { llmContent: `${reason}. ${advice}`, metadata: { max } })
}
