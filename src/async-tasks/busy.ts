/** Whether the agent is busy: from a function that is polled, or from an Observable. */
import {
  BehaviorSubject,
  catchError,
  distinctUntilChanged,
  filter,
  from,
  map,
  NEVER,
  of,
  switchMap,
  tap,
  type Observable,
} from 'rxjs'
import type { OnError } from '../callbacks/error-report.js'
import { aFunction, objectWith, type OptionType } from '../protocol/option-checks.js'

/** Whether the agent is busy: a function that returns it, or an Observable that emits each change. */
export type BusySource = (() => boolean) | Observable<boolean>

export const aBusySource: OptionType = {
  expected: 'a function, or an Observable',
  accepts: (value) => aFunction.accepts(value) || objectWith('', 'subscribe').accepts(value),
}

export class BusyWatch {
  readonly #source$: BehaviorSubject<BusySource>
  readonly #report: OnError
  readonly #owner: string
  #latest = true
  /** The source has completed: its last value stays, also for later subscriptions. */
  #isFinal = false

  constructor(source: BusySource, report: OnError, owner: string) {
    this.#source$ = new BehaviorSubject(source)
    this.#report = report
    this.#owner = owner
  }

  set source(source: BusySource) {
    this.#isFinal = false
    this.#source$.next(source)
  }

  /** Whether the source must be polled, because it does not emit when the agent becomes idle. */
  get isPolled(): boolean {
    return typeof this.#source$.value === 'function'
  }

  /** True also for a function that throws and for an Observable that has not emitted yet. */
  isBusy(): boolean {
    const source = this.#source$.value
    if (typeof source !== 'function') return this.#latest
    try {
      return source()
    } catch (error) {
      this.#report(error, { source: 'busy', owner: this.#owner })
      return true
    }
  }

  /** Emits when the Observable reports that the agent has become idle. Subscribes to the source only while it is subscribed. */
  get idle$(): Observable<void> {
    return this.#source$.pipe(
      switchMap((source) => (typeof source === 'function' ? NEVER : this.#listen(source))),
      filter((isBusy) => !isBusy),
      map(() => undefined),
    )
  }

  #listen(source: Observable<boolean>): Observable<boolean> {
    if (this.#isFinal) return NEVER
    this.#latest = true
    return from(source).pipe(
      // Completion keeps the last value; an error counts as idle.
      catchError((error: unknown) => {
        this.#report(error, { source: 'busy', owner: this.#owner })
        return of(false)
      }),
      // Within one source: the first value of the next source counts as a change.
      distinctUntilChanged(),
      tap({
        next: (isBusy) => (this.#latest = isBusy),
        complete: () => (this.#isFinal = true),
      }),
    )
  }
}
