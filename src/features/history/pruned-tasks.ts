/** Remembers the last 1000 pruned tasks, so that an error about an unknown id can say that the task was pruned. */
import type { AsyncTaskInfo } from '../../../machines/records.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { ownText } from '../../data/own-text.js'
import type { Feature } from '../../async-tasks/feature.js'

/** Bounds the memory: ids and names have at most 512 characters each. */
const MAX_PRUNED = 1000

export interface PrunedTask extends Pick<AsyncTaskInfo, 'id' | 'owner' | 'subagentName'> {
  /** In ms since the epoch. */
  readonly prunedAt: number
}

export class PrunedTasks implements Feature {
  readonly #tasks = new Map<string, PrunedTask>()
  /** The same tasks in the order in which they were pruned, as a ring buffer. */
  readonly #latest: PrunedTask[] = []
  #next = 0

  pruned({ record }: TaskEntry, prunedAt: number): void {
    const id = ownText(record.id)
    const task = { id, owner: ownText(record.owner), subagentName: ownText(record.subagentName), prunedAt }
    const oldest = this.#latest[this.#next]
    if (oldest !== undefined && this.#tasks.get(oldest.id) === oldest) this.#tasks.delete(oldest.id)
    this.#tasks.set(id, task)
    this.#latest[this.#next] = task
    this.#next = (this.#next + 1) % MAX_PRUNED
  }

  /**
   * Returns the pruned task whose id is this text, or else the only pruned task whose id begins with this text. With `owner`, only tasks of this
   * owner are found.
   */
  find(idOrPrefix: string, owner?: string): PrunedTask | undefined {
    const isVisible = (task: PrunedTask): boolean => owner === undefined || task.owner === owner
    const exact = this.#tasks.get(idOrPrefix)
    if (exact !== undefined && isVisible(exact)) return exact
    if (idOrPrefix === '') return undefined
    const found = [...this.#tasks.values()].filter((task) => task.id.startsWith(idOrPrefix) && isVisible(task))
    return found.length === 1 ? found[0] : undefined
  }
}

export const prunedTasks = (): PrunedTasks => new PrunedTasks()
