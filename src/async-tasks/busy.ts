/** Whether the agent is busy, from a host that is asked or from one that says so itself. */
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

/** A function that tells it now, or an Observable that tells every change. */
export type BusySource = (() => boolean) | Observable<boolean>

export class BusyWatch {
  readonly #source$: BehaviorSubject<BusySource>
  readonly #report: OnError
  readonly #owner: string
  #latest = true
  /** The source has completed: its last value stays, and it has nothing to say to a later subscription. */
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

  /** Whether the host must be asked, because it does not say when it becomes idle. */
  get isPolled(): boolean {
    return typeof this.#source$.value === 'function'
  }

  /** A function that throws counts as busy, and so does an Observable that has not spoken yet. */
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

  /** Emits when an Observable says that the agent has become idle. Hears it only while it is subscribed. */
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
      // Within one source: the first value of another is news even when it is the same.
      distinctUntilChanged(),
      tap({
        next: (isBusy) => (this.#latest = isBusy),
        complete: () => (this.#isFinal = true),
      }),
    )
  }
}
