/** The world of a race: a manager, its triggers and their hosts, and the turns. A ledger records every callback. */
import type {
  AsyncTaskManager,
  AsyncTaskReminderService,
  TaskHandle,
  TriggerAgentTurn,
  TurnDelivery,
} from '../../src/index.js'
import type { RaceScheduler } from '../../src/testing/index.js'
import { createPacedClock } from '../support/paced-clock.js'
import type { Subject } from '../support/subject.js'
import { FakeHost } from './host.js'
import { Ledger, type Message } from './ledger.js'
import { describeStep, OWNERS, type Hooks, type RaceScript, type Step, type TurnScript } from './script.js'
import { performStep, type RacingTrigger, type Reminded, type Stage } from './steps.js'

/** Ends a turn that hangs. */
type Finish = () => void

const ACCEPTED: TurnScript = { atOnce: [], meanwhile: [], outcome: 'accept at once' }

/** The longest time between two attempts of a delivery. */
export const RETRY_MAX_MS = 8000

export class World implements Stage {
  readonly ledger: Ledger
  readonly clock = createPacedClock(1_000_000)
  readonly manager: AsyncTaskManager
  readonly reminders: AsyncTaskReminderService
  /** Removes every handler and stream of the host. */
  readonly stopListening: () => void
  readonly triggers: readonly RacingTrigger[]
  readonly reminded: Reminded[] = []
  readonly aborters: AbortController[] = []
  readonly handles = new Map<string, TaskHandle>()
  readonly reads = new Map<string, unknown>()
  readonly createHandle: (id: string) => TaskHandle
  /** The turns that hang. */
  readonly hanging = new Set<Finish>()
  /** The script is over: turns are accepted, and callbacks take no steps. */
  isDraining = false
  isDisposing = false
  isDisposed = false
  areStreamsOver = false
  readonly #script: RaceScript
  readonly #scheduler: RaceScheduler
  readonly #onRest: () => void
  readonly #hookSteps: { [Name in keyof Hooks]: Step[] }
  #isListening = true
  #turns = 0
  #names = 0

  /** @param onRest called before each scheduled step, when nothing is going on */
  constructor(subject: Subject, script: RaceScript, scheduler: RaceScheduler, onRest: () => void) {
    this.#script = script
    this.#scheduler = scheduler
    this.#onRest = onRest
    this.ledger = new Ledger(script)
    const { busy, error, abort, handler } = script.hooks
    this.#hookSteps = { busy: [...busy], error: [...error], abort: [...abort], handler: [...handler] }
    this.manager = subject.createManager({
      maxAsyncTasks: -1,
      notifyCancelled: script.notifyCancelled,
      clock: this.clock,
      createId: (prefix) => `${prefix}-${(this.#names += 1)}`,
      onError: (error, from) => this.ledger.check(false, () => `A2: ${from.source} reported ${String(error)}`),
    })
    this.reminders = subject.createReminders(this.manager)
    this.createHandle = (id) => subject.createHandle(this.manager, id)
    this.stopListening = this.#listen()
    this.triggers = script.triggers.map((trigger, index) => this.#createTrigger(subject, trigger, index))
    script.tasks.forEach((owner) => this.take({ do: 'register', owner }))
    script.triggers.forEach(({ isSubscribed }, trigger) => {
      if (isSubscribed) this.take({ do: 'subscribe', trigger })
    })
  }

  // Callbacks

  #listen(): () => void {
    const subscriptions = (['onTaskCompleted', 'onTaskFailed', 'onTaskCancelled'] as const).map((method) =>
      this.manager[method](({ id, status }) => {
        this.#checkCalled(this.#isListening, `a handler of ${id}`)
        const known = this.ledger.tasks.get(id)?.state
        this.ledger.check(known === status, () => `A2: a handler gets ${id} as ${status}, it is ${known ?? ''}`)
        this.#callHook('handler')
      }),
    )
    const stream = this.manager.transitions$.subscribe({
      next: ({ kind, to, taskId }) => {
        this.#checkCalled(this.#isListening, `a stream of ${taskId}`)
        if (kind !== 'delivery' || to !== 'delivered') return
        const isDue = this.ledger.isAccepted(taskId) || this.ledger.isAwaited(taskId)
        this.ledger.check(isDue, () => `A5: ${taskId} was acknowledged before any message with it was accepted`)
      },
    })
    this.manager.transitions$.subscribe({ complete: () => (this.areStreamsOver = true) })
    return () => {
      subscriptions.forEach((stop) => stop())
      stream.unsubscribe()
      this.#isListening = false
    }
  }

