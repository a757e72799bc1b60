/**
 * Calls to the host's code, for both managers. The code is called after a change, never inside it, and in the order of the changes. Its exceptions
 * are reported and change nothing (promise A2). XState's inspection events and delays follow the same rule.
 */
import type { InspectionEvent } from 'xstate'
import { isolateReport, reportToConsole, type ErrorSource, type OnError } from '../callbacks/error-report.js'
import { toInspectFunction, type Inspect } from '../callbacks/inspection.js'
import { callIsolated } from '../callbacks/isolated-call.js'
import { observerOf } from '../callbacks/observed-clock.js'
import { createOutbox, type Outbox, type OutboxOptions } from '../callbacks/outbox.js'
import { actorClock, type Clock, type TimerLabel } from '../clock.js'

/** A call to the host's code, deferred to the end of the change. */
export interface HostCall {
  readonly type: 'call'
  readonly run: () => unknown
  readonly source: ErrorSource['source']
}

export interface ManagerOutboxOptions<Item> extends Omit<OutboxOptions<Item>, 'notify'> {
  /** Calls `run` in a batch after an attempt to store the changes. Undefined without a store. */
  readonly afterWrite?: ((run: () => void) => void) | undefined
  readonly clock: Clock
  readonly report: OnError
  readonly inspect: Inspect | undefined
  /** Delivers one item. It isolates the host's callbacks itself and does not throw. */
  readonly notify: (item: Item) => void
}

/** Names the timers of actors for an observed clock. */
export interface TimerLabels {
  take(ms: number): TimerLabel | undefined
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

  /** @throws InvalidInputError when `inspect` is neither a function nor an observer */
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

  /** Calls the host's code now. */
  call(run: () => unknown, source: ErrorSource['source']): void {
    callIsolated(run, (error) => this.#report(error, { source }))
  }

  /** Calls the host's code after the change. Call it inside a batch. */
  callLater(run: () => unknown, source: ErrorSource['source']): void {
    this.push({ type: 'call', run, source })
  }

  /**
   * Calls the host's code after the change. With a store, it first waits for the attempt to store the change, even if that fails. Used for aborts.
   * Call it inside a batch.
   */
  callAfterWrite(run: () => unknown, source: ErrorSource['source']): void {
    if (this.#afterWrite === undefined) this.callLater(run, source)
    else this.#afterWrite(() => this.call(run, source))
  }

  /**
   * Options for a root actor. Its delays end in a batch, and its inspection events are delivered after their change. Without an inspector the actor
   * has none, which is faster.
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

/** Reports errors to the host, to the observer of its clock, or to the console. Never throws. */
export function reporterOf(onError: OnError | undefined, clock: Clock): OnError {
  return isolateReport(onError ?? observerOf(clock) ?? reportToConsole)
}
