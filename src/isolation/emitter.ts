/**
 * The events of a manager, for streams and handlers. Streams receive an event before handlers do. An exception in one callback does not affect others
 * (promise A2).
 */
import { filter, map, Subject, type Observable } from 'rxjs'
import { callContext, type CallContext } from './call-context.js'
import type { OnError } from './error-report.js'
import { callIsolated } from './isolated-call.js'
import { IsolatedObservable } from './isolated-observable.js'

/** An event. If a handler throws, the report contains the event's type and task. */
interface EmittedEvent {
  readonly type?: string
  readonly taskId?: string
}

type Handler<Event> = (event: Event) => unknown

/** The handlers of each event, with the contexts in which they were added. */
type Handlers<Events> = { readonly [Type in keyof Events]: Map<Handler<Events[Type]>, CallContext> }

/** An event with its name. Events of all types go through one subject, so that streams complete in the order of their subscriptions. */
type Named<Events> = {
  readonly [Type in keyof Events]: { readonly type: Type; readonly event: Events[Type] }
}[keyof Events]

export class Emitter<Events extends { readonly [Type in keyof Events]: EmittedEvent }> {
  readonly #report: OnError
  readonly #events$ = new Subject<Named<Events>>()
  readonly #handlers: Handlers<Events>

  /**
   * @param types the names of all events
   * @param report called with exceptions of subscribers and handlers
   */
  constructor(types: readonly (keyof Events)[], report: OnError) {
    this.#report = report
    this.#handlers = Object.fromEntries(types.map((type) => [type, new Map()])) as Handlers<Events>
  }

  /** Returns a stream of the events of one type. It completes on `close`. */
  stream<Type extends keyof Events>(type: Type): Observable<Events[Type]> {
    const events$ = this.#events$.pipe(
      filter((named): named is Extract<Named<Events>, { type: Type }> => named.type === type),
      map(({ event }) => event as Events[Type]),
    )
    return new IsolatedObservable<Events[Type]>(
      (error) => this.#report(error, { source: 'stream' }),
      (subscriber) => events$.subscribe(subscriber),
    )
  }

  on<Type extends keyof Events>(type: Type, handler: Handler<Events[Type]>): void {
    const handlers = this.#handlers[type]
    if (!handlers.has(handler)) handlers.set(handler, callContext())
  }

  off<Type extends keyof Events>(type: Type, handler: Handler<Events[Type]>): void {
    this.#handlers[type].delete(handler)
  }

  /** Notifies the streams, and then the handlers in the order in which they were added. */
  emit<Type extends keyof Events>(type: Type, event: Events[Type]): void {
    if (this.#events$.observed) this.#events$.next({ type, event })
    const handlers = this.#handlers[type]
    if (handlers.size === 0) return
    for (const [handler, context] of [...handlers]) {
      // The copy above may contain a handler that another handler has removed since.
      if (handlers.has(handler)) this.#call(handler, context, event)
    }
  }

  close(): void {
    this.#events$.complete()
    for (const handlers of Object.values<Map<unknown, unknown>>(this.#handlers)) handlers.clear()
  }

  #call<Event extends EmittedEvent>(handler: Handler<Event>, context: CallContext, event: Event): void {
    callIsolated(
      () => context.runInAsyncScope(() => handler(event)),
      (error) => {
        const { taskId } = event
        this.#report(error, taskId === undefined ? { source: 'handler' } : { source: 'handler', taskId })
      },
    )
  }
}
