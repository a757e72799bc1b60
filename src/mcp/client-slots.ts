/** How many background tasks each client has: one client cannot take the slots of the others. */
import { isTerminal } from '../../machines/task-entry.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { errorResult, type ToolResult } from '../tools/tool.js'
import { FOLLOW_UPS } from './follow-ups.js'

/** The slots of every client, by owner. */
export class ClientSlots {
  readonly #manager: AsyncTaskManager
  readonly #max: number
  readonly #earlierTasks: ReadonlySet<string>
  readonly #what: 'async tasks' | 'commands'
  /** The ids of tasks that run, and a symbol for each call that is launching one. */
  readonly #taken = new Map<string, Set<string | symbol>>()

  /**
   * @param max the most background tasks of one client; -1 for no limit
   * @param earlierTasks the tasks that an earlier process left: those that run count for their owner
   * @param what what is counted: only a task can also run without a slot
   */
  constructor(
    manager: AsyncTaskManager,
    max: number,
    earlierTasks: ReadonlySet<string> = new Set(),
    what: 'async tasks' | 'commands' = 'async tasks',
  ) {
    this.#what = what
    this.#manager = manager
    this.#max = max
    this.#earlierTasks = earlierTasks
    manager.settled$.subscribe(({ id, owner }) => this.#free(owner, id))
  }

  /** Makes a call that launches a background task, unless its owner has as many as it may. */
  async launch(owner: string, call: () => Promise<ToolResult>): Promise<ToolResult> {
    if (this.#max !== -1 && this.#countOf(owner) >= this.#max) return this.#refusal()
    const launching = Symbol('launching')
    this.#take(owner, launching)
    try {
      return this.follow(owner, await call())
    } finally {
      this.#free(owner, launching)
    }
  }

  /** Counts the task of a result, if it is queued or runs in the background. */
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
    const reason = `Max ${this.#what} (${this.#max}) reached`
    const others = ['Wait until one has ended (wait_for_async_tasks)', `cancel one (${FOLLOW_UPS.cancel})`]
    const advice =
      this.#what === 'commands'
        ? `${others.join(', or ')}.`
        : this.#max === 0
          ? 'Run the task synchronously (async: false).'
          : `${others.join(', ')}, or run this one synchronously (async: false).`
    return errorResult('limit_reached', reason, { llmContent: `${reason}. ${advice}`, metadata: { max: this.#max } })
  }
}
