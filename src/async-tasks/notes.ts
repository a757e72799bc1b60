/** Notes: texts that are owed to an owner and that no run has produced. A note is a task that has completed at once, so that it is delivered as a result is. */
import type { TaskEntry } from '../../machines/task-entry.js'
import { freshId } from '../kernel/ids.js'
import type { Feature } from './feature.js'
import type { TaskRegistry } from './registry.js'

/** The most notes that an owner is owed at a time. */
export const MAX_OWED_NOTES = 100

export interface Note {
  readonly owner: string
  /** What tells it, as the name of its subagent, such as `schedule`. */
  readonly source: string
  /** What it is about, as its goal. */
  readonly title: string
  readonly text: string
  /** It is owed even if the owner is owed too many: nothing that comes later can tell the same. */
  readonly isFinal?: boolean
}

export class Notes implements Feature {
  /** What ends when a note comes, to this owner or to any. */
  readonly #waits = new Set<{ readonly owner: string | undefined; readonly end: () => void }>()
  readonly #registry: TaskRegistry

  constructor(registry: TaskRegistry) {
    this.#registry = registry
  }

  /** Whether a note is owed that no message carries. */
  isOwed(owner: string | undefined): boolean {
    return this.owed(owner) > 0
  }

  owed(owner: string | undefined): number {
    return this.#registry.ledger.owed(owner).filter(({ record }) => record.isNote === true).length
  }

  /** Calls `end` when a note comes. Returns what ends that. */
  onNote(owner: string | undefined, end: () => void): () => void {
    const wait = { owner, end }
    this.#waits.add(wait)
    return () => this.#waits.delete(wait)
  }

  ended({ record }: TaskEntry): void {
    if (record.isNote !== true) return
    for (const { owner, end } of this.#waits) if (owner === undefined || owner === record.owner) end()
  }
}

export const notes = (registry: TaskRegistry): Notes => new Notes(registry)

/**
 * Owes an owner a text, in one change and one write.
 * @returns undefined when the owner is owed too many notes, or the registry is disposed: nothing has changed then
 */
export function addNote(
  registry: TaskRegistry,
  { owner, source, title, text, isFinal = false }: Note,
): TaskEntry | undefined {
  if (!isFinal && registry.use(notes).owed(owner) >= MAX_OWED_NOTES) return undefined
  return registry.batch(() => {
    const id = freshId(registry.createId, source, (taken) => registry.history.get(taken) !== undefined)
    const admission = { id, owner, subagentName: source, goalPrompt: title, graceMs: 0, isNote: true } as const
    const answer = registry.ask({ type: 'task.register', admission, isLaunched: false })
    if (answer === undefined || !('entry' in answer)) return undefined
    answer.entry.ref?.send({ type: 'task.complete', output: { final_message: text } })
    return answer.entry
  })
}
