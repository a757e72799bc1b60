/** An agent host as a trigger sees it: it shows in one of four ways whether its agent is busy. */
import { BehaviorSubject, Observable, Subject } from 'rxjs'

import type { HostKind } from './script.js'
import type { BusySource } from '../../src/features/delivery/busy.js'

export class FakeHost {
  readonly kind: HostKind
  /** The `isAgentBusy` of the trigger. */
  readonly source: BusySource
  /** The number of subscribers of the Observable. */
  listeners = 0
  /** Whether the Observable has completed or errored. */
  isSilent = false
  readonly #busy$: Subject<boolean>
  #isBusy: boolean
  #isBroken = false
  /** What the trigger can know: the last value its subscription got. */
  #seen: boolean | undefined
  /** The last value before the Observable ended: it stays valid. */
  #lastSeen: boolean | undefined

  /** @param onAsked called whenever the host's function is called */
  constructor(kind: HostKind, isBusy: boolean, onAsked: () => void) {
    this.kind = kind
    this.#isBusy = isBusy
    this.#busy$ = kind === 'replaying' ? new BehaviorSubject(isBusy) : new Subject()
    this.source =
      kind === 'asked' || kind === 'notifying'
        ? () => {
            onAsked()
            if (this.#isBroken) throw new Error('isAgentBusy is broken')
            return this.#isBusy
          }
        : this.#observe()
  }

  /** Whether the agent must count as busy. */
  get looksBusy(): boolean {
    if (this.kind === 'asked' || this.kind === 'notifying') return this.#isBroken || this.#isBusy
    return this.#seen ?? true
  }

  /** Sets whether the agent is busy. A function that threw works again. */
  set(isBusy: boolean): void {
    this.#isBusy = isBusy
    this.#isBroken = false
    this.#busy$.next(isBusy)
  }

  /** Makes the function throw, and the Observable error. */
  break(): void {
    this.#isBroken = true
    this.isSilent = true
    this.#busy$.error(new Error('busy$ is broken'))
  }

  /** Completes the Observable. */
  end(): void {
    this.isSilent = true
    this.#busy$.complete()
  }

  #observe(): Observable<boolean> {
    return new Observable<boolean>((subscriber) => {
      this.listeners += 1
      this.#seen = this.#lastSeen
      const subscription = this.#busy$.subscribe({
        next: (isBusy) => {
          this.#seen = isBusy
          subscriber.next(isBusy)
        },
        // An error counts as idle; completion keeps the last value.
        error: (error: unknown) => {
          this.#lastSeen = this.#seen = false
          subscriber.error(error)
        },
        complete: () => {
          this.#lastSeen = this.#seen
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
