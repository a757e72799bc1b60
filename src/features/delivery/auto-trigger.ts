/**
 * Starts a turn of an idle agent when results are owed to it. One RxJS pipeline passes events (ended tasks, an idle agent, released leases) to the
 * delivery machine, which sends one message at a time.
 */
import { accepting } from './accepting.js'
import { isOwing } from './leases.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import { deliveryStates } from './delivery-states.js'
import { DeliveryTimerLabels } from './delivery-timer-labels.js'
import { pushSubscribers } from './push-subscribers.js'
import { wakeUps } from './wake-ups.js'
import { map, merge, Subject, type Subscription } from 'rxjs'
import { createActor } from 'xstate'
import {
  deliveryMachine,
  type DeliveryEvent,
  type DeliveryHost,
  type DeliveryMachine,
  type DeliveryRef,
  type DeliveryReport,
  type DeliveryTiming,
} from '../../../machines/delivery.js'
import type { QuestionRef } from '../../../machines/owed-questions.js'
import type { TurnLease } from '../../isolation/current-turn.js'
import { callContext, type CallContext } from '../../isolation/call-context.js'
import { observerOf } from '../../isolation/observed-clock.js'
import { isolateAbortListeners } from '../../isolation/isolated-signal.js'
import {
  aFunction,
  aMachine,
  aName,
  checkOption,
  checkOptions,
  numberFrom,
  objectWith,
  optionsOf,
  withDefault,
  withDefaults,
  type OptionTypes,
  type WithDefaults,
} from '../../protocol/option-checks.js'
import { aBusySource, BusyWatch, type BusySource } from './busy.js'
import { registryOf, type AsyncTaskManager } from '../../async-tasks/manager.js'
import { DEFAULT_OWNER } from '../../async-tasks/owner.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'
import type { LeasedReminder } from './reminder-service.js'
import { isolateReport, type ErrorSource, type OnError } from '../../isolation/error-report.js'

/** The delivery of the message that starts a turn. */
export interface TurnDelivery {
  /** The id of the lease on the results in the message. If the agent does not accept the message, the next attempt has the same id and results. */
  readonly deliveryId: string
  /** The tasks that the message carries. */
  readonly taskIds: readonly string[]
  /** The questions of running tasks in the message. Absent if there are none. */
  readonly questions?: readonly QuestionRef[]
  /**
   * Whether a result or question in the message may have been delivered before, also by an attempt of this process that failed. The text of the
   * message marks each of them.
   */
  readonly isRepeat?: boolean
  /** Aborts when the delivery exceeds `deliveryTimeoutMs`, or when the trigger or the manager is disposed. */
  readonly signal: AbortSignal
  /**
   * Accepts the message in a transaction of your own, for a host that keeps its messages in the database of its PostgreSQL store. Call it when the
   * transaction has written the message, last before you commit: until it ends, the store writes nothing, and no other host can take over. If you
   * commit, the message has arrived, whatever ends this process. If you roll back, let the turn fail.
   * @param client a client of `pg`, or anything that runs statements in that transaction (`READ COMMITTED`)
   * @throws StoreError `STORE_LOST` when another host has taken over
   * @throws AgentTasksError `LEASE_ENDED` when the delivery is not open any more, for example after `deliveryTimeoutMs`
   * @throws INVALID_INPUT for a client in no transaction that has written something, for another store, or with `keepTurns`
   * @throws the error of the client
   */
  readonly acceptIn: (client: {
    query(text: string, values: unknown[]): PromiseLike<{ readonly rows: readonly unknown[] }>
  }) => Promise<void>
}

/** What `createTurns` needs of a delivery. */
interface DeliveryControl {
  readonly lease: TurnLease
  /** Stops the time limit of the delivery, or starts it anew. */
  readonly setSuspended: (isSuspended: boolean) => void
}

const controls = new WeakMap<TurnDelivery, DeliveryControl>()

/** Returns undefined for a delivery that an auto-trigger has not made. */
export const controlOf = (delivery: TurnDelivery | undefined): DeliveryControl | undefined =>
  delivery && controls.get(delivery)

/** Starts a turn of the agent with this text. The promise must resolve if the agent accepts the message, and reject if it does not. */
export type TriggerAgentTurn = (text: string, delivery: TurnDelivery) => unknown

