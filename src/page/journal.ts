/**
 * The page's record of tasks, limited in number and bytes. For each task it has the row, the events and the marks on the timeline. For an ended task it
 * also has copies of the values, because the manager removes ended tasks. When a limit is exceeded, the task that ended first is dropped. Active tasks
 * are never dropped (promise G2 in docs/guarantees.md).
 */
import { omitUndefined } from '../data/omit-undefined.js'
import { Retention, type Retained } from '../store/history/retention.js'
import type { ClosedQuestion, PageTask, PageTaskKind, PageTaskState, TaskEvent, TaskMark } from './wire.js'
import { answerBytes } from './closed-questions.js'
import { heldBytes, rowText } from './texts.js'
import { Versioned, type Versions } from './versioned.js'

/** The maximum numbers of events, marks and closed questions of one task. */
const MAX_EVENTS = 200
const MAX_MARKS = 20
const MAX_ANSWERS = 20

/** The approximate sizes of a task and of one event without their texts, in bytes. */
const ENTRY_BYTES = 1000
const EVENT_BYTES = 100

/** A task in the journal. `AsyncEntry` and `CommandEntry` add the data of their kind of task. */
export interface JournalEntry {
  readonly key: string
  readonly kind: PageTaskKind
  /** Only ended tasks are dropped. */
  isEnded: boolean
  state: PageTaskState
  /** The size of the entry without its events, in bytes. */
  heldBytes: number
  row(): Omit<PageTask, 'seq' | 'marks' | 'key' | 'kind' | 'state'>
}

export interface Happening {
  readonly at: number
  readonly event?: string
  readonly detail?: string | undefined
  readonly mark?: TaskMark['kind']
  readonly state?: PageTaskState
  readonly answer?: ClosedQuestion
}

export interface JournalOptions<Entry> {
  readonly versions: Versions
  readonly maxTasks: number
  readonly maxBytes: number
  /** Called when a task is dropped. */
  readonly onForgotten: (entry: Entry) => void
}

interface History {
  readonly events: TaskEvent[]
  readonly marks: TaskMark[]
  readonly answers: ClosedQuestion[]
  /** The size of the texts in `events` and `answers`, in bytes. */
  textBytes: number
  /** The size of the whole task, in bytes. */
  bytes: number
  /** The place of the task among those that may be dropped; undefined until the task ends. */
  retained: Retained | undefined
}

export class Journal<Entry extends JournalEntry> {
  readonly #options: JournalOptions<Entry>
  readonly #tasks: Versioned<Entry>
  readonly #histories = new Map<string, History>()
  /** The ended tasks, which may be dropped. Active tasks count towards the limits, too. */
  readonly #ended: Retention<Entry>
  readonly #counts: Record<PageTaskKind, Map<PageTaskState, number>> = { async: new Map(), command: new Map() }

