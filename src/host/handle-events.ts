/**
 * The events of one task, for a loop over its handle.
 *
 * Events are not queued. Each step of the loop reads what has changed since the previous step, so a slow loop uses no additional memory. The loop is
 * subscribed to the task only while it waits.
 */
import { taskWatchers } from '../async-tasks/task-watchers.js'
import { isTerminal, type TaskEntry } from '../../machines/task-entry.js'
import type { SettledTaskInfo, TaskProgress, TaskQuestion } from '../../machines/records.js'
import { followers, isOver, readOutput } from '../features/output/output-stream.js'
import type { RegistryReads } from '../async-tasks/registry-reads.js'

/** An event in a loop over a `TaskHandle`. */
export type TaskHandleEvent =
  /** The latest progress of the run. A slow loop misses earlier reports. */
  | { readonly type: 'progress'; readonly progress: TaskProgress }
  /** An open question. A slow loop misses questions that were answered meanwhile. */
  | { readonly type: 'question'; readonly question: TaskQuestion }
  /** New output. `cursor` is the number of bytes that the task has written up to the end of `text`. A slow loop misses output that is no longer kept. */
  | { readonly type: 'output'; readonly text: string; readonly cursor: number }
  /** The task has ended. This is the last event. */
  | { readonly type: 'end'; readonly record: SettledTaskInfo }

const OVER = { done: true, value: undefined } as const

type Step = IteratorResult<TaskHandleEvent, undefined>

/** Iterates over the events of a task until it ends. The first events describe the current state of the task. */
export function eventsOf(registry: RegistryReads, entry: TaskEntry): AsyncIterator<TaskHandleEvent, undefined> {
  const reader = new EventReader(registry, entry)
  let stopWaiting = (): void => undefined
  let isEnded = false
  let last: Promise<unknown> = Promise.resolve()

  const watchers = registry.use(taskWatchers)
  const nextChange = (): Promise<void> =>
    new Promise((resolve) => {
      const follower = { read: () => stopWaiting() }
      const readers = followers.ensure(entry, () => new Set())
      stopWaiting = () => {
        readers.delete(follower)
        watchers.remove(entry, follower.read)
        resolve()
      }
      readers.add(follower)
      watchers.add(entry, follower.read)
    })

  const step = async (): Promise<Step> => {
    while (!isEnded) {
      const event = reader.next()
      isEnded = event?.type === 'end' || (event === undefined && watchers.isClosed)
      if (event !== undefined) return { done: false, value: event }
      if (!isEnded) await nextChange()
    }
    return OVER
  }

  return {
    next: () => {
      // If `next` is called again before it has settled, the calls run one after the other.
      const taken = last.then(step)
      last = taken
      return taken
    },
    return: () => {
      isEnded = true
      stopWaiting()
      return Promise.resolve(OVER)
    },
  }
}

/** Returns one change for each call: the next difference between the task and what the reader has already returned. */
class EventReader {
  readonly #registry: RegistryReads
  readonly #entry: TaskEntry
  #cursor: number | undefined
  #progress: TaskProgress | undefined
  /** The ids of the open questions that the reader has already returned. */
  #asked: readonly string[] = []
  #wasOutput = false

  constructor(registry: RegistryReads, entry: TaskEntry) {
    this.#registry = registry
    this.#entry = entry
  }

  next(): TaskHandleEvent | undefined {
    // Progress and output take turns, so that a run with much output does not hide its progress, and the reverse.
    const [first, second] = this.#wasOutput ? [this.#report, this.#output] : [this.#output, this.#report]
    return this.#question() ?? first.call(this) ?? second.call(this) ?? this.#end()
  }

  #question(): TaskHandleEvent | undefined {
    const open = this.#entry.record.questions ?? []
    const question = open.find(({ id }) => !this.#asked.includes(id))
    if (question === undefined) return undefined
    this.#asked = open.map(({ id }) => id).filter((id) => id === question.id || this.#asked.includes(id))
    return { type: 'question', question }
  }

  #report(): TaskHandleEvent | undefined {
    const { progress } = this.#entry.record
    if (progress === undefined || progress === this.#progress) return undefined
    this.#progress = progress
    this.#wasOutput = false
    return { type: 'progress', progress }
  }

  #output(): TaskHandleEvent | undefined {
    const written = readOutput(this.#entry, this.#cursor)
    if (written === undefined) return undefined
    const { text, cursor } = written
    this.#cursor = cursor
    this.#wasOutput = true
    return { type: 'output', text, cursor }
  }

  #end(): TaskHandleEvent | undefined {
    const { record } = this.#entry
    return isTerminal(record) && isOver(this.#registry, this.#entry) ? { type: 'end', record } : undefined
  }
}
