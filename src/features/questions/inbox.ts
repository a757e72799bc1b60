/** The messages to the run of a task. The run takes each message at most once, in the order of sending (promise F7). */
import { TaskData } from '../../../machines/task-data.js'
import type { TaskEntry } from '../../../machines/task-entry.js'
import type { Feature } from '../../async-tasks/feature.js'

export const MAX_WAITING_MESSAGES = 100

/** The maximum total size of waiting messages, in bytes of UTF-8. */
export const MAX_WAITING_BYTES = 256 * 1024

/** What a run receives if it takes no messages: an iteration that is over at once. */
export const NO_MESSAGES: AsyncIterable<string> = Object.freeze({
  [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true as const, value: undefined }) }),
})

export type InboxRefusal = 'closed' | 'full'

interface Waiting {
  readonly message: string
  readonly bytes: number
}

export class Inbox {
  readonly #waiting: Waiting[] = []
  #bytes = 0
  #takers: ((result: IteratorResult<string, undefined>) => void)[] = []
  #reader: object | undefined

  /** Passes a message to a run that is waiting for one, or queues it. Returns why it was refused; undefined if it was accepted. */
  accept(message: string): InboxRefusal | undefined {
    if (this.#reader === undefined) return 'closed'
    const taker = this.#takers.shift()
    if (taker !== undefined) {
      taker({ done: false, value: message })
      return undefined
    }
    const bytes = new TextEncoder().encode(message).length
    if (this.#waiting.length >= MAX_WAITING_MESSAGES || this.#bytes + bytes > MAX_WAITING_BYTES) return 'full'
    this.#waiting.push({ message, bytes })
    this.#bytes += bytes
    return undefined
  }

  /**
   * Returns the messages for a new run. An iteration that an earlier run has opened ends. When the run leaves its loop, further messages are refused.
   */
  open(): AsyncIterable<string> {
    const reader = {}
    this.#endTakers()
    this.#reader = reader
    const iterator: AsyncIterator<string, undefined> = {
      next: () => (this.#reader === reader ? this.#take() : Promise.resolve({ done: true, value: undefined })),
      return: () => {
        if (this.#reader === reader) this.#leave()
        return Promise.resolve({ done: true, value: undefined })
      },
    }
    return { [Symbol.asyncIterator]: () => iterator }
  }

  /** Ends the loop of the run and drops waiting messages. */
  close(): void {
    this.#leave()
    this.#waiting.length = 0
    this.#bytes = 0
  }

  /** Ends the loop of the run. Waiting messages stay, in case the task has another run. */
  #leave(): void {
    this.#reader = undefined
    this.#endTakers()
  }

  #take(): Promise<IteratorResult<string, undefined>> {
    const next = this.#waiting.shift()
    if (next === undefined) return new Promise((resolve) => this.#takers.push(resolve))
    this.#bytes -= next.bytes
    return Promise.resolve({ done: false, value: next.message })
  }

  #endTakers(): void {
    for (const taker of this.#takers.splice(0)) taker({ done: true, value: undefined })
  }
}

export const inboxes = new TaskData<Inbox>()

const close = (entry: TaskEntry): void => inboxes.get(entry)?.close()

export const messaging = (): Feature => ({ ended: close, suspended: close })
