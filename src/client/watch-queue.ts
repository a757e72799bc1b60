/**
 * The unread events of a watch, as an async iterator. The server is not slowed down by a slow consumer: when the queue is full, the
 * oldest progress messages are dropped, never the `task_complete` (S7 in docs/guarantees.md).
 */
import type { TaskMessage } from './session.js'

export interface WatchQueue {
  readonly iterator: AsyncIterableIterator<TaskMessage, undefined>
  /** Adds an event; after `task_complete` the iteration ends. */
  push(event: TaskMessage): void
  /** Ends the iteration with an error. The pushed events are yielded first, or dropped if `isAtOnce` is true. */
  fail(error: unknown, isAtOnce?: boolean): void
}

interface Reader {
  readonly resolve: (result: IteratorResult<TaskMessage, undefined>) => void
  readonly reject: (error: unknown) => void
}

const DONE: IteratorResult<TaskMessage, undefined> = { done: true, value: undefined }

/**
 * @param maxBuffered the maximum number of unread events
 * @param ends `onEnd` is called once, when the queue takes no more events; `onRead` when the consumer has read all of them
 */
export function createWatchQueue(
  maxBuffered: number,
  { onEnd, onRead }: { readonly onEnd: () => void; readonly onRead: () => void },
): WatchQueue {
  const events: TaskMessage[] = []
  const readers: Reader[] = []
  let isEnded = false
  let failure: { readonly error: unknown } | undefined

  function end(): void {
    if (isEnded) return
    isEnded = true
    onEnd()
  }

  /** Settles waiting calls of `next()`. */
  function serve(): void {
    for (let reader = readers[0]; reader !== undefined; reader = readers[0]) {
      const event = events.shift()
      if (event === undefined && !isEnded) return
      readers.shift()
      if (event !== undefined) {
        reader.resolve({ done: false, value: event })
        continue
      }
      onRead()
      if (failure === undefined) reader.resolve(DONE)
      else {
        reader.reject(failure.error)
        // By the protocol of async iterators, the error is thrown once. Later calls of `next()` report the end.
        failure = undefined
      }
    }
  }

  const iterator: AsyncIterableIterator<TaskMessage, undefined> = {
    next: () =>
      new Promise((resolve, reject) => {
        readers.push({ resolve, reject })
        serve()
      }),
    return: () => {
      events.length = 0
      failure = undefined
      end()
      onRead()
      serve()
      return Promise.resolve(DONE)
    },
    [Symbol.asyncIterator]: () => iterator,
  }

  return {
    iterator,
    push: (event) => {
      if (isEnded) return
      if (event.type === 'task_complete') end()
      // `task_complete` is always the last event, so this one is progress.
      else if (events.length >= maxBuffered) events.shift()
      events.push(event)
      serve()
    },
    fail: (error, isAtOnce = false) => {
      if (isEnded && !isAtOnce) return
      if (isAtOnce) events.length = 0
      failure = { error }
      end()
      serve()
    },
  }
}
