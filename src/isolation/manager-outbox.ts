/**
 * The calls to code of the host, for both managers (of async tasks and of command tasks). Such code runs after a change, never inside it, and in the
 * order of the changes. Its exceptions are reported and change nothing (promise A2). XState's inspection events and delays follow the same rule.
 */
import type { InspectionEvent } from 'xstate'
import { isolateReport, reportToConsole, type ErrorSource, type OnError } from './error-report.js'
import { toInspectFunction, type Inspect } from './inspection.js'
import { callIsolated } from './isolated-call.js'
import { observerOf } from './observed-clock.js'
import { createOutbox, type Outbox, type OutboxOptions } from './outbox.js'
import { actorClock, type Clock, type TimerLabel } from '../system/clock.js'

/** A call to code of the host that waits for the end of the change. */
export interface HostCall {
  readonly type: 'call'
  readonly run: () => unknown
  readonly source: ErrorSource['source']
}

export interface ManagerOutboxOptions<Item> extends Omit<OutboxOptions<Item>, 'notify'> {
  /** Calls `run` in a batch after the attempt to store the changes. Undefined without a store. */
  readonly afterWrite?: ((run: () => void) => void) | undefined
  readonly clock: Clock
  readonly report: OnError
  readonly inspect: Inspect | undefined
  /** Delivers one item. It must isolate the callbacks of the host, and must not throw. */
  readonly notify: (item: Item) => void
}

/** Finds labels for the timers of actors. Only a clock that shows its timers uses them, such as the race kit's clock. */
export interface TimerLabels {
  /** Returns the label of the timer that XState sets now, with this delay in ms. */
  take(ms: number): TimerLabel | undefined
  /** Receives each inspection event of XState. The event of a transition comes before the timers that the transition sets. */
  note(event: InspectionEvent): void
}

export class ManagerOutbox<Item extends { readonly type: string }> implements Outbox<Item | HostCall> {
  readonly batch: Outbox<Item | HostCall>['batch']
  readonly push: Outbox<Item | HostCall>['push']
  readonly drain: Outbox<Item | HostCall>['drain']
  readonly mark: Outbox<Item | HostCall>['mark']
  readonly release: Outbox<Item | HostCall>['release']
  readonly drop: Outbox<Item | HostCall>['drop']
  readonly #clock: Clock
  readonly #report: OnError
  readonly #inspect: ((event: InspectionEvent) => unknown) | undefined
  readonly #afterWrite: ManagerOutboxOptions<Item>['afterWrite']

  /** @throws INVALID_INPUT if `inspect` is neither a function nor an observer */
  constructor({ clock, report, inspect, notify, afterWrite, ...rest }: ManagerOutboxOptions<Item>) {
    this.#clock = clock
    this.#report = report
    this.#inspect = toInspectFunction(inspect)
    const outbox = createOutbox<Item | HostCall>({
      ...rest,
      notify: (item) => {
        if (isHostCall(item)) this.call(item.run, item.source)
        else notify(item)
      },
    })
    this.#afterWrite = afterWrite
    this.batch = outbox.batch
    this.push = outbox.push
    this.drain = outbox.drain
    this.mark = outbox.mark
    this.release = outbox.release
    this.drop = outbox.drop
  }

  /** Calls code of the host now. */
  call(run: () => unknown, source: ErrorSource['source']): void {
    callIsolated(run, (error) => this.#report(error, { source }))
  }

  /** Calls code of the host after the current change. Must be called inside a batch. */
  callLater(run: () => unknown, source: ErrorSource['source']): void {
    this.push({ type: 'call', run, source })
  }

  /**
   * Calls code of the host after the current change and, with a store, after the attempt to store it, even if that fails. Used for aborts. Must be
   * called inside a batch.
   */
  callAfterWrite(run: () => unknown, source: ErrorSource['source']): void {
    if (this.#afterWrite === undefined) this.callLater(run, source)
    else this.#afterWrite(() => this.call(run, source))
  }

  /**
   * Returns the options of a root actor. Its delays end in a batch, and its inspection events are delivered after the change. Without `inspect`, the
   * actor gets no inspector, which is faster.
   */
  actorOptions(labels?: TimerLabels) {
    const inspect = this.#inspect
    const observe = (event: InspectionEvent): void => {
      labels?.note(event)
      if (inspect !== undefined) this.callLater(() => inspect(event), 'inspector')
    }
    return {
      clock: actorClock(
        this.#clock,
        (run) => this.batch(run),
        (ms) => labels?.take(ms),
      ),
      ...((inspect ?? labels) === undefined ? {} : { inspect: observe }),
    }
  }
}

function isHostCall(item: { readonly type: string }): item is HostCall {
  return item.type === 'call'
}

/** Returns a function that reports errors: to `onError` of the host, else to the observer of its clock, else to the console. It never throws. */
export function reporterOf(onError: OnError | undefined, clock: Clock): OnError {
  return isolateReport(onError ?? observerOf(clock) ?? reportToConsole)
}
