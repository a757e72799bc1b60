/** The messages to one run: each is taken at most once, in the order in which they were accepted (F7). */
import { PerTask } from '../../../machines/per-task.js'
import type { Feature } from '../feature.js'

/** The most messages that wait to be taken. */
export const MAX_WAITING_MESSAGES = 100

/** The most that they have together, in bytes of UTF-8 (256 KiB). */
export const MAX_WAITING_BYTES = 256 * 1024

/** What a run iterates over that takes no messages. */
export const NO_MESSAGES: AsyncIterable<string> = Object.freeze({
  [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve({ done: true as const, value: undefined }) }),
})

type Taker = (result: IteratorResult<string, undefined>) => void

/** Why a message was not accepted. */
export type InboxRefusal = 'closed' | 'full'

interface Waiting {
  readonly message: string
  readonly bytes: number
}

export class Inbox {
  readonly #waiting: Waiting[] = []
  #bytes = 0
  #takers: Taker[] = []
  #reader: object | undefined

  /** Queues a message, or hands it to the run that waits for one. */
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

  /** The messages, for a new run of the task: an earlier run gets none any more. Leaving a loop over them refuses further ones. */
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

  /** Ends the loop of the run, and drops what it has not taken. */
  close(): void {
    this.#leave()
    this.#waiting.length = 0
    this.#bytes = 0
  }

  /** What the run has not taken is for its next run, if there is one. */
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

/** The messages to the run of a task; only of a run that takes some. */
export const inboxes = new PerTask<Inbox>()

/** Closes the inboxes of ended tasks. */
export const messaging = (): Feature => ({ ended: (entry) => inboxes.get(entry)?.close() })
