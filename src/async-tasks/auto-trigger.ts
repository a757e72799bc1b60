/**
 * Wakes an idle agent with what it is owed (seed 001): one RxJS pipeline brings settlements, idle edges, returned leases
 * and re-subscription to the delivery chart, which lets one message out at a time.
 */
import { filter, map, merge, type Observable, Subject, type Subscription } from 'rxjs'
import { createActor } from 'xstate'
import type { DeliveryEvent, DeliveryMachine, DeliveryRef, DeliveryTiming } from '../../machines/delivery.js'
import { InvalidSettingError } from '../errors.js'
import { isolateAbortListeners } from '../callbacks/isolated-signal.js'
import { BusyWatch, type BusySource } from './busy.js'
import { deliveryChartFor, noteCarrier, type Carrier } from './charts.js'
import { coreOf, type RegistryCore } from './core.js'
import { DEFAULT_OWNER, type AsyncTaskManager } from './manager.js'
import type { LeasedReminder } from './reminder-service.js'
import { isolateReport, type ErrorSource, type OnError } from '../callbacks/error-report.js'

/** What a turn is told about the delivery it is part of. */
export interface TurnDelivery {
  /** The lease of what the message carries. */
  readonly deliveryId: string
  /** The tasks whose ends the message tells. */
  readonly taskIds: readonly string[]
  /** Aborts when the delivery has taken longer than `deliveryTimeoutMs`, or everything is disposed. */
  readonly signal: AbortSignal
}

/** Starts a turn of the agent with this text. It resolves when the message was accepted and rejects when it was not. */
export type TriggerAgentTurn = (text: string, delivery: TurnDelivery) => unknown

/** The part of the reminder service that a trigger needs. */
export interface ReminderSource {
  /** Words what an owner is owed and leases it; undefined when there is nothing to say, or another holds the exclusive lease. */
  leaseReminder(request: { readonly owner: string; readonly exclusive: boolean }): LeasedReminder | undefined
}

/** How an auto-trigger gathers, retries and gives up. All durations in ms. */
export interface AutoTriggerOptions {
  /** Whose results to bring. Default `main`. */
  readonly owner?: string
  /** How long to wait for more to end, in ms, after each end. Default 0: one tick. */
  readonly coalesceMs?: number
  /** The longest such wait in ms. Default 5000, or `coalesceMs` if that is longer. */
  readonly maxWaitMs?: number
  /** Back-off of refused deliveries, in ms. Default 1000, doubling up to 60000. */
  readonly retry?: { readonly initialMs?: number; readonly maxMs?: number }
  /** How long a delivery may take in ms; after it the lease returns. Default: no limit. */
  readonly deliveryTimeoutMs?: number
  /** How often to ask a busy function again while something is owed, in ms. Default 1000. */
  readonly pollMs?: number
  /** Told of refused and expired deliveries and of a busy source that throws. Default: the manager's. */
  readonly onError?: OnError
  /** The chart to run, with implementations provided by `machine.provide`. */
  readonly machine?: DeliveryMachine
}

/** Brings one owner's results to its agent, one message at a time, for as long as it is subscribed. */
export class AsyncTaskAutoTrigger {
  readonly #core: RegistryCore
  readonly #reminders: ReminderSource
  readonly #owner: string
  readonly #options: AutoTriggerOptions
  readonly #onError: OnError
  readonly #busy: BusyWatch
  readonly #machine: DeliveryMachine
  readonly #carrier: Carrier
  readonly #nudges$ = new Subject<DeliveryEvent>()
  #trigger: TriggerAgentTurn
  #subscribers = 0
  #pipeline: Subscription | undefined
  #forgetPusher: (() => void) | undefined
  #delivery: DeliveryRef | undefined

