/** Remembers the last thousand pruned tasks, so that a lookup can report them. */
import type { AsyncTaskInfo } from '../../../machines/records.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import type { Feature } from '../feature.js'

/** Ids and names have at most 512 characters each. */
const MAX_PRUNED = 1000

export interface PrunedTask extends Pick<AsyncTaskInfo, 'id' | 'owner' | 'subagentName'> {
  /** In ms since the epoch. */
  readonly prunedAt: number
}

export class PrunedTasks implements Feature {
  readonly #tasks = new Map<string, PrunedTask>()
  /** The tasks in the order of pruning, as a ring buffer. */
  readonly #latest: PrunedTask[] = []
  #next = 0

  pruned({ record }: TaskEntry, prunedAt: number): void {
    const { id, owner, subagentName } = record
    // Copied, because V8 keeps a whole text in memory while a slice of it exists.
    const task = structuredClone({ id, owner, subagentName, prunedAt })
    const oldest = this.#latest[this.#next]
    if (oldest !== undefined && this.#tasks.get(oldest.id) === oldest) this.#tasks.delete(oldest.id)
    this.#tasks.set(id, task)
    this.#latest[this.#next] = task
    this.#next = (this.#next + 1) % MAX_PRUNED
  }

  /** Returns the only pruned task of an owner (of any owner) whose id is this text or begins with it. */
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
