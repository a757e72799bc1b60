/**
 * An observable for subscribers of the host. It reports an exception of a subscriber; plain RxJS throws such an exception from a timer, which ends
 * the process. Observables that the host pipes from it are isolated, too.
 */
import { Observable, Subscriber, type Observer, type Subscription } from 'rxjs'
import { callIsolated } from './isolated-call.js'

type Report = (error: unknown) => void
type Connect<T> = (subscriber: Subscriber<T>) => Subscription | (() => void) | undefined
type Piped = (...operators: ((source: unknown) => Observable<unknown>)[]) => Observable<unknown>

export class IsolatedObservable<T> extends Observable<T> {
  readonly #report: Report

  constructor(report: Report, connect: Connect<T>) {
    super(connect)
    this.#report = report
    const plain = super.pipe.bind(this) as Piped
    const piped: Piped = (...operators) => {
      const result = plain(...operators)
      return operators.length === 0
        ? this
        : new IsolatedObservable(report, (subscriber) => result.subscribe(subscriber))
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