/** The part of `AsyncTaskReminderService` that a trigger uses. */
export interface ReminderSource {
  /** Leases what is owed to an owner and returns its text. Returns undefined if nothing is owed, or if the owner has an open exclusive lease. */
  leaseReminder(request: { readonly owner: string; readonly exclusive: boolean }): LeasedReminder | undefined
}

/** Options of `AsyncTaskAutoTrigger`. */
export interface AutoTriggerOptions {
  /** The owner whose results are delivered. Default `main`. */
  readonly owner?: string
  /** How long to wait for further tasks after each end of a task, in ms. Default 0: one tick. */
  readonly coalesceMs?: number
  /** The maximum total time to wait for further tasks, in ms. Default 5000, or `coalesceMs` if that is longer. */
  readonly maxWaitMs?: number
  /** The delays after failed deliveries, in ms: `initialMs` (default 1000) doubles with each failure up to `maxMs` (default 60000). */
  readonly retry?: { readonly initialMs?: number; readonly maxMs?: number }
  /** How long a delivery may take, in ms. After that time the results in its message are owed again. Default: no limit. */
  readonly deliveryTimeoutMs?: number
  /** How often a function `isAgentBusy` is called while results are owed, in ms. Default 1000. */
  readonly pollMs?: number
  /** Called with the error of a delivery that was refused or took too long, and with errors of `isAgentBusy`. Default: the manager's `onError`. */
  readonly onError?: OnError
  /** A machine that replaces the default one, such as the result of `deliveryMachine.provide`. It receives the same input. */
  readonly machine?: DeliveryMachine
}

/** A duration in ms. */
const duration = (least: number) => numberFrom(least, `a number of milliseconds >= ${least}`)

const retryTypes = { initialMs: withDefault(duration(1), 1000), maxMs: withDefault(duration(1), 60_000) }

export const autoTriggerOptionTypes = {
  owner: withDefault(aName, DEFAULT_OWNER),
  coalesceMs: withDefault(duration(0), 0),
  maxWaitMs: duration(0),
  retry: withDefault(optionsOf(retryTypes), {}),
  deliveryTimeoutMs: duration(1),
  pollMs: withDefault(duration(1), 1000),
  onError: aFunction,
  machine: aMachine,
} satisfies OptionTypes<AutoTriggerOptions>

/** Delivers the results of one owner to its agent, one message at a time. Delivers nothing before `subscribe` is called. */
export class AsyncTaskAutoTrigger {
  readonly #registry: TaskRegistry
  readonly #reminders: ReminderSource
  readonly #owner: string
  readonly #options: WithDefaults<AutoTriggerOptions, typeof autoTriggerOptionTypes>
  readonly #onError: OnError
  readonly #busy: BusyWatch
  readonly #machine: DeliveryMachine
  readonly #host: DeliveryHost
  readonly #nudges$ = new Subject<DeliveryEvent>()
  #trigger: TriggerAgentTurn
  /** The context in which the callbacks were passed. */
  #context: CallContext = callContext()
  #subscribers = 0
  #pipeline: Subscription | undefined
  #stopPushing: (() => void) | undefined
  #delivery: DeliveryRef | undefined

