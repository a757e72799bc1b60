/**
 * Owns the registry actor of one manager. All changes go through this class.
 *
 * `batch` runs a change in three steps: the transitions, then their effects (`RegistryEffect`), then the notifications of the host, in order (promise
 * A2). A handler of the host may make changes too: such a change runs at once, but its notifications are queued.
 */
import { Subject } from 'rxjs'
import { createActor } from 'xstate'
import { asyncTaskMachine, type AsyncTaskMachine } from '../../machines/async-task.js'
import { ActiveTimes } from '../../machines/active-times.js'
import { Families, type FamilyLimits } from '../../machines/parts/families.js'
import { History } from '../../machines/history.js'
import { ChangeFeed, type RegistryNotification } from '../../machines/change-feed.js'
import { Ledger } from '../../machines/ledger.js'
import type { LedgerOptions } from '../../machines/ledger-options.js'
import type { OutputObject } from '../../machines/records.js'
import type { TaskTransition } from '../../machines/transitions.js'
import type { TaskAdmission } from '../../machines/task-admission.js'
import type {
  RegistryAnswers,
  RegistryEffect,
  RegistryEvent,
  RegistryQuestion,
} from '../../machines/registry-events.js'
import type { RegistrySnapshot } from '../../machines/registry-snapshot.js'
import { Pauses } from '../../machines/parts/pauses.js'
import type { QueueLimits } from '../../machines/task-queue.js'
import { SlotPools, Slots } from '../../machines/slots.js'
import { TaskLimits } from '../../machines/task-limits.js'
import type { Usage } from '../../machines/usage.js'
import type { TaskEntry } from '../../machines/task-entry.js'
import { endedAs, hasEnded, isWaiting, wasStopped } from '../../machines/task-status.js'
import { createRegistryLogic, type RegistryRef, type RegistryTransitions } from '../../machines/registry.js'
import { callContext } from '../isolation/call-context.js'
import type { OnError } from '../isolation/error-report.js'
import type { Inspect } from '../isolation/inspection.js'
import { elapsedMs, type Clock } from '../system/clock.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { AgentTasksError, TaskIdInUseError } from '../errors.js'
import { ManagerOutbox, type TimerLabels } from '../isolation/manager-outbox.js'
import { estimateJsonChars } from '../data/json-text.js'
import { failureOf } from '../protocol/outcomes.js'
import type { PastIdCheck } from '../features/history/past-id-check.js'
import type { Store, StoredDelivery, StoredFeatureState } from '../store/store.js'
import { toAbortReason } from './cancel-reason.js'
import { DeadlineTimer } from '../features/limits/deadline-timer.js'
import { Features, type Feature, type FeatureMaker, type NameOf, type OwnerHold, type WaitReasons } from './feature.js'
import { Persistence } from './recovery/persistence.js'
import type { StoredRun } from './recovery/stored-run.js'
import { ownerLimits, type OwnerLimitOptions } from '../features/limits/owner-limits.js'
import { stopReason } from '../features/limits/stop-reason.js'

export interface TaskRegistryOptions {
  readonly max: number
  readonly maxCommands: number
  readonly maxChildTasks: number
  readonly maxForegroundTasks: number
  readonly families: FamilyLimits
  readonly queue: QueueLimits
  readonly owners: OwnerLimitOptions
  /** How many tasks with the same `concurrencyKey` may run at once, by key. Keys that are not listed have the limit 1. */
  readonly keyLimits: Readonly<Record<string, number>>
  readonly notifyCancelled: boolean
  readonly createId: (prefix: string) => string
  readonly clock: Clock
  readonly report: OnError
  readonly inspect: Inspect | undefined
  readonly taskMachine: AsyncTaskMachine | undefined
  readonly store: Store | undefined
  /** The features, in the order of their hooks. */
  readonly features: readonly FeatureMaker<TaskRegistry, Feature>[]
  readonly addresseeOf: (registry: TaskRegistry, entry: TaskEntry) => string
  /** Returns the output that the record of an ended task keeps. */
  readonly tailOf: NonNullable<LedgerOptions['tailOf']>
}

