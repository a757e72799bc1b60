/** Subscribers of the host, which a stream calls in the contexts in which they subscribed (promise H5). */
import { Observable, type Observer, type Subscriber } from 'rxjs'
import { callContext } from './call-context.js'

/** Receives the values of a stream. */
export interface Recipient<T> extends Observer<T> {
  /** Whether the subscriber has unsubscribed, or the stream has ended. */
  readonly closed: boolean
}

export function inOwnContext<T>(subscriber: Subscriber<T>): Recipient<T> {
  const context = callContext()
  return {
    get closed() {
      return subscriber.closed
    },
    next: (value) => context.runInAsyncScope(() => subscriber.next(value)),
    error: (reason) => context.runInAsyncScope(() => subscriber.error(reason)),
    complete: () => context.runInAsyncScope(() => subscriber.complete()),
  }
}

/** Returns the same stream. Each of its subscribers is called in the context in which it subscribed. */
export const forSubscribers = <T>(source: Observable<T>): Observable<T> =>
  new Observable((subscriber) => source.subscribe(inOwnContext(subscriber)))