  #checkCalled(isAllowed: boolean, what: string): void {
    this.ledger.check(isAllowed && !this.isDisposed, () => `A9: ${what} was called after the end`)
  }

  #callHook(name: keyof Hooks): void {
    const step = this.isDraining ? undefined : this.#hookSteps[name].shift()
    if (step !== undefined) this.take(step)
  }

  #createTrigger(subject: Subject, script: RaceScript['triggers'][number], index: number): RacingTrigger {
    const { kind, isBusy, coalesceMs, timeoutMs } = script
    const name = `trigger ${index}`
    const owner = OWNERS[script.owner] ?? 'main'
    const [host, turn] = this.createCallbacks(index, kind, isBusy)
    const trigger = subject.createTrigger(this.manager, this.reminders, host.source, turn, {
      owner,
      coalesceMs,
      retry: { initialMs: 1000, maxMs: RETRY_MAX_MS },
      ...(timeoutMs !== undefined && { deliveryTimeoutMs: timeoutMs }),
      onError: (_, { source }) => {
        const racing = this.triggers[index]
        this.#checkCalled(racing?.isSubscribed === true, `onError of ${name}`)
        if (racing !== undefined && source.startsWith('delivery')) racing.unreported -= 1
        this.#callHook('error')
      },
    })
    return { name, owner, timeoutMs, trigger, host, subscriptions: [], isSubscribed: false, unreported: 0 }
  }

  /** Callbacks for one `updateCallbacks`. Replaced callbacks must not be called any more. */
  createCallbacks(
    index: number,
    kind: RaceScript['triggers'][number]['kind'],
    isBusy: boolean,
  ): [FakeHost, TriggerAgentTurn] {
    const checkCalled = (what: string): void => {
      const racing = this.triggers[index]
      this.#checkCalled(racing?.isSubscribed === true && racing.host === host, `${what} of trigger ${index}`)
    }
    const host = new FakeHost(kind, isBusy, () => {
      checkCalled('isAgentBusy')
      this.#callHook('busy')
    })
    const turn: TriggerAgentTurn = (text, delivery) => {
      checkCalled('triggerAgentTurn')
      return this.#turn(index, text, delivery)
    }
    return [host, turn]
  }

  #turn(
    index: number,
    text: string,
    { taskIds, signal, deliveryId, isRepeat = false }: TurnDelivery,
  ): Promise<unknown> | undefined {
    const racing = this.triggers[index]!
    const { owner, timeoutMs, host } = racing
    const { ledger } = this
    const name = `turn ${(this.#turns += 1)} of trigger ${index}`
    const script = this.isDraining ? ACCEPTED : (this.#script.turns[this.#turns - 1] ?? ACCEPTED)
    ledger.check(!host.looksBusy, () => `A6: ${name} starts while the agent is busy`)
    for (const id of taskIds) {
      const delivery = this.manager.getTask(id)?.delivery
      ledger.check(delivery === 'leased', () => `A6: ${name} carries ${id}, which is ${delivery ?? 'unknown'}`)
    }
    const deadline = timeoutMs === undefined ? undefined : this.clock.now() + timeoutMs
    const message = ledger.open({ name, isExclusive: true, owner, taskIds, deadline, deliveryId, isRepeat }, text)
    signal.addEventListener('abort', () => {
      ledger.check(this.clock.now() === deadline || this.isDisposing, () => `A6: ${name} expired too early`)
      ledger.fail(message)
      const { isSubscribed } = racing
      this.#callHook('abort')
      if (isSubscribed) this.#expectReport(racing)
    })
    for (const step of script.atOnce) this.take(step)
    if (script.outcome === 'throw') {
      ledger.fail(message)
      this.#expectReport(racing)
      throw new Error(`${name} throws`)
    }
    if (script.outcome === 'accept at once') {
      // The message is open until the trigger has handled the returned value.
      queueMicrotask(() => ledger.accept(message))
      return undefined
    }
    return this.#finishTurn(racing, message, script, signal)
  }

  async #finishTurn(racing: RacingTrigger, message: Message, script: TurnScript, signal: AbortSignal): Promise<void> {
    for (const step of script.meanwhile) {
      await this.#inTurn(`${message.name}: ${describeStep(step)}`, () => this.step(step))
    }
    const { outcome } = script
    if (outcome === 'hang' || outcome.startsWith('late')) await this.#hang(outcome === 'hang', signal)
    await this.#inTurn(`${message.name} ends: ${outcome}`, () => {
      if (!outcome.endsWith('refuse')) this.ledger.accept(message)
      else if (message.isOpen) {
        this.ledger.fail(message)
        this.#expectReport(racing)
      }
    })
    if (outcome.endsWith('refuse')) throw new Error(`${message.name} refuses`)
  }

  /** A delivery has failed: `onError` must report it if the trigger is still subscribed. */
  #expectReport(racing: RacingTrigger): void {
    if (racing.isSubscribed && !this.isDisposing) racing.unreported += 1
  }

  /** Waits until the drain, or until the delivery expires unless `isForGood`. */
  #hang(isForGood: boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const finish = (): void => {
        this.hanging.delete(finish)
        resolve()
      }
      this.hanging.add(finish)
      if (!isForGood) signal.addEventListener('abort', finish)
    })
  }

  /** Acts in a turn of the scheduler, or at once during the drain. */
  async #inTurn(label: string, act: () => Promise<void> | void): Promise<void> {
    if (this.isDraining) return act()
    await this.#scheduler.scheduleSequence([{ label, builder: async () => act() }]).task
  }

  // The steps

  /** Takes a step of an actor, when nothing is going on. */
  async step(step: Step): Promise<void> {
    this.#onRest()
    if (step.do !== 'advance') this.take(step)
    else {
      await this.clock
        .advance(step.ms)
        .catch((error: unknown) => this.ledger.check(false, () => `A6: ${String(error)}`))
    }
  }

  /** Takes a step at once; after `dispose` none. */
  take(step: Step): void {
    if (this.isDisposed || this.isDisposing) return
    try {
      performStep(this, step)
    } catch (error) {
      this.ledger.check(false, () => `'${describeStep(step)}' threw ${String(error)}`)
    }
  }
}
