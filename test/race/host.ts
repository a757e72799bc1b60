/** An agent host as a trigger sees it: whether its agent is busy, told in one of four ways. */
import { BehaviorSubject, Observable, Subject } from 'rxjs'
import type { BusySource } from '../../src/async-tasks/busy.js'
import type { HostKind } from './script.js'

export class FakeHost {
  readonly kind: HostKind
  /** What `isAgentBusy` of the trigger is given. */
  readonly source: BusySource
  /** How many listen to the Observable. */
  listeners = 0
  /** Whether the Observable has ended: it will say nothing more. */
  isSilent = false
  readonly #busy$: Subject<boolean>
  #isBusy: boolean
  #isBroken = false
  /** What the trigger can know: the last value that its Observable has heard. */
  #heard: boolean | undefined
  /** What it had heard when the Observable ended: that stays. */
  #lastHeard: boolean | undefined

  /** @param onAsked called whenever the host's function is */
  constructor(kind: HostKind, isBusy: boolean, onAsked: () => void) {
    this.kind = kind
    this.#isBusy = isBusy
    this.#busy$ = kind === 'replaying' ? new BehaviorSubject(isBusy) : new Subject()
    this.source =
      kind === 'asked' || kind === 'telling'
        ? () => {
            onAsked()
            if (this.#isBroken) throw new Error('isAgentBusy is broken')
            return this.#isBusy
          }
        : this.#observe()
  }

  /** Whether a trigger must take the agent for busy. */
  get looksBusy(): boolean {
    if (this.kind === 'asked' || this.kind === 'telling') return this.#isBroken || this.#isBusy
    return this.#heard ?? true
  }

  /** Becomes busy or idle, and lets its listeners know. A function that was broken works again. */
  set(isBusy: boolean): void {
    this.#isBusy = isBusy
    this.#isBroken = false
    this.#busy$.next(isBusy)
  }

  /** From now on the function throws; the Observable errors. */
  break(): void {
    this.#isBroken = true
    this.isSilent = true
    this.#busy$.error(new Error('busy$ is broken'))
  }

  /** The Observable completes. */
  end(): void {
    this.isSilent = true
    this.#busy$.complete()
  }

  #observe(): Observable<boolean> {
    return new Observable<boolean>((subscriber) => {
      this.listeners += 1
      this.#heard = this.#lastHeard
      const subscription = this.#busy$.subscribe({
        next: (isBusy) => {
          this.#heard = isBusy
          subscriber.next(isBusy)
        },
        // An error counts as idle, and completion keeps the last value.
        error: (error: unknown) => {
          this.#lastHeard = this.#heard = false
          subscriber.error(error)
        },
        complete: () => {
          this.#lastHeard = this.#heard
          subscriber.complete()
        },
      })
      return () => {
        this.listeners -= 1
        subscription.unsubscribe()
      }
    })
  }
}
