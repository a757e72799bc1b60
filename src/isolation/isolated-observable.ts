/**
 * An observable for subscribers of the host. Each is called in the context in which it subscribed. The observable reports an exception of a
 * subscriber; plain RxJS throws such an exception from a timer, which ends the process. Both also apply to observables that the host pipes from it.
 */
import { Observable, Subscriber, type Observer, type Subscription } from 'rxjs'
import { inOwnContext, type Recipient } from './own-context.js'
import { callIsolated } from './isolated-call.js'

type Report = (error: unknown) => void
type Connect<T> = (subscriber: Recipient<T>) => Subscription | (() => void) | undefined
type Piped = (...operators: ((source: unknown) => Observable<unknown>)[]) => Observable<unknown>

export class IsolatedObservable<T> extends Observable<T> {
  readonly #report: Report

  /** @param isPiped whether `connect` subscribes to an isolated observable, so that its values come in the context of the subscriber */
  constructor(report: Report, connect: Connect<T>, isPiped = false) {
    super(isPiped ? connect : (subscriber) => connect(inOwnContext(subscriber)))
    this.#report = report
    const plain = super.pipe.bind(this) as Piped
    const piped: Piped = (...operators) => {
      const result = plain(...operators)
      return operators.length === 0
        ? this
        : new IsolatedObservable(report, (subscriber) => result.subscribe(subscriber), true)
    }
    this.pipe = piped as Observable<T>['pipe']
  }

  override subscribe(observer?: Partial<Observer<T>>): Subscription
  override subscribe(next: (value: T) => void): Subscription
  override subscribe(
    next?: ((value: T) => void) | null,
    error?: ((error: unknown) => void) | null,
    complete?: (() => void) | null,
  ): Subscription
  override subscribe(
    observerOrNext?: Partial<Observer<T>> | ((value: T) => void) | null,
    error?: ((error: unknown) => void) | null,
    complete?: (() => void) | null,
  ): Subscription {
    // A Subscriber comes from an RxJS operator, which handles exceptions itself.
    if (observerOrNext instanceof Subscriber) return super.subscribe(observerOrNext)
    const observer: Partial<Observer<T>> =
      typeof observerOrNext === 'function' || observerOrNext == null
        ? { ...(observerOrNext && { next: observerOrNext }), ...(error && { error }), ...(complete && { complete }) }
        : observerOrNext
    return super.subscribe({
      next: (value) => {
        this.#call((): unknown => observer.next?.(value))
      },
      error: (reason: unknown) => {
        if (observer.error) this.#call(() => observer.error?.(reason))
        else this.#report(reason)
      },
      complete: () => {
        this.#call(() => observer.complete?.())
      },
    })
  }

  #call(run: () => unknown): void {
    callIsolated(run, this.#report)
  }
}
