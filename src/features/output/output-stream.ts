/** Streams the output of a task from a cursor until the task ends. */
import { holdsSlot } from '../../../machines/task-status.js'
import { TaskData } from '../../../machines/task-data.js'
import { OutputLog, outputLogs } from './output-log.js'
import type { Observable } from 'rxjs'
import type { Recipient } from '../../isolation/own-context.js'
import { isTerminal, type TaskEntry } from '../../../machines/task-entry.js'
import { IsolatedObservable } from '../../isolation/isolated-observable.js'
import { taskWatchers } from '../../async-tasks/task-watchers.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import type { RegistryReads } from '../../async-tasks/registry-reads.js'

/** A part of a task's output. */
export interface TaskOutputEvent {
  /** The id of the task. */
  readonly taskId: string
  /** The text. It starts and ends with whole characters. */
  readonly text: string
  /** The cursor after the text, for `readOutput` and `output$`. */
  readonly cursor: number
}

/** The maximum size of one event, in bytes. */
const EVENT_BYTES = 65_536

/**
 * Returns an Observable of the output of a task. For each subscriber only a cursor is kept, so a slow subscriber misses output that is no longer kept.
 * @param entry undefined for an unknown task, whose stream completes at once
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

class OutputReader {
  readonly #entry: TaskEntry
  readonly #subscriber: Recipient<TaskOutputEvent>
  #cursor: number | undefined
  #isReading = false
  #isEnding = false

  constructor(entry: TaskEntry, subscriber: Recipient<TaskOutputEvent>, cursor: number | undefined) {
    this.#entry = entry
    this.#subscriber = subscriber
    this.#cursor = cursor
  }

  /** Emits the new output. If the subscriber appends output in reaction, the running call emits that too. */
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

  /** Emits the remaining output and completes. If the subscriber itself has ended the task in reaction to output, the running `read` completes. */
  end(): void {
    this.#isEnding = true
    this.read()
  }

  #next(): TaskOutputEvent | undefined {
    return readOutput(this.#entry, this.#cursor)
  }
}

/** Reads the output of a task from a cursor, up to the size of one event. Returns undefined if there is none. */
export function readOutput(entry: TaskEntry, cursor: number | undefined): TaskOutputEvent | undefined {
  const chunk = outputLogs.get(entry)?.read(cursor, EVENT_BYTES)
  if (chunk === undefined || chunk.text === '') return undefined
  return { taskId: entry.record.id, text: chunk.text, cursor: chunk.nextCursor }
}

/** Whether a task has ended, and with a store also that its end is stored and published. Also true when no further change is published. */
export function isOver(registry: RegistryReads, entry: TaskEntry): boolean {
  const isPublished = registry.persistence === undefined || entry.isHandled
  return registry.use(taskWatchers).isClosed || (isTerminal(entry.record) && isPublished)
}

/** For each task, the readers of its output and progress. Their `read` is called after each change and must not throw. */
export const followers = new TaskData<Set<{ read(): void }>>()

/** @param text what was appended to the output, if the report is output */
export function notifyOfReport(registry: TaskRegistry, entry: TaskEntry, text?: string): void {
  registry.features.run('reported', entry, text)
  for (const follower of [...(followers.get(entry) ?? [])]) follower.read()
}

/**
 * Appends to the output of a running task.
 * @param limit how much of it is kept, in bytes
 * @returns false if the task is not running
 */
export function appendOutput(registry: TaskRegistry, entry: TaskEntry, text: string, limit: number): boolean {
  if (!holdsSlot(entry.record.status)) return false
  outputLogs.ensure(entry, () => new OutputLog(limit)).append(text)
  notifyOfReport(registry, entry, text)
  return true
}