  /**
   * @param isAgentBusy asked before each delivery, or an Observable of it
   * @param triggerAgentTurn starts a turn with the message; its promise decides whether the message was accepted
   * @throws InvalidSettingError for a duration that is not a number of ms in its range
   */
  constructor(
    manager: AsyncTaskManager,
    reminders: ReminderSource,
    isAgentBusy: BusySource,
    triggerAgentTurn: TriggerAgentTurn,
    options: AutoTriggerOptions = {},
  ) {
    checkDurations(options)
    this.#core = coreOf(manager)
    this.#reminders = reminders
    this.#owner = options.owner ?? DEFAULT_OWNER
    this.#options = options
    this.#onError = isolateReport(options.onError ?? this.#core.report)
    // After the last unsubscribe no callback runs, and onError is one.
    const report: OnError = (error, from) => {
      if (this.#isSubscribed) this.#onError(error, from)
    }
    this.#busy = new BusyWatch(isAgentBusy, report, this.#owner)
    this.#trigger = triggerAgentTurn
    this.#carrier = {
      deliver: (sendBack) => this.#deliver(sendBack, report),
      isNothingOwed: () => this.#core.table.countOf('owed', this.#owner) === 0,
      // The host may unsubscribe while it is asked.
      isAgentIdle: () => !this.#core.table.isDelivering(this.#owner) && !this.#busy.isBusy() && this.#isSubscribed,
      reportExpiry: () => {
        const limit = this.#options.deliveryTimeoutMs ?? 0
        const error = new Error(`A delivery was not accepted within ${limit} ms: its tasks are owed again.`)
        // After the transition: what the host does when it is told is no part of this action.
        queueMicrotask(() => report(error, this.#from('delivery-timeout')))
      },
    }
    this.#machine = deliveryChartFor(options.machine, this.#carrier)
  }

  /**
   * Starts bringing results, with what is owed already.
   * @returns what ends it; a delivery in flight is still seen to its end. While several are held, all must be ended.
   */
  subscribe(): () => void {
    let isHeld = true
    this.#subscribers += 1
    if (this.#subscribers === 1) this.#attach()
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#subscribers -= 1
      if (this.#subscribers === 0) this.#detach()
    }
  }

  /** Replaces what tells that the agent is busy and what starts its turns; what is owed is looked at again. */
  updateCallbacks(isAgentBusy: BusySource, triggerAgentTurn: TriggerAgentTurn): void {
    this.#trigger = triggerAgentTurn
    this.#busy.source = isAgentBusy
    this.#nudges$.next({ type: 'timing.set', timing: this.#timing() })
    this.notifyIdle()
  }

  /** Says that the agent has become idle, for a host whose `isAgentBusy` is a function. */
  notifyIdle(): void {
    this.#nudges$.next({ type: 'agent.idle' })
  }

  get #isSubscribed(): boolean {
    return this.#subscribers > 0 && !this.#core.isDisposed
  }

  #attach(): void {
    const core = this.#core
    if (core.isDisposed) return
    this.#forgetPusher = core.notePusher(this.#owner)
    core.transact(() => {
      if (this.#delivery?.getSnapshot().status === 'active') {
        this.#delivery.send({ type: 'timing.set', timing: this.#timing() })
        this.#delivery.send({ type: 'trigger.attach' })
      } else this.#start()
    })
    // A callback of the disposal subscribed: it was closed at once.
    if (this.#delivery === undefined) return
    this.#pipeline = merge(
      this.#wakeUps(),
      this.#busy.idle$.pipe(map((): DeliveryEvent => ({ type: 'agent.idle' }))),
      this.#nudges$,
    ).subscribe((event) => this.#send(event))
  }

  #start(): void {
    const id = `delivery.${this.#owner}`
    const delivery = createActor(this.#machine, { id, input: this.#timing(), parent: this.#core.registry })
    this.#delivery = delivery
    // A delivery in flight outlives its subscription, but not the registry.
    const disposal = this.#core.told$.subscribe({ complete: () => this.#close() })
    delivery.subscribe({
      complete: () => {
        disposal.unsubscribe()
        // An unsubscribe and a subscribe inside a callback arrive together after it: the first ends what the second joined.
        if (this.#isSubscribed && this.#delivery === delivery) this.#start()
      },
    })
    delivery.start()
  }

  /** What the registry has to tell a trigger of this owner. */
  #wakeUps(): Observable<DeliveryEvent> {
    return this.#core.told$.pipe(
      map((item): DeliveryEvent | undefined => {
        if (item.type === 'lease.ended') return item.owner === this.#owner ? { type: 'lease.ended' } : undefined
        if (item.type !== 'transition') return undefined
        const { owner, record } = item.transition
        return owner === this.#owner && record.delivery === 'owed' ? { type: 'delivery.requested' } : undefined
      }),
      filter((event) => event !== undefined),
    )
  }

  #detach(): void {
    this.#pipeline?.unsubscribe()
    this.#pipeline = undefined
    this.#forgetPusher?.()
    this.#send({ type: 'trigger.detach' })
  }