  constructor(options: JournalOptions<Entry>) {
    const { versions, maxTasks, maxBytes } = options
    this.#options = options
    this.#tasks = new Versioned(versions)
    this.#ended = new Retention({
      maxCount: maxTasks,
      maxSize: maxBytes,
      onDropped: (entry) => this.#drop(entry),
    })
  }

  get size(): number {
    return this.#tasks.size
  }

  /** The size of all tasks, in bytes. */
  get bytes(): number {
    return this.#ended.size
  }

  get(key: string): Entry | undefined {
    return this.#tasks.get(key)
  }

  counts(kind: PageTaskKind): ReadonlyMap<PageTaskState, number> {
    return this.#counts[kind]
  }

  eventsOf(key: string): readonly TaskEvent[] {
    return this.#histories.get(key)?.events ?? []
  }

  /** Returns the last 20 questions of a task that are no longer open. */
  answersOf(key: string): readonly ClosedQuestion[] {
    return this.#histories.get(key)?.answers ?? []
  }

  /** Records that a person answered a question on the page. Only the latest closed question is checked. */
  noteAnsweredOnPage(entry: Entry, questionId: string): void {
    const answers = this.#histories.get(entry.key)?.answers
    const answer = answers?.at(-1)
    if (answer?.id !== questionId) return
    answers?.splice(-1, 1, { ...answer, by: 'page' })
    this.update(entry)
  }

  add(entry: Entry): void {
    // A host may use the id of a forgotten task again.
    const earlier = this.#tasks.get(entry.key)
    if (earlier !== undefined) this.#forget(earlier)
    this.#tasks.add(entry.key, entry)
    this.#histories.set(entry.key, { events: [], marks: [], answers: [], textBytes: 0, bytes: 0, retained: undefined })
    this.#ended.hold(0, 1)
    this.#count(entry, 1)
    this.#measure(entry)
    this.#ended.trim()
  }

  /** Updates the row of a task. Adds an event, a mark and a closed question if `happening` has them. */
  update(entry: Entry, happening?: Happening): void {
    if (this.#tasks.get(entry.key) !== entry) return
    if (happening !== undefined) this.#note(entry, happening)
    this.#tasks.touch(entry.key)
    this.#measure(entry)
    this.#ended.trim()
  }

  /** Marks a task as ended, so that it may be dropped. */
  end(entry: Entry): void {
    entry.isEnded = true
    if (this.#tasks.get(entry.key) !== entry) return
    const history = this.#histories.get(entry.key)
    if (history !== undefined && history.retained === undefined) {
      this.#ended.giveBack(history.bytes, 1)
      history.retained = this.#ended.add(entry, history.bytes)
    }
    this.#measure(entry)
    this.#ended.trim()
  }

  rowOf(entry: Entry): PageTask {
    const { key, kind, state } = entry
    const { marks = [] } = this.#histories.get(key) ?? {}
    const seq = this.#tasks.versionOf(key)
    return { key, kind, state, ...entry.row(), ...(marks.length > 0 && { marks }), seq }
  }

  /** Returns the changes since a version; undefined if they are no longer known. */
  since(version: number): { readonly tasks: readonly Entry[]; readonly removed: readonly string[] } | undefined {
    const difference = this.#tasks.since(version)
    return difference && { tasks: difference.changed, removed: difference.removed }
  }

  /** All tasks, newest first. */
  newestFirst(): Entry[] {
    return [...this.#tasks.values()].reverse()
  }

  #note(entry: Entry, { at, event, detail, mark, state, answer }: Happening): void {
    const history = this.#histories.get(entry.key)
    if (history === undefined) return
    if (state !== undefined && state !== entry.state) {
      this.#count(entry, -1)
      entry.state = state
      this.#count(entry, 1)
    }
    if (event !== undefined) {
      const shown = detail === undefined ? undefined : rowText(detail)
      history.events.push({ at, event, state: entry.state, ...omitUndefined({ detail: shown }) })
      history.textBytes += heldBytes(shown)
      if (history.events.length > MAX_EVENTS) history.textBytes -= heldBytes(history.events.shift()?.detail)
    }
    if (mark !== undefined) {
      history.marks.push({ at, kind: mark })
      if (history.marks.length > MAX_MARKS) history.marks.shift()
    }
    if (answer !== undefined) {
      history.answers.push(answer)
      history.textBytes += answerBytes(answer)
      const oldest = history.answers.length > MAX_ANSWERS ? history.answers.shift() : undefined
      if (oldest !== undefined) history.textBytes -= answerBytes(oldest)
    }
  }

  #count({ kind, state }: Entry, by: number): void {
    const counts = this.#counts[kind]
    counts.set(state, (counts.get(state) ?? 0) + by)
  }

  #measure(entry: Entry): void {
    const history = this.#histories.get(entry.key)
    if (history === undefined) return
    const { events, marks, textBytes } = history
    const bytes = ENTRY_BYTES + EVENT_BYTES * (events.length + marks.length) + textBytes + entry.heldBytes
    if (history.retained === undefined) this.#ended.hold(bytes - history.bytes)
    else this.#ended.resize(history.retained, bytes)
    history.bytes = bytes
  }

  #forget(entry: Entry): void {
    const { bytes = 0, retained } = this.#histories.get(entry.key) ?? {}
    if (retained === undefined) this.#ended.giveBack(bytes, 1)
    else this.#ended.remove(retained)
    this.#drop(entry)
  }

  #drop(entry: Entry): void {
    const { key } = entry
    this.#histories.delete(key)
    this.#count(entry, -1)
    this.#tasks.remove(key)
    this.#options.onForgotten(entry)
  }
}
