/** Finds out whether the agent is busy, by polling a function or from an Observable. */
import {
  BehaviorSubject,
  catchError,
  distinctUntilChanged,
  filter,
  from,
  map,
  NEVER,
  Observable,
  of,
  Subject,
  switchMap,
  tap,
} from 'rxjs'
import { callContext, type CallContext } from '../../isolation/call-context.js'
import type { OnError } from '../../isolation/error-report.js'
import { isThenable } from '../../isolation/isolated-call.js'
import { clearLongTimeout, setLongTimeout, type Clock } from '../../system/clock.js'
import { custom, hasMethods } from '../../protocol/option-checks.js'

/** Whether the agent is busy: a function that returns a boolean or a promise of one, or an Observable that emits each change. */
export type BusySource = (() => boolean | PromiseLike<boolean>) | Observable<boolean>

export const aBusySource = custom(
  'a function, or an Observable',
  (value) => typeof value === 'function' || hasMethods(value, ['subscribe']),
)

/** How long a promise of the function may be pending, in ms. After that the function is called again. */
const ANSWER_MS = 30_000

/** A source, and the context in which it was passed. */
interface GivenSource {
  readonly source: BusySource
  readonly context: CallContext
}

const given = (source: BusySource): GivenSource => ({ source, context: callContext() })

export class BusyWatch {
  readonly #clock: Clock
  readonly #source$: BehaviorSubject<GivenSource>
  readonly #report: OnError
  readonly #owner: string
  #latest = true
  /** Whether the Observable has completed. Its last value then stays in force, also for later subscriptions. */
  #isFinal = false
  /** The pending promise of the function. While it is pending, the function is not called again. */
  #asked: PromiseLike<boolean> | undefined
  /** True while `answered$` notifies its subscribers. */
  #isAnsweredIdle = false
  readonly #answered$ = new Subject<void>()

  #limit: ReturnType<typeof setLongTimeout> | undefined

  constructor(source: BusySource, report: OnError, owner: string, clock: Clock) {
    this.#clock = clock
    this.#source$ = new BehaviorSubject(given(source))
    this.#report = report
    this.#owner = owner
  }

  set source(source: BusySource) {
    this.#isFinal = false
    this.forget()
    this.#source$.next(given(source))
  }

  /** Whether the source must be polled: a function does not report when the agent becomes idle. */
  get isPolled(): boolean {
    return typeof this.#source$.value.source === 'function'
  }

  /** Returns whether the agent is busy. Also true if the function throws, its promise is pending, or the Observable has not emitted yet. */
  isBusy(): boolean {
    const { source, context } = this.#source$.value
    if (typeof source !== 'function') return this.#latest
    if (this.#isAnsweredIdle) return false
    if (this.#asked !== undefined) return true
    try {
      const answer = context.runInAsyncScope(source)
      if (!isThenable(answer)) return answer
      this.#await(answer)
    } catch (error) {
      this.#report(error, { source: 'busy', owner: this.#owner })
    }
    return true
  }

  /** Emits when a promise of the function resolves to idle. While its subscribers are notified, `isBusy` returns false without another call. */
  get answered$(): Observable<void> {
    return this.#answered$
  }

  /** Ignores the answer of a pending promise, so that the function can be called again. */
  forget(): void {
    this.#asked = undefined
    clearLongTimeout(this.#clock, this.#limit)
    this.#limit = undefined
  }

  #await(asked: PromiseLike<boolean>): void {
    this.#asked = asked
    // Skips `use` if the promise was discarded by `forget`.
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
    // `Promise.resolve` defers the callbacks. Some thenables, such as query builders, would call them at once.
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

  /** Emits when the Observable reports that the agent has become idle. The Observable is subscribed only while `idle$` has a subscriber. */
  get idle$(): Observable<void> {
    return this.#source$.pipe(
      switchMap(({ source, context }) =>
        typeof source === 'function'
          ? NEVER
          : this.#listen(
              new Observable((subscriber) => context.runInAsyncScope(() => from(source).subscribe(subscriber))),
            ),
      ),
      filter((isBusy) => !isBusy),
      map(() => undefined),
    )
  }

  #listen(source: Observable<boolean>): Observable<boolean> {
    if (this.#isFinal) return NEVER
    this.#latest = true
    return source.pipe(
      // If the source completes, its last value stays in force. If it fails, the agent counts as idle, because no later value will say so.
      catchError((error: unknown) => {
        this.#report(error, { source: 'busy', owner: this.#owner })
        return of(false)
      }),
      // Compares only values of the same source, so that the first value of a replaced source is not suppressed.
      distinctUntilChanged(),
      tap({
        next: (isBusy) => (this.#latest = isBusy),
        complete: () => (this.#isFinal = true),
      }),
    )
  }
}