  #close(): void {
    this.#pipeline?.unsubscribe()
    this.#pipeline = undefined
    const delivery = this.#delivery
    this.#delivery = undefined
    this.#send({ type: 'trigger.close' }, delivery)
  }

  #send(event: DeliveryEvent, delivery = this.#delivery): void {
    if (delivery?.getSnapshot().status === 'active') this.#core.transact(() => delivery.send(event))
  }

  /** One delivery: leases, starts the turn, and settles the lease by its outcome. Returns what ends it early. */
  #deliver(sendBack: (event: DeliveryEvent) => void, report: OnError): () => void {
    const controller = new AbortController()
    let lease: LeasedReminder | undefined
    let isOver = false
    const end = (event: DeliveryEvent, settle: () => void): void => {
      if (isOver) return
      isOver = true
      this.#core.transact(() => {
        settle()
        sendBack(event)
      })
    }
    const refuse = (error: unknown): void =>
      end({ type: 'delivery.refused' }, () => {
        lease?.release()
        report(error, this.#from('delivery', lease))
      })
    isolateAbortListeners(controller.signal, (error) => report(error, this.#from('abort-listener', lease)))
    try {
      lease = this.#reminders.leaseReminder({ owner: this.#owner, exclusive: true })
      if (lease === undefined) {
        end({ type: 'delivery.emptied' }, () => undefined)
        return () => undefined
      }
      const { text, deliveryId, taskIds, acknowledge } = lease
      Promise.resolve(this.#trigger(text, { deliveryId, taskIds, signal: controller.signal })).then(() => {
        // A late acceptance still counts: what it carried and is owed again is owed no longer.
        if (isOver) acknowledge()
        else end({ type: 'delivery.accepted' }, acknowledge)
      }, refuse)
    } catch (error) {
      refuse(error)
    }
    return () => {
      if (isOver) return
      isOver = true
      lease?.release()
      controller.abort(new DOMException('The delivery was given up.', 'TimeoutError'))
    }
  }

  #from(source: ErrorSource['source'], lease?: LeasedReminder): ErrorSource {
    return { source, owner: this.#owner, ...(lease && { deliveryId: lease.deliveryId }) }
  }

  #timing(): DeliveryTiming {
    const { coalesceMs = 0, retry = {}, deliveryTimeoutMs, pollMs = 1000 } = this.#options
    const timing: DeliveryTiming = {
      coalesceMs,
      maxWaitMs: this.#options.maxWaitMs ?? Math.max(5000, coalesceMs),
      retryInitialMs: retry.initialMs ?? 1000,
      retryMaxMs: retry.maxMs ?? 60_000,
      ...(deliveryTimeoutMs !== undefined && { timeoutMs: deliveryTimeoutMs }),
      ...(this.#busy.isPolled && { pollMs }),
    }
    noteCarrier(timing, this.#carrier)
    return timing
  }
}

function checkDurations(options: AutoTriggerOptions): void {
  const { coalesceMs, maxWaitMs, retry, deliveryTimeoutMs, pollMs } = options
  const durations: [string, number | undefined, number][] = [
    ['coalesceMs', coalesceMs, 0],
    ['maxWaitMs', maxWaitMs, 0],
    ['retry.initialMs', retry?.initialMs, 1],
    ['retry.maxMs', retry?.maxMs, 1],
    ['deliveryTimeoutMs', deliveryTimeoutMs, 1],
    ['pollMs', pollMs, 1],
  ]
  for (const [name, value, least] of durations) {
    if (value !== undefined && (!Number.isFinite(value) || value < least)) {
      throw new InvalidSettingError(name, value, `a number of milliseconds >= ${least}`)
    }
  }
}