/** How many records of ended tasks of one owner are kept when no result of them is owed. */
const historyLimit = (max: number): number => (max === -1 ? 10 : max * 2)

/** The approximate size of the texts in a record, in bytes. A character has at most two. */
const textBytes = ({ record }: TaskEntry): number =>
  2 *
  estimateJsonChars([record.goalPrompt, record.output, record.error, endedAs(record, 'failed') && record.lateOutput])

/** The error code of a task that was not started because its launch could not be stored. */
const NOT_STORED = 'NOT_STORED'

type Notification = RegistryNotification | { readonly type: 'disposal' }

/** The part of a manager that the package's own classes, tools and hosts use. Not public. */
export class TaskRegistry {
  readonly clock: Clock
  readonly createId: (prefix: string) => string
  readonly report: OnError
  readonly hostContext = callContext()
  readonly pools: SlotPools
  readonly limits = new TaskLimits()
  readonly keyLimits: TaskRegistryOptions['keyLimits']
  readonly ledger: Ledger
  readonly history: History
  readonly families: Families
  readonly pauses = new Pauses()
  readonly active = new ActiveTimes()
  /** The parent of the actors of tasks and deliveries. Other code sends it events only through the methods of this class. */
  readonly actor: RegistryRef
  /** Emits all notifications in order. Completes on disposal. Subscribers must not throw. */
  readonly notifications$ = new Subject<RegistryNotification>()
  /** Emits after each change, when all its notifications were delivered. */
  readonly drained$ = new Subject<void>()
  /** Counters of features, by the names of their metrics. */
  readonly totals = new Map<string, number>()
  readonly features = new Features<TaskRegistry>()
  readonly persistence: Persistence | undefined
  /** Runs a change with its effects. Code of the host runs only after the transitions. */
  readonly batch: ManagerOutbox<Notification>['batch']
  readonly #outbox: ManagerOutbox<Notification>
  readonly #changes: ChangeFeed
  readonly #core: RegistryTransitions
  readonly #deadlineTimer: DeadlineTimer
  readonly #retryTimer: DeadlineTimer
  #isProcessing = false
  #isDisposed = false

