/**
 * The world that a race takes place in: a manager with its triggers and their hosts, whose every callback is noted in a
 * ledger, and the turns that they start.
 */
import type { TriggerAgentTurn, TurnDelivery } from '../../src/async-tasks/auto-trigger.js'
import type { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import type { AsyncTaskReminderService } from '../../src/async-tasks/reminder-service.js'
import type { RaceScheduler } from '../../src/testing/race-scheduler.js'
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
  /** Takes back every handler and stream of the host. */
  readonly stopListening: () => void
  readonly triggers: readonly RacingTrigger[]
  readonly reminded: Reminded[] = []
  readonly aborters: AbortController[] = []
  /** The turns that hang. */
  readonly hanging = new Set<Finish>()
  /** From now on turns are accepted, and callbacks do nothing else. */
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
    this.ledger = new Ledger(script.notifyCancelled)
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
    this.stopListening = this.#listen()
    this.triggers = script.triggers.map((trigger, index) => this.#createTrigger(subject, trigger, index))
    script.tasks.forEach((owner) => this.take({ do: 'register', owner }))
    script.triggers.forEach(({ isSubscribed }, trigger) => {
      if (isSubscribed) this.take({ do: 'subscribe', trigger })
    })
  }

  // Callbacks of the host

  #listen(): () => void {
    const subscriptions = (['onTaskCompleted', 'onTaskFailed', 'onTaskCancelled'] as const).map((method) =>
      this.manager[method](({ id, status }) => {
        this.#checkCalled(this.#isListening, `a handler of ${id}`)
        const known = this.ledger.tasks.get(id)?.state
        this.ledger.check(
          known === status,
          () => `A2: a handler is told that ${id} has ${status}, it is ${known ?? ''}`,
        )
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
        this.#checkCalled(racing?.isHeard === true, `onError of ${name}`)
        if (racing !== undefined && source.startsWith('delivery')) racing.unreported -= 1
        this.#callHook('error')
      },
    })
    return { name, owner, timeoutMs, trigger, host, subscriptions: [], isHeard: false, unreported: 0 }
  }

  /** What one `updateCallbacks` passes: a call of what it replaced is a call after the end. */
  createCallbacks(
    index: number,
    kind: RaceScript['triggers'][number]['kind'],
    isBusy: boolean,
  ): [FakeHost, TriggerAgentTurn] {
    const checkCalled = (what: string): void => {
      const racing = this.triggers[index]
      this.#checkCalled(racing?.isHeard === true && racing.host === host, `${what} of trigger ${index}`)
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

  #turn(index: number, text: string, { taskIds, signal }: TurnDelivery): Promise<unknown> | undefined {
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
    const message = ledger.open({ name, isExclusive: true, owner, taskIds, deadline }, text)
    signal.addEventListener('abort', () => {
      ledger.check(this.clock.now() === deadline || this.isDisposing, () => `A6: ${name} was given up too early`)
      message.isOpen = false
      const { isHeard } = racing
      this.#callHook('abort')
      if (isHeard) this.#expectReport(racing)
    })
    for (const step of script.atOnce) this.take(step)
    if (script.outcome === 'throw') {
      message.isOpen = false
      this.#expectReport(racing)
      throw new Error(`${name} throws`)
    }
    if (script.outcome === 'accept at once') {
      // Until the trigger looks at what was returned, the message is on its way.
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
        message.isOpen = false
        this.#expectReport(racing)
      }
    })
    if (outcome.endsWith('refuse')) throw new Error(`${message.name} refuses`)
  }

  /** A delivery has failed: `onError` is told if anybody still listens by then. */
  #expectReport(racing: RacingTrigger): void {
    if (racing.isHeard && !this.isDisposing) racing.unreported += 1
  }

  /** Waits until the race is over; a turn that hangs only until it is given up waits for that. */
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

  /** Does something when the scheduler says so; in the drain at once. Nothing else happens until it is done. */
  async #inTurn(label: string, act: () => Promise<void> | void): Promise<void> {
    if (this.isDraining) return act()
    await this.#scheduler.scheduleSequence([{ label, builder: async () => act() }]).task
  }

  // The steps

  /** Takes a step when nothing is going on. */
  async step(step: Step): Promise<void> {
    this.#onRest()
    if (step.do !== 'advance') this.take(step)
    else {
      await this.clock
        .advance(step.ms)
        .catch((error: unknown) => this.ledger.check(false, () => `A6: ${String(error)}`))
    }
  }

  /** Takes a step here and now; after `dispose` none. */
  take(step: Step): void {
    if (this.isDisposed || this.isDisposing) return
    try {
      performStep(this, step)
    } catch (error) {
      this.ledger.check(false, () => `'${describeStep(step)}' threw ${String(error)}`)
    }
  }
}
