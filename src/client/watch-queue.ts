/**
 * What a watch has been told and its consumer has not read: an async iterator that never makes its source wait. A consumer
 * that falls behind loses the oldest progress messages, never the `task_complete` (S7).
 */
import type { TaskEvent } from './session.js'

export interface WatchQueue {
  readonly iterator: AsyncIterableIterator<TaskEvent, undefined>
  /** Adds an event; after `task_complete` the iteration ends. */
  push(event: TaskEvent): void
  /** Ends the iteration with an error: after what was pushed, or at once. */
  fail(error: unknown, isAtOnce?: boolean): void
}

interface Reader {
  readonly resolve: (result: IteratorResult<TaskEvent, undefined>) => void
  readonly reject: (error: unknown) => void
}

const DONE: IteratorResult<TaskEvent, undefined> = { done: true, value: undefined }

/**
 * @param maxBuffered how many unread events are kept
 * @param ends `onEnd` is called once, when nothing more will be taken from the source; `onRead` when nothing is left to read
 */
export function createWatchQueue(
  maxBuffered: number,
  { onEnd, onRead }: { readonly onEnd: () => void; readonly onRead: () => void },
): WatchQueue {
  const events: TaskEvent[] = []
  const readers: Reader[] = []
  let isEnded = false
  let failure: { readonly error: unknown } | undefined

  function end(): void {
    if (isEnded) return
    isEnded = true
    onEnd()
  }

  /** Answers those who wait, as far as there is an answer. */
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
        // An iteration fails once; after that it is over.
        failure = undefined
      }
    }
  }

  const iterator: AsyncIterableIterator<TaskEvent, undefined> = {
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
      // The complete is the last: what is dropped here is progress.
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