  constructor(options: TaskRegistryOptions) {
    const { clock, report, store, queue } = options
    this.clock = clock
    this.createId = options.createId
    this.report = report
    this.keyLimits = { ...options.keyLimits }
    this.#deadlineTimer = new DeadlineTimer(clock, () => this.send({ type: 'deadlines.due' }))
    this.#retryTimer = new DeadlineTimer(clock, () => this.send({ type: 'retries.due' }))
    this.persistence =
      store &&
      new Persistence({
        store,
        clock,
        report,
        outbox: {
          batch: (change) => this.batch(change),
          mark: () => this.#outbox.mark(),
          release: () => this.#outbox.release(),
        },
        bytesOf: textBytes,
        onConfirmed: (entries) => this.#offer(entries),
        standingsOf: (entry) => (this.active.has(entry) ? this.ledger.questions.standings(entry) : undefined),
      })
    this.#outbox = new ManagerOutbox<Notification>({
      clock,
      report,
      inspect: options.inspect,
      notify: (notification) => this.#notify(notification),
      onChanged: () => this.#performEffects(),
      onDrained: () => this.#onDrained(),
      onHeld: () => this.#setTimers(),
      ...(this.persistence && { mayDeliver: () => this.#isDisposed || this.persistence?.isSettled() === true }),
    })
    this.batch = this.#outbox.batch
    this.#changes = new ChangeFeed(
      () => clock.now(),
      (notification) => {
        this.#note(notification)
        this.#outbox.push(notification)
      },
    )
    const limits = {
      task: options.max,
      child: options.maxChildTasks,
      command: options.maxCommands,
      foreground: options.maxForegroundTasks,
    }
    this.pools = new SlotPools(
      // The time limit of the queue does not apply to foreground tasks. They wait only for slots of a key or subagent, as long as their callers wait.
      (pool) =>
        new Slots(
          limits[pool],
          () => elapsedMs(clock),
          pool === 'foreground' ? { ...queue, maxWaitMs: undefined } : queue,
          ownerLimits(pool, options.owners, queue, (id) => this.history.get(id)?.record.owner),
        ),
    )
    this.history = new History(
      () => options.owners.maxKept ?? historyLimit(this.pools.task.max),
      (entry) => this.persistence?.isCarried(entry) === true || this.features.any('keeps', entry),
      textBytes,
    )
    this.ledger = new Ledger({
      changes: this.#changes,
      notifyCancelled: options.notifyCancelled,
      find: (id) => this.history.get(id),
      onCleared: (entry) => this.history.offer(entry),
      onRepeated: (entry) => this.history.keep(entry),
      addresseeOf: (entry) => options.addresseeOf(this, entry),
      tailOf: options.tailOf,
      ...omitUndefined({ deliveries: this.persistence }),
    })
    this.families = new Families(options.families, this.ledger, (owner, heir) => this.#onReleased(owner, heir))
    for (const feature of options.features) this.use(feature)
    this.#core = createRegistryLogic({
      slots: this.pools,
      limits: this.limits,
      ledger: this.ledger,
      history: this.history,
      families: this.families,
      pauses: this.pauses,
      active: this.active,
      changes: this.#changes,
      task: options.taskMachine ?? asyncTaskMachine,
      elapsed: () => elapsedMs(clock),
      describeError: failureOf,
      expiry: {
        error: `The task waited for a slot for more than ${queue.maxWaitMs} ms, which is the limit (queue.maxWaitMs).`,
        errorCode: 'QUEUE_TIMEOUT',
      },
      onEnded: (entry, apply) => this.features.run('ending', entry, apply),
      onSpent: (...spent) => this.features.run('spent', ...spent),
      onWaiting: (entry, waitedMs) =>
        this.persistence?.setRun(entry, { notBefore: clock.now() - waitedMs, delayMs: 0 }),
      waitsFor: (entry, other) => this.features.any('leadsTo', entry, other),
      onCounted: (rate, names) => this.features.run('counted', rate, names),
      onNoted: (entry) => this.persistence?.noteChange(entry),
      ...(this.persistence && { onLaunched: (entry, admission) => this.#noteLaunch(entry, admission) }),
    })
    this.actor = createActor(this.#core.logic, { id: 'registry', ...this.actorOptions() })
    this.batch(() => this.actor.start())
  }

  get isDisposed(): boolean {
    return this.#isDisposed
  }

  /** The number of the latest change. */
  get seq(): number {
    return this.#changes.seq
  }

  get snapshot(): RegistrySnapshot {
    return this.actor.getSnapshot()
  }

  /** Returns the options of a root actor whose delays end in a batch. */
  actorOptions(labels?: TimerLabels): ReturnType<ManagerOutbox<Notification>['actorOptions']> {
    return this.#outbox.actorOptions(labels)
  }

  use<F extends Feature>(make: FeatureMaker<TaskRegistry, F>): F {
    return this.features.use(this, make)
  }

  /**
   * Returns why a queued task does not start, other than for want of a slot of its pool.
   * @param nameOf returns the id of a task as the reader knows it
   */
  waitReasons({ id: taskId }: { readonly id: string }, nameOf: NameOf = ({ id }) => id): WaitReasons {
    const entry = this.history.get(taskId)
    if (entry === undefined || !isWaiting(entry.record.status)) return {}
    const own = this.features.first('waitReason', entry, nameOf)
    return { own, ofOwner: this.ownerHold(entry.record.owner) }
  }

  /** Returns why no task of an owner starts; undefined if they start. */
  ownerHold(owner: string): OwnerHold | undefined {
    return this.features.first('ownerHold', owner)
  }

  listLines(owner?: string): string[] {
    return this.features.listLines(owner)
  }

  /** Whether an owed result may be delivered now. */
  mayDeliver(entry: TaskEntry): boolean {
    return this.features.all('mayDeliver', entry)
  }

  /** Whether a message of an earlier process has arrived; undefined if no feature knows. */
  wasDelivered(delivery: StoredDelivery): boolean | undefined {
    return this.features.first('wasDelivered', delivery)
  }

  count(total: string, by = 1): void {
    this.totals.set(total, (this.totals.get(total) ?? 0) + by)
  }

  /** Passes rows of the store to the features that have written them: before the tasks are restored (`prepare`), or with the tasks (`restore`). */
  restoreStates(states: readonly StoredFeatureState[], when: 'prepare' | 'restore' = 'restore'): void {
    for (const { feature, [when]: take } of this.features.states()) {
      const own = states.filter((state) => state.feature === feature)
      take?.(new Map(own.map(({ id, data }) => [id.slice(feature.length + 1), data])))
    }
  }

  /** Sends an event without an answer. A disposed registry ignores it. */
  send(event: Exclude<RegistryEvent, RegistryQuestion>): void {
    this.batch(() => {
      if (!this.#isDisposed) this.#process(event)
    })
  }

  /**
   * Sends an event and returns the answer to it. Cannot be called inside a transition, because XState would defer the event.
   * @returns undefined if the registry is disposed
   * @throws AgentTasksError `REENTRANT_CALL` if called inside a transition
   */
  ask<Q extends RegistryQuestion>(question: Q): RegistryAnswers[Q['type']] | undefined {
    if (this.#isProcessing) {
      throw new AgentTasksError(
        'REENTRANT_CALL',
        'The manager was called from an action or guard of its own state machines. Call it after the transition, for example in queueMicrotask().',
      )
    }
    if (this.#isDisposed) return undefined
    return this.batch(() => {
      this.#process(question)
      return this.#core.takeAnswer() as RegistryAnswers[Q['type']]
    })
  }

  /**
   * Starts the run of a new task when its launch is stored (promise K1); without a store at once. If the launch cannot be stored, the task fails
   * without having run. If the task has ended in the meantime, that stays its end, and is stored later.
   * @param past the check whether the history contains the id; if it does, the task fails as well
   */
  afterLaunch(entry: TaskEntry, start: () => void, past?: PastIdCheck): void {
    const { persistence } = this
    if (persistence === undefined) {
      start()
      return
    }
    persistence.after({
      row: { table: 'tasks', id: entry.record.id },
      onStored: () => {
        if (past === undefined || past.isInUse === false) start()
        else void past.settled.then(() => this.batch(() => this.#startUnlessInUse(entry, start, past)))
      },
      onRefused: ({ message }) => {
        if (entry.ref === undefined) return
        persistence.withdraw(entry)
        const error = `The task could not be stored and was not started: ${message}`
        this.#withdraw(entry, { message: error, code: NOT_STORED })
      },
    })
  }

  #startUnlessInUse(entry: TaskEntry, start: () => void, past: PastIdCheck): void {
    if (past.isInUse !== true) start()
    else if (entry.ref !== undefined) {
      this.persistence?.withdrawStored(entry)
      this.#withdraw(entry, new TaskIdInUseError(entry.record.id))
    }
  }

  /** Fails a task that was not started. Its result is not owed to the owner. */
  #withdraw(entry: TaskEntry, { message, code }: { readonly message: string; readonly code: string }): void {
    this.send({ type: 'task.withdraw', entry, error: message, errorCode: code })
    this.send({ type: 'slot.release', entry })
    this.features.run('withdrawn', entry, message)
  }

  /**
   * Cancels an active task and the tasks that its run has launched. Without a store, their runs are aborted before this method returns. With a store,
   * they are aborted after the attempt to store the cancellation. Returns false if the task had ended.
   */
  cancel(entry: TaskEntry, reason?: string): boolean {
    return this.cancelAll([entry], reason).length > 0
  }

  /** Cancels several tasks as `cancel` does. Returns all cancelled tasks, parents before their children. */
  cancelAll(entries: readonly TaskEntry[], reason?: string): TaskEntry[] {
    // The actors of suspended tasks still run, but nothing may end these tasks.
    if (this.#isDisposed) return []
    return this.batch(() => entries.flatMap((entry) => this.#cancelFamily(entry, reason)))
  }

  /** Cancels a task and then its descendants. */
  #cancelFamily(entry: TaskEntry, reason: string | undefined): TaskEntry[] {
    if (entry.ref === undefined) return []
    // Read before the task ends, because its children belong to another owner after that.
    const children = this.families.liveChildren(entry)
    entry.ref.send({ type: 'task.cancel', ...omitUndefined({ reason }) })
    if (!wasStopped(entry.record.status)) return []
    const inherited = `its parent ${entry.record.id} was cancelled`
    return [entry, ...children.flatMap((child) => this.#cancelFamily(child, inherited))]
  }

  /**
   * Disposes the registry without ending its tasks. Until their grace has passed, the outputs of these runs are stored (`complete`), and so are the
   * ends of their open steps.
   */
  suspend(running: readonly TaskEntry[]): void {
    this.batch(() => {
      this.#process({ type: 'registry.suspend', running })
      this.dispose()
    })
  }

  /** Whether the run of a task was asked to stop because the registry was suspended. */
  isSuspended(entry: TaskEntry): boolean {
    return this.#core.isSuspended(entry)
  }

  /** Adds to the usage of a task. That of a suspended run is stored, too. */
  spend(entry: TaskEntry, amount: Usage): void {
    if (this.#isDisposed && !this.isSuspended(entry)) return
    this.batch(() => this.#process({ type: 'task.spend', entry, amount }))
    if (this.#isDisposed) this.persistence?.flush()
  }

  /** Stores the output of a suspended run. The next process delivers it. */
  complete(entry: TaskEntry, output: OutputObject): void {
    if (!this.isSuspended(entry)) return
    this.batch(() => this.#process({ type: 'run.returned', entry, output }))
    this.persistence?.flush()
  }

  /** Ends the actor of a suspended registry, when all suspended runs have ended. */
  close(): void {
    if (this.actor.getSnapshot().status === 'active') this.batch(() => this.#process({ type: 'registry.close' }))
  }

  /** Disposes the registry. From now on, no notification is delivered. */
  dispose(): void {
    this.batch(() => {
      this.persistence?.keepSent()
      // Features close before the actor stops, so that actors of deliveries can still report their ends to the registry.
      this.features.run('closing')
      this.notifications$.complete()
      this.drained$.complete()
      this.features.run('disposed')
      this.#isDisposed = true
      this.#outbox.push({ type: 'disposal' })
    })
  }

  #process(event: RegistryEvent): void {
    const wasProcessing = this.#isProcessing
    this.#isProcessing = true
    try {
      this.actor.send(event)
    } finally {
      this.#isProcessing = wasProcessing
    }
  }

  #noteLaunch(entry: TaskEntry, { graceMs, pool, run }: TaskAdmission): void {
    const { launchedAt, status, timeoutMs } = entry.record
    const deadlineAt = timeoutMs === undefined || isWaiting(status) ? undefined : launchedAt + timeoutMs
    this.persistence?.launch(entry, {
      attempt: 1,
      deadlineAt,
      run: { graceMs, ...omitUndefined({ pool }), ...(run as StoredRun | undefined) },
    })
  }

  /**
   * Adds a change to the next write, inside the transition. A pruned record goes to the history at the same time, so that the task is always in the
   * store or in the history.
   */
  #note(notification: RegistryNotification): void {
    const { persistence } = this
    if (notification.type === 'transition' && notification.transition.kind === 'history') {
      this.features.run('pruned', notification.entry, notification.transition.at)
    }
    if (notification.type === 'transition' && notification.transition.kind === 'owner') {
      this.pools.ownerChanged(notification.entry)
    }
    if (persistence === undefined) return
    const isLaunch =
      notification.type === 'transition' &&
      notification.transition.kind === 'status' &&
      notification.transition.from === null
    // `#noteLaunch` stores a launch, because it knows more than the record contains.
    if (!isLaunch) persistence.note(notification)
  }

  /** Lets the history prune records whose results are confirmed. */
  #offer(entries: readonly TaskEntry[]): void {
    for (const entry of entries) this.history.offer(entry)
    if (this.history.hasExcess()) this.send({ type: 'history.prune' })
  }

  #onReleased(owner: string, heir: string | undefined): void {
    this.features.run('released', owner, heir)
    this.persistence?.confirmOwner(owner)
  }

  #performEffects(): void {
    if (this.#isProcessing) return
    const { effects } = this.#core
    for (let [effect] = effects; effect !== undefined; [effect] = effects) {
      effects.shift()
      this.#perform(effect)
    }
  }

  #perform(effect: RegistryEffect): void {
    const { entry } = effect
    switch (effect.type) {
      case 'started':
        this.#afterStart(() => this.features.run('start', entry))
        return
      case 'resumed':
        this.features.run('resumed', entry)
        return
      case 'unmet':
        entry.ref?.send({ type: 'task.fail', ...effect.failure })
        return
      case 'wrapping':
        this.features.run('wrapUp', entry, effect.excess)
        return
      case 'cancelled':
        this.#afterWrite(() => this.features.run('abort', entry, toAbortReason(effect.reason)))
        return
      case 'stopping': {
        // Cancels the children first, because `abort` may run host code, which must not see a child that is still active.
        const children = this.families.liveChildren(entry)
        if (children.length > 0) this.cancelAll(children, `its parent ${entry.record.id} has reached its limit`)
        this.features.run('abort', entry, stopReason(entry, effect.excess))
      }
    }
  }

  /** Calls `start` after the store has recorded that the run starts, so that the attempt counts even if the process dies. */
  #afterStart(start: () => void): void {
    if (this.persistence === undefined) start()
    else this.persistence.after({ onStored: start })
  }

  /**
   * Calls `abort` after the first attempt to store a cancellation, even if the attempt fails. So the cancellation usually counts even if the process
   * dies.
   */
  #afterWrite(abort: () => void): void {
    if (this.persistence === undefined) abort()
    else this.persistence.afterWrite(abort)
  }

  #notify(notification: Notification): void {
    if (notification.type === 'disposal') {
      this.#process({ type: 'registry.dispose' })
      return
    }
    if (this.notifications$.observed) this.notifications$.next(notification)
    const { type } = notification
    if (type === 'questions' || type === 'detached') this.features.run('changed', notification.entry)
    if (notification.type === 'transition') this.#finish(notification.transition, notification.entry)
  }

  /** Runs what remains to be done for a transition, after the streams were notified. */
  #finish(transition: TaskTransition, entry: TaskEntry): void {
    if (transition.kind === 'history') entry.data = undefined
    if (transition.kind !== 'status') return
    if (!hasEnded(transition.to)) {
      if (transition.from !== null) this.features.run('changed', entry)
      return
    }
    this.features.run('ended', entry, transition)
    this.history.markHandled(entry)
    if (this.history.hasExcess()) this.send({ type: 'history.prune' })
  }

  #onDrained(): void {
    this.#setTimers()
    if (!this.drained$.observed) return
    this.drained$.next()
    // An observer may have reserved a slot. That causes no notification, but needs a timer.
    this.#setTimers()
  }

  #setTimers(): void {
    const { nextDeadlineAt, nextDeadlineOf, nextRetryAt, nextRetryOf } = this.snapshot
    const isActive = !this.#isDisposed
    this.#deadlineTimer.set(isActive ? nextDeadlineAt : undefined, () => ({
      name: nextDeadlineOf === undefined ? 'end of a reservation' : `deadline of ${nextDeadlineOf}`,
      kind: 'deadline',
    }))
    this.#retryTimer.set(isActive ? nextRetryAt : undefined, () => ({ name: `retry of ${nextRetryOf ?? ''}` }))
  }
}
