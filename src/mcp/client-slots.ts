/** How many background tasks each client has: one client cannot take the slots of the others. */
import { isTerminal } from '../../machines/task-entry.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { foregroundLimit } from '../tools/task-runs.js'
import { errorResult, type ToolResult } from '../tools/tool.js'
import { FOLLOW_UPS } from './follow-ups.js'

/** Counts what the calls of each client launch. */
export interface CallSlots {
  /**
   * Makes a call that launches something, unless its owner has as much as it may.
   * @param call may say when it has launched it; otherwise it has when it returns
   */
  launch(owner: string, call: (onLaunched: () => void) => Promise<ToolResult>): Promise<ToolResult>
  /** Counts the task of a result, if it is queued or runs in the background. */
  follow(owner: string, result: ToolResult): ToolResult
}

/** The most tasks that the calls of one client run in place, and those of all clients. They count until their runs have ended. */
export const MAX_IN_PLACE = 50
export const MAX_IN_PLACE_OF_ALL = 500

/** What a client can do when it has as much as it may. */
export const LIMIT_ADVICE = ['Wait until one has ended (wait_for_async_tasks)', `cancel one (${FOLLOW_UPS.cancel})`]

/** The most background tasks of one client; -1 for no limit. */
export interface ClientLimits {
  readonly maxAsyncTasks: number
  /** How many more may wait for a slot. */
  readonly maxWaiting: number
}

/** The slots of background tasks. */
export class ClientSlots implements CallSlots {
  readonly #manager: AsyncTaskManager
  readonly #limits: ClientLimits
  readonly #earlierTasks: ReadonlySet<string>
  /** The ids of tasks that run, and a symbol for each call that is launching one. */
  readonly #taken = new Map<string, Set<string | symbol>>()
  /** The owners of the calls in place that have not launched their task yet. */
  readonly #starting = new Map<symbol, string>()

  /** @param earlierTasks the tasks that an earlier process left: those that run count for their owner */
  constructor(manager: AsyncTaskManager, limits: ClientLimits, earlierTasks: ReadonlySet<string> = new Set()) {
    this.#manager = manager
    this.#limits = limits
    this.#earlierTasks = earlierTasks
    manager.settled$.subscribe(({ id, owner }) => this.#free(owner, id))
  }

  async launch(owner: string, call: (onLaunched: () => void) => Promise<ToolResult>): Promise<ToolResult> {
    const { maxAsyncTasks, maxWaiting } = this.#limits
    if (maxAsyncTasks !== -1 && this.#countOf(owner) >= maxAsyncTasks + maxWaiting) return this.#refusal()
    const launching = Symbol('launching')
    this.#take(owner, launching)
    try {
      return this.follow(owner, await call(() => undefined))
    } finally {
      this.#free(owner, launching)
    }
  }

  /**
   * Makes a call that runs a task in place, unless its owner has as many of these as it may.
   * @param call may say when it has launched it; otherwise it has when it returns
   */
  async runInPlace(owner: string, call: (onLaunched: () => void) => Promise<ToolResult>): Promise<ToolResult> {
    const starting = [...this.#starting.values()].filter((each) => each === owner).length
    if (starting + this.#manager.registry.pools.foreground.countOf(owner) >= MAX_IN_PLACE) {
      return foregroundLimit(MAX_IN_PLACE)
    }
    const key = Symbol('starting')
    this.#starting.set(key, owner)
    const onLaunched = (): void => void this.#starting.delete(key)
    try {
      return this.follow(owner, await call(onLaunched))
    } finally {
      onLaunched()
    }
  }

  follow(owner: string, result: ToolResult): ToolResult {
    const { agentId, async: isAsync } = result.metadata ?? {}
    const task = typeof agentId === 'string' ? this.#manager.getTask(agentId) : undefined
    if (task !== undefined && !isTerminal(task) && isAsync === true) this.#take(owner, task.id)
    return result
  }

  #countOf(owner: string): number {
    const adopted = this.#manager.getActiveTasks(owner).filter(({ id }) => this.#earlierTasks.has(id))
    return (this.#taken.get(owner)?.size ?? 0) + adopted.length
  }

  #take(owner: string, slot: string | symbol): void {
    const slots = this.#taken.get(owner) ?? new Set()
    this.#taken.set(owner, slots.add(slot))
  }

  #free(owner: string, slot: string | symbol): void {
    const slots = this.#taken.get(owner)
    slots?.delete(slot)
    if (slots?.size === 0) this.#taken.delete(owner)
  }

  #refusal(): ToolResult {
    const { maxAsyncTasks, maxWaiting } = this.#limits
    const max = maxAsyncTasks + maxWaiting
    const reason = `Max async tasks (${maxAsyncTasks}) reached`
    const queue = maxWaiting === 0 ? '' : `, and the queue of this client is full (${maxWaiting})`
    const advice =
      max === 0
        ? 'Run the task synchronously (async: false).'
        : `${LIMIT_ADVICE.join(', ')}, or run this one synchronously (async: false).`
    const text = `${reason}${queue}. ${advice}`
    return errorResult('limit_reached', `${reason}${queue}`, { llmContent: text, metadata: { max } })
  }
}
