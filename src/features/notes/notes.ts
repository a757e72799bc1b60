/**
 * Notes: texts for an owner that are not results of a run, such as the message of a schedule. A note is a task that completes at once, so that it is
 * delivered like a result.
 */
import type { TaskEntry } from '../../../machines/task-entry.js'
import { AgentTasksError } from '../../errors.js'
import { freshId } from '../../data/ids.js'
import type { Feature } from '../../async-tasks/feature.js'
import { preview } from '../../data/preview.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'

/** The maximum of undelivered notes of an owner. */
export const MAX_OWED_NOTES = 100

/** While this many notes are owed, an owner gets no new source of notes. The last note of each source is added beyond `MAX_OWED_NOTES`. */
const FULL = 2 * MAX_OWED_NOTES

export interface Note {
  readonly owner: string
  /** What has created the note, such as `schedule`. It is stored as the subagent name. */
  readonly source: string
  /** What the note is about. It is stored as the goal. */
  readonly title: string
  readonly text: string
  /**
   * Whether the note is added even if `MAX_OWED_NOTES` is reached. Only for the last note of a source, because no later note would report what is
   * missing.
   */
  readonly isFinal?: boolean
}

export class Notes implements Feature {
  /** Waits that end when a note arrives for `owner`; undefined for any owner. */
  readonly #waits = new Set<{ readonly owner: string | undefined; readonly end: () => void }>()
  readonly #registry: TaskRegistry

  constructor(registry: TaskRegistry) {
    this.#registry = registry
  }

  /** Whether a note is owed that no message carries yet. */
  isOwed(owner: string | undefined): boolean {
    return this.owed(owner) > 0
  }

  owed(owner: string | undefined): number {
    return this.#registry.ledger.owed(owner).filter(({ record }) => record.isNote === true).length
  }

  /**
   * Refuses a new source of notes while too many are owed to its owner. Without this check, short-lived sources would add any number of last notes.
   * @throws AgentTasksError with the code of the limit of these sources
   */
  checkRoom(owner: string, code: 'SCHEDULE_LIMIT' | 'MONITOR_LIMIT'): void {
    const owed = this.owed(owner)
    if (owed < FULL) return
    throw new AgentTasksError(
      code,
      `Max undelivered notes of an owner (${FULL}) reached: ${owed} are owed to ${preview(owner)}. Deliver them first.`,
    )
  }

  /** Calls `end` when a note arrives. Returns an unsubscribe function. */
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
 * Adds a note for an owner, in one change and one write.
 * @returns undefined if too many notes are owed to the owner, or if the registry is disposed
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