  /**
   * @param isAgentBusy a function, called before each delivery (its promise is awaited), or an Observable
   * @param triggerAgentTurn starts a turn with the message; its promise resolves if the message was accepted, and rejects if not
   * @throws INVALID_SETTING for a duration out of range
   * @throws INVALID_INPUT for an unknown option, or an option or argument of the wrong type
   */
  constructor(
    manager: AsyncTaskManager,
    reminders: ReminderSource,
    isAgentBusy: BusySource,
    triggerAgentTurn: TriggerAgentTurn,
    options: AutoTriggerOptions = {},
  ) {
    checkOptions(options, autoTriggerOptionTypes)
    checkCallbacks(isAgentBusy, triggerAgentTurn)
    checkOption(reminders, aReminderSource, ['reminders'])
    this.#registry = registryOf(manager)
    this.#reminders = reminders
    this.#options = withDefaults(options, autoTriggerOptionTypes)
    this.#owner = this.#options.owner
    this.#onError = isolateReport(options.onError ?? this.#registry.report)
    // After the last unsubscribe no callback is called, not even onError.
    const report: OnError = (error, from) => {
      if (this.#isSubscribed) this.#onError(error, from)
    }
    this.#busy = new BusyWatch(isAgentBusy, report, this.#owner, this.#registry.clock)
    this.#trigger = triggerAgentTurn
    this.#host = {
      deliver: (reportOutcome) => {
        const context = this.#context
        const abandon = context.runInAsyncScope(() => this.#deliver(reportOutcome, report))
        return () => context.runInAsyncScope(abandon)
      },
      isNothingOwed: () => !isOwing(this.#registry, this.#owner),
      // `isAgentBusy` is host code and may unsubscribe, so the subscription is checked after the call.
      isAgentIdle: () => !this.#registry.ledger.isDelivering(this.#owner) && !this.#busy.isBusy() && this.#isSubscribed,
      reportExpiry: () => {
        const limit = this.#options.deliveryTimeoutMs ?? 0
        const error = new Error(`A delivery was not accepted within ${limit} ms. Its results are owed again.`)
        // The host's callback must not run inside a transition of the machine.
        queueMicrotask(() => report(error, this.#from('delivery-timeout')))
      },
    }
    this.#machine = options.machine ?? deliveryMachine
  }

  /**
   * Starts delivering results, including those that are already owed.
   * @returns an unsubscribe function. It does not interrupt a delivery in progress. If you subscribe several times, deliveries stop after the last
   *   unsubscribe
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

  /**
   * Replaces both callbacks, and checks at once whether results can be delivered.
   * @throws INVALID_INPUT if a callback has the wrong type; the previous callbacks stay in use then
   */
  updateCallbacks(isAgentBusy: BusySource, triggerAgentTurn: TriggerAgentTurn): void {
    checkCallbacks(isAgentBusy, triggerAgentTurn)
    this.#trigger = triggerAgentTurn
    this.#context = callContext()
    this.#busy.source = isAgentBusy
    this.#nudges$.next({ type: 'timing.set', timing: this.#timing() })
    this.notifyIdle()
  }

  /** Reports that the agent is idle, for a host whose `isAgentBusy` is a function. If a promise of that function is pending, its answer is ignored. */
  notifyIdle(): void {
    this.#busy.forget()
    this.#nudges$.next({ type: 'agent.idle' })
  }

  get #isSubscribed(): boolean {
    return this.#subscribers > 0 && !this.#registry.isDisposed
  }

  #attach(): void {
    const registry = this.#registry
    if (registry.isDisposed) return
    this.#stopPushing = registry.use(pushSubscribers).add(this.#owner)
    registry.batch(() => {
      if (this.#delivery?.getSnapshot().status === 'active') {
        this.#delivery.send({ type: 'timing.set', timing: this.#timing() })
        this.#delivery.send({ type: 'trigger.attach' })
      } else this.#start()
    })
    // Host code that runs during disposal may subscribe. The new delivery has been closed again then.
    if (this.#delivery === undefined) return
    this.#pipeline = merge(
      registry.use(wakeUps).of(this.#owner),
      this.#busy.idle$.pipe(map((): DeliveryEvent => ({ type: 'agent.idle' }))),
      this.#busy.answered$.pipe(map((): DeliveryEvent => ({ type: 'agent.answered' }))),
      this.#nudges$,
    ).subscribe((event) => this.#send(event))
  }

  #start(): void {
    const id = `delivery.${this.#owner}`
    const input = { timing: this.#timing(), host: this.#host }
    const { clock } = this.#registry
    // XState looks through all timers of a system when an actor stops. So each delivery is a system of its own.
    const labels = observerOf(clock) && new DeliveryTimerLabels()
    const delivery = createActor(this.#machine, { id, input, ...this.#registry.actorOptions(labels) })
    this.#delivery = delivery
    // A delivery in progress continues after unsubscribing, but ends with the registry.
    const state = this.#registry.use(deliveryStates).open(this.#owner, clock, () => this.#close())
    delivery.subscribe({
      next: (snapshot) => state.set(snapshot),
      complete: () => {
        state.close()
        // A callback may unsubscribe and subscribe again. The new subscription then uses the old delivery. When that has ended, a new delivery is
        // needed.
        if (this.#isSubscribed && this.#delivery === delivery) this.#start()
      },
    })
    delivery.start()
  }

  #detach(): void {
    this.#busy.forget()
    this.#pipeline?.unsubscribe()
    this.#pipeline = undefined
    this.#stopPushing?.()
    this.#send({ type: 'trigger.detach' })
  }

  #close(): void {
    this.#busy.forget()
    this.#pipeline?.unsubscribe()
    this.#pipeline = undefined
    const delivery = this.#delivery
    this.#delivery = undefined
    this.#send({ type: 'trigger.close' }, delivery)
  }

  #send(event: DeliveryEvent, delivery = this.#delivery): void {
    if (delivery?.getSnapshot().status === 'active') this.#registry.batch(() => delivery.send(event))
  }

  /** Runs one delivery: takes a lease, starts the turn, and ends the lease according to the outcome. Returns a function that abandons the delivery. */
  #deliver(reportOutcome: (outcome: DeliveryReport) => void, report: OnError): () => void {
    const controller = new AbortController()
    let lease: (LeasedReminder & Pick<TurnDelivery, 'acceptIn'>) | undefined
    let isOver = false
    let isSent = false
    const end = (outcome: DeliveryReport, settle: () => void): void => {
      if (isOver) return
      isOver = true
      this.#registry.batch(() => {
        settle()
        reportOutcome(outcome)
      })
    }
    const refuse = (error: unknown): void =>
      end({ type: 'delivery.refused' }, () => {
        lease?.release({ mayHaveArrived: isSent })
        report(error, this.#from('delivery', lease))
      })
    // Releases the lease without an error, because the trigger has been unsubscribed before the message was sent.
    const giveBack = (): void => end({ type: 'delivery.emptied' }, () => lease?.release())
    isolateAbortListeners(controller.signal, (error) => report(error, this.#from('abort-listener', lease)))
    try {
      const leased = this.#reminders.leaseReminder({ owner: this.#owner, exclusive: true })
      lease = leased && { ...leased, ...accepting(this.#registry, leased) }
      if (lease === undefined) {
        end({ type: 'delivery.emptied' }, () => undefined)
        return () => undefined
      }
      const { text, deliveryId, taskIds, questions, isRepeat, stored, acknowledge, release, acceptIn } = lease
      const delivery = {
        deliveryId,
        taskIds,
        signal: controller.signal,
        acceptIn,
        ...omitUndefined({ questions, isRepeat }),
      }
      controls.set(delivery, {
        lease: { deliveryId, acknowledge, release },
        setSuspended: (isSuspended) => {
          if (!isOver) this.#send({ type: isSuspended ? 'delivery.suspended' : 'delivery.resumed' })
        },
      })
      const send = (): void => {
        isSent = true
        Promise.resolve(this.#trigger(text, delivery)).then(() => {
          // The message was accepted after its time limit. Its results were delivered nevertheless, so they must not be delivered again.
          if (isOver) acknowledge()
          else end({ type: 'delivery.accepted' }, acknowledge)
        }, refuse)
      }
      const sendStored = (): void => {
        if (isOver) return
        if (this.#isSubscribed) send()
        else giveBack()
      }
      if (stored === undefined) send()
      else stored.then(sendStored).catch(refuse)
    } catch (error) {
      refuse(error)
    }
    return () => {
      if (isOver) return
      isOver = true
      lease?.release({ mayHaveArrived: isSent })
      controller.abort(new DOMException('The delivery was abandoned.', 'TimeoutError'))
    }
  }

  #from(source: ErrorSource['source'], lease?: LeasedReminder): ErrorSource {
    return { source, owner: this.#owner, ...(lease && { deliveryId: lease.deliveryId }) }
  }

  #timing(): DeliveryTiming {
    const { coalesceMs, deliveryTimeoutMs, pollMs } = this.#options
    const retry = withDefaults(this.#options.retry, retryTypes)
    return {
      coalesceMs,
      maxWaitMs: this.#options.maxWaitMs ?? Math.max(5000, coalesceMs),
      retryInitialMs: retry.initialMs,
      retryMaxMs: retry.maxMs,
      ...omitUndefined({ timeoutMs: deliveryTimeoutMs }),
      ...(this.#busy.isPolled && { pollMs }),
    }
  }
}

const aReminderSource = objectWith('an object', 'leaseReminder')

function checkCallbacks(isAgentBusy: unknown, triggerAgentTurn: unknown): void {
  checkOption(isAgentBusy, aBusySource, ['isAgentBusy'])
  checkOption(triggerAgentTurn, aFunction, ['triggerAgentTurn'])
}
