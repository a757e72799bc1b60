/** Whether the agent is busy, from a function that is polled or from an Observable. */
import {
  BehaviorSubject,
  catchError,
  distinctUntilChanged,
  filter,
  from,
  map,
  NEVER,
  of,
  Subject,
  switchMap,
  tap,
  type Observable,
} from 'rxjs'
import type { OnError } from '../../callbacks/error-report.js'
import { isThenable } from '../../callbacks/isolated-call.js'
import { clearLongTimeout, setLongTimeout, type Clock } from '../../clock.js'
import { aFunction, objectWith, type OptionType } from '../../protocol/option-checks.js'

/** Whether the agent is busy: a function that returns a boolean or a promise of one, or an Observable that emits each change. */
export type BusySource = (() => boolean | PromiseLike<boolean>) | Observable<boolean>

export const aBusySource: OptionType = {
  expected: 'a function, or an Observable',
  accepts: (value) => aFunction.accepts(value) || objectWith('', 'subscribe').accepts(value),
}

/** How long the function's promise may be pending before the function is called again, in ms. */
const ANSWER_MS = 30_000

export class BusyWatch {
  readonly #clock: Clock
  readonly #source$: BehaviorSubject<BusySource>
  readonly #report: OnError
  readonly #owner: string
  #latest = true
  /** Whether the source has completed. Its last value stays, also for later subscriptions. */
  #isFinal = false
  /** The pending promise of the function, which is not called again meanwhile. */
  #asked: PromiseLike<boolean> | undefined
  /** True while `answered$` emits. */
  #isAnsweredIdle = false
  readonly #answered$ = new Subject<void>()

  #limit: ReturnType<typeof setLongTimeout> | undefined

  constructor(source: BusySource, report: OnError, owner: string, clock: Clock) {
    this.#clock = clock
    this.#source$ = new BehaviorSubject(source)
    this.#report = report
    this.#owner = owner
  }

  set source(source: BusySource) {
    this.#isFinal = false
    this.forget()
    this.#source$.next(source)
  }

  /** Whether the source must be polled because it does not emit when the agent becomes idle. */
  get isPolled(): boolean {
    return typeof this.#source$.value === 'function'
  }

  /** Also true if the function throws, its promise is pending, or the Observable has not emitted yet. */
  isBusy(): boolean {
    const source = this.#source$.value
    if (typeof source !== 'function') return this.#latest
    if (this.#isAnsweredIdle) return false
    if (this.#asked !== undefined) return true
    try {
      const answer = source()
      if (!isThenable(answer)) return answer
      this.#await(answer)
    } catch (error) {
      this.#report(error, { source: 'busy', owner: this.#owner })
    }
    return true
  }

  /** Emits when the function's promise resolves with idle. `isBusy` returns false until all subscribers were notified. */
  get answered$(): Observable<void> {
    return this.#answered$
  }

  /** Discards a pending promise, so that the function may be called again. */
  forget(): void {
    this.#asked = undefined
    clearLongTimeout(this.#clock, this.#limit)
    this.#limit = undefined
  }

  #await(asked: PromiseLike<boolean>): void {
    this.#asked = asked
    // Ignores the answer of a discarded promise.
    const settle = (use: () => void): void => {
      if (this.#asked !== asked) return
      this.forget()
      use()
    }
    const expire = (): void =>
      settle(() => {
        const error = new Error(`isAgentBusy has not answered within ${ANSWER_MS / 1000} s. It is called again.`)
        this.#report(error, { source: 'busy', owner: this.#owner })
      })
    const label = { name: `time limit of isAgentBusy of ${this.#owner}`, kind: 'deadline' } as const
    this.#limit = setLongTimeout(this.#clock, expire, ANSWER_MS, label)
    // Some thenables, such as query builders, call back at once.
    Promise.resolve(asked).then(
      (isBusy) => settle(() => (isBusy ? undefined : this.#answerIdle())),
      (error: unknown) => settle(() => this.#report(error, { source: 'busy', owner: this.#owner })),
    )
  }

  #answerIdle(): void {
    this.#isAnsweredIdle = true
    try {
      this.#answered$.next()
    } finally {
      this.#isAnsweredIdle = false
    }
  }

  /** Emits when the Observable reports that the agent has become idle. Subscribes to the source only while it has a subscriber. */
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
      // Completion keeps the last value. An error counts as idle.
      catchError((error: unknown) => {
        this.#report(error, { source: 'busy', owner: this.#owner })
        return of(false)
      }),
      // Per source, so that the first value of the next source counts as a change.
      distinctUntilChanged(),
      tap({
        next: (isBusy) => (this.#latest = isBusy),
        complete: () => (this.#isFinal = true),
      }),
    )
  }
}
