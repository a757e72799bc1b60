/** Remembers which tasks have been pruned, so that a lookup can say so: the latest thousand, by what a text about them needs. */
import type { AsyncTaskInfo } from '../../../machines/records.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import type { Feature } from '../feature.js'

/** The most that are remembered; an id and a name have at most 512 characters each. */
const MAX_PRUNED = 1000

/** A task whose record was pruned. */
export interface PrunedTask extends Pick<AsyncTaskInfo, 'id' | 'owner' | 'subagentName'> {
  /** In ms since the epoch. */
  readonly prunedAt: number
}

export class PrunedTasks implements Feature {
  readonly #tasks = new Map<string, PrunedTask>()
  /** The same in the order of pruning, as a ring. */
  readonly #latest: PrunedTask[] = []
  #next = 0

  pruned({ record }: TaskEntry, prunedAt: number): void {
    const { id, owner, subagentName } = record
    // Copies: V8 keeps a whole text while a slice of it lives.
    const task = structuredClone({ id, owner, subagentName, prunedAt })
    const oldest = this.#latest[this.#next]
    if (oldest !== undefined && this.#tasks.get(oldest.id) === oldest) this.#tasks.delete(oldest.id)
    this.#tasks.set(id, task)
    this.#latest[this.#next] = task
    this.#next = (this.#next + 1) % MAX_PRUNED
  }

  /** The task that an id, or the beginning of one, names without doubt among those of one owner, or of all. */
  find(idOrPrefix: string, owner?: string): PrunedTask | undefined {
    const isVisible = (task: PrunedTask): boolean => owner === undefined || task.owner === owner
    const exact = this.#tasks.get(idOrPrefix)
    if (exact !== undefined && isVisible(exact)) return exact
    if (idOrPrefix === '') return undefined
    const found = [...this.#tasks.values()].filter((task) => task.id.startsWith(idOrPrefix) && isVisible(task))
    return found.length === 1 ? found[0] : undefined
  }
}

/** The tasks of a registry whose records were pruned. */
export const prunedTasks = (): PrunedTasks => new PrunedTasks()
