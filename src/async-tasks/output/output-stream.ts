/** What a task writes, as it comes: from a cursor on, to the end of the task. */
import { holdsSlot } from '../../../machines/task-status.js'
import { PerTask } from '../../../machines/per-task.js'
import { OutputLog, outputLogs } from './output-log.js'
import type { Observable, Subscriber } from 'rxjs'
import { isTerminal, type TaskEntry } from '../../../machines/task-entry.js'
import { IsolatedObservable } from '../../callbacks/isolated-observable.js'
import { taskWatchers } from '../task-watchers.js'
import type { RegistryReads } from '../registry-reads.js'

/** A part of what a task has written. */
export interface TaskOutputEvent {
  /** The task. */
  readonly taskId: string
  /** The text; it starts and ends at whole characters. */
  readonly text: string
  /** The position after its last byte: a cursor for `readOutput` and `output$`. */
  readonly cursor: number
}

/** The most bytes of one event. */
const EVENT_BYTES = 65_536

/**
 * The output of a task. Nothing is kept for a subscriber besides its cursor: one that is slow reads what is still kept.
 * @param entry undefined for a task that is not known, which has no output
 */
export function outputOf(
  registry: RegistryReads,
  entry: TaskEntry | undefined,
  cursor: number | undefined,
): Observable<TaskOutputEvent> {
  const watchers = registry.use(taskWatchers)
  const report = (error: unknown): void =>
    registry.report(error, { source: 'stream', ...(entry && { taskId: entry.record.id }) })
  return new IsolatedObservable<TaskOutputEvent>(report, (subscriber) => {
    if (entry === undefined) {
      subscriber.complete()
      return undefined
    }
    const reader = new OutputReader(entry, subscriber, cursor)
    reader.read()
    if (isOver(registry, entry)) {
      subscriber.complete()
      return undefined
    }
    const onChange = (): void => {
      if (watchers.isClosed || isTerminal(entry.record)) reader.end()
    }
    const readers = followers.ensure(entry, () => new Set())
    readers.add(reader)
    watchers.add(entry, onChange)
    return () => {
      readers.delete(reader)
      watchers.remove(entry, onChange)
    }
  })
}

/** Reads the output of a task for one subscriber. */
class OutputReader {
  readonly #entry: TaskEntry
  readonly #subscriber: Subscriber<TaskOutputEvent>
  #cursor: number | undefined
  #isReading = false
  #isEnding = false

  constructor(entry: TaskEntry, subscriber: Subscriber<TaskOutputEvent>, cursor: number | undefined) {
    this.#entry = entry
    this.#subscriber = subscriber
    this.#cursor = cursor
  }

  /** Emits what has been written since. A subscriber that writes is called again by the call that it is in. */
  read(): void {
    if (this.#isReading) return
    this.#isReading = true
    for (let chunk = this.#next(); chunk !== undefined && !this.#subscriber.closed; chunk = this.#next()) {
      this.#cursor = chunk.cursor
      this.#subscriber.next(chunk)
    }
    this.#isReading = false
    if (this.#isEnding) this.#subscriber.complete()
  }

  /** Emits the rest, and completes: also for a subscriber that ends the task while it is called, which has the rest by then. */
  end(): void {
    this.#isEnding = true
    this.read()
  }

  #next(): TaskOutputEvent | undefined {
    return readOutput(this.#entry, this.#cursor)
  }
}

/** What a task has written from a cursor on, as much as one event has; undefined when there is nothing. */
export function readOutput(entry: TaskEntry, cursor: number | undefined): TaskOutputEvent | undefined {
  const chunk = outputLogs.get(entry)?.read(cursor, EVENT_BYTES)
  if (chunk === undefined || chunk.text === '') return undefined
  return { taskId: entry.record.id, text: chunk.text, cursor: chunk.nextCursor }
}

/** Whether a task has ended, and its end is stored: then it was notified. */
export function isOver({ persistence, isDisposed }: RegistryReads, entry: TaskEntry): boolean {
  return isDisposed || (isTerminal(entry.record) && (persistence === undefined || entry.pruning !== 'unhandled'))
}

/** Those who follow what the run of a task writes and reports; `read` is called after each of both, and must not throw. */
export const followers = new PerTask<Set<{ read(): void }>>()

/** Notifies those who follow a task. */
export function notifyFollowers(entry: TaskEntry): void {
  for (const follower of [...(followers.get(entry) ?? [])]) follower.read()
}

/**
 * Appends to the output of a running task.
 * @param limit how much of it is kept, in bytes
 * @returns false, with nothing changed, when the task does not run
 */
export function appendOutput(entry: TaskEntry, text: string, limit: number): boolean {
  if (!holdsSlot(entry.record.status)) return false
  outputLogs.ensure(entry, () => new OutputLog(limit)).append(text)
  notifyFollowers(entry)
  return true
}
