/**
 * The registry actor of one manager, and the one way to change it. It is longer than most files because every change goes through it.
 *
 * `batch` runs a change to its end, then the aborts that it calls for, and then notifies the host, in transition order and never
 * from inside a transition (A2). A change made by a handler is answered at once; its own notifications wait their turn.
 */
import { Subject } from 'rxjs'
import { createActor, type InspectionEvent } from 'xstate'
import { asyncTaskMachine, timeoutMessage, type AsyncTaskMachine } from '../../machines/async-task.js'
import { Families, type FamilyLimits } from '../../machines/families.js'
import { History } from '../../machines/history.js'
import { Journal, type RegistryNotification } from '../../machines/journal.js'
import { Ledger, type LeaseRequest } from '../../machines/ledger.js'
import type {
  AsyncTaskInfo,
  ProgramFacts,
  TaskAdmission,
  TaskAnswer,
  TaskProgress,
  TaskQuestion,
  TaskTransition,
} from '../../machines/records.js'
import type { RegistrySnapshot } from '../../machines/registry-snapshot.js'
import type { QueueLimits } from '../../machines/task-queue.js'
import { SlotPools, Slots } from '../../machines/slots.js'
import type { Lease, TaskEntry } from '../../machines/task-entry.js'
import { hasEnded } from '../../machines/task-status.js'
import { changedRecord, withProgram, withQuestions } from '../../machines/task-record.js'
import {
  createRegistryLogic,
  type Admission,
  type RegistryEvent,
  type RegistryRef,
} from '../../machines/task-registry.js'
import type { OnError } from '../callbacks/error-report.js'
import { toInspectFunction, type Inspect } from '../callbacks/inspection.js'
import { observerOf } from '../callbacks/observed-clock.js'
import { callIsolated } from '../callbacks/isolated-call.js'
import { createOutbox, type Outbox } from '../callbacks/outbox.js'
import { actorClock, elapsedMs, type Clock } from '../clock.js'
import type { Run } from '../engine/engine.js'
import { AgentTasksError } from '../errors.js'
import { estimateJsonChars } from '../protocol/json-text.js'
import { failureOf } from '../protocol/outcomes.js'
import type { Store } from '../store/store.js'
import { StoreError } from '../store/store-errors.js'
import { unlink } from './abort-link.js'
import { toAbortReason } from './cancel-reason.js'
import { DeadlineTimer } from './deadline-timer.js'
import { DeliveryTimerLabels } from './delivery-timer-labels.js'
import { DeliveryStandings } from './delivery-standings.js'
import { inboxes } from './inbox.js'
import { ListedIds } from './listed-ids.js'
import { openQuestions } from './open-questions.js'
import { addresseeOf } from './question-addressee.js'
import { outputLogs } from './output-log.js'
import { keptTail } from './output-tail.js'
import { Persistence } from './persistence.js'
import type { SpentAmount } from '../protocol/budget.js'
import { storedEnds } from './run-files.js'
import { currentRuns, plans, type RunStart } from './run-plan.js'
import { PrunedTasks } from './pruned-tasks.js'
import { addSpent, budgetMessage, overspent, SpentByOwner } from './spending.js'
import { excessError, WrapUp, wrapUps } from './wrap-up.js'
import { PushSubscribers } from './push-subscribers.js'
import { TaskWatchers } from './task-watchers.js'

/** A task of an earlier process that goes on. */
export type ResumedTask = Omit<Extract<RegistryEvent, { type: 'task.resume' }>, 'type' | 'reply'>

export interface TaskRegistryOptions {
  readonly max: number
  readonly maxChildTasks: number
  readonly maxForegroundTasks: number
  readonly families: FamilyLimits
  readonly queue: QueueLimits
  readonly notifyCancelled: boolean
  readonly clock: Clock
  readonly report: OnError
  readonly inspect: Inspect | undefined
  readonly taskMachine: AsyncTaskMachine | undefined
  /** An open store. */
  readonly store: Store | undefined
  /** Starts the run of a task that has waited. */
  readonly onStart: (entry: TaskEntry, start: RunStart) => void
  /** Called with each task's end, after the streams. It must not throw. */
  readonly onEnd: (transition: TaskTransition) => void
  /** Called once, when the registry is disposed. It must not throw. */
  readonly onDispose: () => void
}

/** The number of ended records that are kept although they owe nothing. */
const historyLimit = (max: number): number => (max === -1 ? 10 : max * 2)

/** About how much the texts of a record take, in bytes: a character has at most two. */
const textBytes = ({ record }: TaskEntry): number =>
  2 *
  estimateJsonChars([record.goalPrompt, record.output, record.error, record.status === 'failed' && record.lateOutput])

type Notification =
  | RegistryNotification
  | { readonly type: 'inspection'; readonly event: InspectionEvent }
  | { readonly type: 'disposal' }

/** What the package's own classes, tools and hosts use of a manager; not a part of the public API. */
export class TaskRegistry {
  readonly clock: Clock
  readonly report: OnError
  readonly pools: SlotPools
  /** The slots of the tasks whose callers wait for them. */
  readonly foreground: Slots
  readonly ledger: Ledger
  readonly history: History
  readonly families: Families
  /** The actor: parent of the actors of tasks and deliveries. Send to it through the methods of this class alone. */
  readonly actor: RegistryRef
  /** Every notification, in order; completes on disposal. Its subscribers must not throw. */
  readonly notifications$ = new Subject<RegistryNotification>()
  /** After each change, once its notifications were delivered. */
  readonly drained$ = new Subject<void>()
  /** Notified of a task's end and questions after the streams. */
  readonly watchers = new TaskWatchers()
  /** The tasks that lists have shown. */
  readonly listed = new ListedIds()
  /** The tasks whose records were pruned. */
  readonly pruned = new PrunedTasks()
  /** The runs that have not settled: the run of a cancelled task outlives it. */
  readonly runs = new Set<Run>()
  /** The known fields of an output that were reported as misnamed. */
  readonly misnamedFields = new Set<string>()
  readonly #options: TaskRegistryOptions
  readonly #journal: Journal
  /** Only with a store. */
  readonly persistence: Persistence | undefined
  /** Runs a change and everything that must follow it. No host code runs while the registry is in a transition. */
  readonly batch: Outbox<Notification>['batch']
  readonly #push: Outbox<Notification>['push']
  readonly #drain: Outbox<Notification>['drain']
  readonly #inspect: ((event: InspectionEvent) => unknown) | undefined
  readonly #aborts: { readonly entry: TaskEntry; readonly reason: unknown }[] = []
  readonly #wrapUps: { readonly entry: TaskEntry; readonly excess: string }[] = []
  readonly #starts: TaskEntry[] = []
  /** What the tasks have spent. */
  readonly spent = new SpentByOwner()
  /** The owners whose messages the host delivers. */
  readonly pushSubscribers = new PushSubscribers()
  /** How the deliveries of the auto-triggers stand. */
  readonly standings = new DeliveryStandings()
  readonly #deadlineTimer: DeadlineTimer
  readonly #retryTimer: DeadlineTimer
  #isProcessing = false
  #isDisposed = false

  constructor(options: TaskRegistryOptions) {
    const { clock, max, notifyCancelled, report } = options
    this.clock = clock
    this.#deadlineTimer = new DeadlineTimer(clock, () => this.send({ type: 'deadlines.due' }))
    this.#retryTimer = new DeadlineTimer(clock, () => this.send({ type: 'retries.due' }))
    this.report = report
    this.#options = options
    this.#inspect = toInspectFunction(options.inspect)
    const { store } = options
    this.persistence =
      store &&
      new Persistence({
        store,
        clock,
        report,
        onWritten: () => this.#onWritten(),
        onConfirmed: (entries) => this.#offer(entries),
      })
    const { batch, push, drain } = createOutbox<Notification>({
      notify: (notification) => this.#notify(notification),
      onChanged: () => this.#runEffects(),
      onDrained: () => this.#onDrained(),
      mayDeliver: () => this.#isDisposed || (this.persistence?.isSettled() ?? true),
    })
    this.batch = batch
    this.#push = push
    this.#drain = drain
    this.#journal = new Journal(
      () => clock.now(),
      (notification) => {
        this.#note(notification)
        push(notification)
      },
    )
    // Programs have no limit until one is set.
    const limits = { task: max, child: options.maxChildTasks, command: -1 }
    this.pools = new SlotPools((pool) => new Slots(limits[pool], () => elapsedMs(clock), options.queue))
    this.foreground = new Slots(options.maxForegroundTasks, () => elapsedMs(clock))
    this.history = new History(
      () => historyLimit(this.slots.max),
      (entry) => this.persistence?.isCarried(entry) === true,
      textBytes,
    )
    this.ledger = new Ledger({
      journal: this.#journal,
      notifyCancelled,
      find: (id) => this.history.get(id),
      onCleared: (entry) => this.history.offer(entry),
      onRepeated: (entry) => this.history.keep(entry),
      addresseeOf: ({ record }) => addresseeOf(this, record),
      tailOf: (entry, settlement) => keptTail(entry, settlement, outputLogs.get(entry)),
      ...(this.persistence && { deliveries: this.persistence }),
    })
    this.families = new Families(options.families, this.ledger, (owner) => {
      this.pushSubscribers.remove(owner)
      this.persistence?.confirmOwner(owner)
    })
    const logic = createRegistryLogic({
      slots: this.pools,
      foreground: this.foreground,
      ledger: this.ledger,
      history: this.history,
      families: this.families,
      journal: this.#journal,
      task: options.taskMachine ?? asyncTaskMachine,
      host: {
        requestAbort: (taskId, excess) => this.#requestAbort(taskId, excess),
        requestWrapUp: (taskId, excess) => this.#requestWrapUp(taskId, excess),
        setQuestions: (taskId, questions) => this.#setQuestions(taskId, questions),
      },
      elapsed: () => elapsedMs(clock),
      describeError: failureOf,
      startRun: (entry) => this.#starts.push(entry),
      expiry: {
        error: `The task waited for a slot for more than ${options.queue.maxWaitMs} ms, the longest that it may.`,
        errorCode: 'QUEUE_TIMEOUT',
      },
      describeOverrun: ({ record: { budget, spent } }) => budgetMessage('seconds', budget?.seconds ?? 0, spent),
      onRan: (entry, seconds) => this.#addSpent(entry, { seconds: seconds - (entry.record.spent?.seconds ?? 0) }),
      ...(this.persistence && { storeLaunch: (entry, admission) => this.#storeLaunch(entry, admission) }),
    })
    const labels = observerOf(clock) && new DeliveryTimerLabels()
    const isInspected = this.#inspect !== undefined
    this.actor = createActor(logic, {
      id: 'registry',
      clock: actorClock(
        clock,
        (run) => this.batch(run),
        (ms) => labels?.take(ms),
      ),
      ...((isInspected || labels) && {
        inspect: (event) => {
          labels?.note(event)
          if (isInspected) this.#push({ type: 'inspection', event })
        },
      }),
    })
    this.batch(() => this.actor.start())
  }

  /** The slots of the host's tasks. */
  get slots(): Slots {
    return this.pools.task
  }

  get isDisposed(): boolean {
    return this.#isDisposed
  }

  /** The number of the latest change. */
  get seq(): number {
    return this.#journal.seq
  }

  get snapshot(): RegistrySnapshot {
    return this.actor.getSnapshot()
  }

  // Changes

  /** Sends an event that has no answer; a disposed registry ignores it. */
  send(event: Exclude<RegistryEvent, { reply: unknown }>): void {
    this.batch(() => {
      if (!this.#isDisposed) this.#process(event)
    })
  }

  register(
    admission: TaskAdmission,
    isLaunched: boolean,
    reservationId: string | undefined,
    parent?: TaskEntry,
  ): Admission {
    let answer!: Admission
    const reply = (given: Admission): void => {
      answer = given
    }
    this.#ask({ type: 'task.register', admission, isLaunched, reservationId, parent, reply })
    return answer
  }

  /**
   * Takes over a task of an earlier process whose run goes on, or which waits.
   * @param prepare called before the task can start; it calls no host code
   */
  resume(task: ResumedTask, prepare: (entry: TaskEntry) => void): TaskEntry {
    let entry!: TaskEntry
    this.#ask({
      ...task,
      type: 'task.resume',
      reply: (answer) => {
        entry = answer
        prepare(entry)
      },
    })
    this.restoreSpent(entry.record)
    this.#checkBudget(entry)
    return entry
  }

  reserve(reservationId: string, ttlMs: number): boolean {
    let isReserved = false
    this.#ask({ type: 'reservation.take', reservationId, ttlMs, reply: (answer) => (isReserved = answer) })
    return isReserved
  }

  cancelReservation(reservationId: string): boolean {
    let isCancelled = false
    if (!this.#isDisposed) {
      this.#ask({ type: 'reservation.cancel', reservationId, reply: (answer) => (isCancelled = answer) })
    }
    return isCancelled
  }

  /** Opens a lease; undefined when there is nothing to take, or the owner's exclusive lease is open. */
  takeLease(request: LeaseRequest): Lease | undefined {
    let lease: Lease | undefined
    if (!this.#isDisposed) this.#ask({ type: 'lease.take', request, reply: (answer) => (lease = answer) })
    if (lease !== undefined && this.persistence?.flush() === false) {
      this.send({ type: 'lease.release', deliveryId: request.deliveryId })
      throw new StoreError('STORE_FAILED', 'What is owed cannot be delivered now: the store cannot be written.')
    }
    return lease
  }

  /** Owes once more what a message has delivered. */
  repeat(deliveryId: string): boolean {
    let isRepeated = false
    if (!this.#isDisposed) this.#ask({ type: 'delivery.repeat', deliveryId, reply: (answer) => (isRepeated = answer) })
    return isRepeated
  }

  /** Cancels a task that runs, and those that its run has launched. The aborts that this calls for have happened when it returns. */
  cancel(entry: TaskEntry, reason?: string): boolean {
    return this.cancelAll([entry], reason).length > 0
  }

  /** The same for several tasks. Returns all that were cancelled. */
  cancelAll(entries: readonly TaskEntry[], reason?: string): TaskEntry[] {
    return this.batch(() => {
      const cancelled = entries.flatMap((entry) => this.#cancelFamily(entry, reason))
      // Stored before the aborts, which happen also when that fails.
      if (cancelled.length > 0) this.persistence?.flush()
      return cancelled
    })
  }

  /** Cancels a task, then its children, and theirs. */
  #cancelFamily(entry: TaskEntry, reason: string | undefined): TaskEntry[] {
    const { ref } = entry
    if (ref === undefined) return []
    // When it has ended, they are no longer its own.
    const children = this.families.liveChildren(entry)
    ref.send({ type: 'task.cancel', ...(reason !== undefined && { reason }) })
    if (entry.record.status !== 'cancelled') return []
    this.#aborts.push({ entry, reason: toAbortReason(reason) })
    const inherited = `its parent ${entry.record.id} was cancelled`
    return [entry, ...children.flatMap((child) => this.#cancelFamily(child, inherited))]
  }

  /** The signal that asks the run of a task to conclude. */
  wrapUpOf(entry: TaskEntry): WrapUp {
    return wrapUps.ensure(entry, () => {
      const taskId = entry.record.id
      const wrapUp = new WrapUp((error) => this.report(error, { source: 'abort-listener', taskId }))
      const excess = entry.ref?.getSnapshot().context.excess
      if (excess !== undefined) wrapUp.begin(excess)
      return wrapUp
    })
  }

  /** A run has used something. Call it inside a batch. */
  addSpent(entry: TaskEntry, amount: SpentAmount): void {
    this.#addSpent(entry, amount)
    this.persistence?.noteChange(entry)
    this.#checkBudget(entry)
  }

  /** What a task of an earlier process has spent counts for its owner. */
  restoreSpent({ owner, spent }: AsyncTaskInfo): void {
    if (spent !== undefined) this.spent.add(owner, spent)
  }

  /** The result may have been delivered already, in a process that has died. */
  markRepeat(entry: TaskEntry): void {
    entry.record = changedRecord(entry.record, { isRepeat: true })
  }

  setProgress(entry: TaskEntry, progress: TaskProgress): void {
    if (entry.record.status === 'running') entry.record = changedRecord(entry.record, { progress })
  }

  /** A message to the task was accepted. The count is stored with the next write. */
  countMessage(entry: TaskEntry): void {
    const { messagesSent = 0 } = entry.record
    entry.record = changedRecord(entry.record, { messagesSent: messagesSent + 1 })
    this.persistence?.noteChange(entry)
  }

  /** The program of a command has started, or ended. */
  setProgram(entry: TaskEntry, program: ProgramFacts): void {
    if (entry.record.status === 'running') entry.record = withProgram(entry.record, program)
  }

  /** Ends the registry: no notification is delivered from now on. */
  dispose(): void {
    this.batch(() => {
      this.persistence?.keepSent()
      // The deliveries end with the streams, while their parent can still receive their ends.
      this.#options.onDispose()
      this.notifications$.complete()
      this.drained$.complete()
      this.standings.close()
      this.watchers.close()
      this.#isDisposed = true
      this.#push({ type: 'disposal' })
    })
  }

  // Push and pull

  /** Marks as delivered what an owner without a push subscriber has read. */
  acknowledgePulled(taskIds: readonly string[]): void {
    const pulled = taskIds.filter((id) => {
      const record = this.history.get(id)?.record
      return record?.delivery === 'owed' && !this.pushSubscribers.has(record.owner)
    })
    if (pulled.length > 0) this.send({ type: 'task.delivered', taskIds: pulled })
  }

  /** Sends an event that has an answer. Inside a transition XState would defer it: there would be no answer in time. */
  #ask(event: Extract<RegistryEvent, { reply: unknown }>): void {
    if (this.#isProcessing) {
      throw new AgentTasksError(
        'REENTRANT_CALL',
        'A machine called the manager from inside a transition of its registry.',
      )
    }
    this.batch(() => this.#process(event))
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

  #checkBudget({ record, ref }: TaskEntry): void {
    const message = overspent(record.budget, record.spent)
    if (message !== undefined) ref?.send({ type: 'budget.exceeded', message })
  }

  #requestAbort(taskId: string, excess: string | undefined): void {
    const entry = this.history.get(taskId)
    if (entry === undefined) return
    this.persistence?.setOverdue(entry)
    this.#push({ type: 'limit', entry, state: 'stopping' })
    const message = timeoutMessage(entry.record.timeoutMs ?? 0)
    const reason =
      excess === undefined ? Object.assign(new Error(message), { name: 'TimeoutError' }) : excessError(excess)
    this.#aborts.push({ entry, reason })
  }

  /** Notifies of the answer to a question, which is closed in the same batch. */
  noteAnswer(entry: TaskEntry, questionId: string, answer: TaskAnswer): void {
    this.#push({ type: 'answer', entry, questionId, answer })
  }

  #requestWrapUp(taskId: string, excess: string): void {
    const entry = this.history.get(taskId)
    if (entry === undefined) return
    this.#push({ type: 'limit', entry, state: 'wrapping' })
    this.#wrapUps.push({ entry, excess })
  }

  #addSpent(entry: TaskEntry, amount: SpentAmount & { readonly seconds?: number }): void {
    entry.record = changedRecord(entry.record, { spent: addSpent(entry.record.spent, amount) })
    this.spent.add(entry.record.owner, amount)
  }

  #setQuestions(taskId: string, questions: readonly TaskQuestion[]): void {
    const entry = this.history.get(taskId)
    if (entry?.record.status !== 'running') return
    entry.record = withQuestions(entry.record, questions)
    this.#journal.questions(entry)
    this.ledger.questions.update(entry)
  }

  #storeLaunch(entry: TaskEntry, { timeoutMs, graceMs, pool, run }: TaskAdmission): void {
    const { launchedAt, status } = entry.record
    const deadlineAt = timeoutMs === undefined || status === 'queued' ? undefined : launchedAt + timeoutMs
    this.persistence?.launch(entry, {
      attempt: 1,
      deadlineAt,
      run: { graceMs, ...(pool !== undefined && { pool }), ...run },
    })
  }

  /** Notes a change for the store, in the transition that makes it. */
  #note(notification: RegistryNotification): void {
    const { persistence } = this
    if (persistence === undefined) return
    const isLaunch =
      notification.type === 'transition' &&
      notification.transition.kind === 'status' &&
      notification.transition.from === null
    // A launch has been written.
    if (!isLaunch) persistence.note(notification)
  }

  /** A message was confirmed: the results that it carried may be pruned. */
  #offer(entries: readonly TaskEntry[]): void {
    for (const entry of entries) this.history.offer(entry)
    if (this.history.hasExcess()) this.send({ type: 'history.prune' })
  }

  #onWritten(): void {
    // What waits for it to be stored may start.
    if (this.#starts.length > 0 && !this.#isProcessing) this.batch(() => undefined)
    else this.#drain()
  }

  #runEffects(): void {
    if (this.#aborts.length > 0) this.#runAborts()
    if (this.#wrapUps.length > 0) this.#runWrapUps()
    if (this.#starts.length > 0) this.#runStarts()
  }

  #runWrapUps(): void {
    for (let next = this.#wrapUps.shift(); next !== undefined; next = this.#wrapUps.shift()) {
      this.send({ type: 'wrapUp.begin', entry: next.entry })
      wrapUps.get(next.entry)?.begin(next.excess)
    }
  }

  /** Starts what has waited, once that is stored: each start counts, also when this process dies. */
  #runStarts(): void {
    if (this.#isProcessing || this.persistence?.flush() === false) return
    for (let entry = this.#starts.shift(); entry !== undefined; entry = this.#starts.shift()) {
      const plan = plans.get(entry)
      if (entry.ref === undefined || plan === undefined) this.send({ type: 'slot.release', entry })
      else this.#options.onStart(entry, plan.start)
    }
  }

  #runAborts(): void {
    for (let next = this.#aborts.shift(); next !== undefined; next = this.#aborts.shift()) {
      const { entry, reason } = next
      // Only a task whose deadline has passed has any by now. No code of the host runs before they are cancelled, too.
      const children = this.families.liveChildren(entry)
      if (children.length > 0) this.cancelAll(children, `its parent ${entry.record.id} has reached its limit`)
      unlink(entry)
      try {
        entry.record.abortController?.abort(reason)
      } catch (error) {
        this.report(error, { source: 'abort-listener', taskId: entry.record.id })
      }
      currentRuns.get(entry)?.abort(reason)
    }
  }

  #notify(notification: Notification): void {
    switch (notification.type) {
      case 'inspection':
        callIsolated(
          () => this.#inspect?.(notification.event),
          (error) => this.report(error, { source: 'inspector' }),
        )
        return
      case 'disposal':
        this.#process({ type: 'registry.dispose' })
        return
      case 'transition':
      case 'questions':
      case 'questions.owed':
      case 'answer':
      case 'limit':
      case 'lease.ended':
        if (this.notifications$.observed) this.notifications$.next(notification)
    }
    if (notification.type === 'questions') {
      this.watchers.notify(notification.entry)
      this.#withdrawQuestions(notification.entry)
    }
    if (notification.type === 'transition') this.#finish(notification.transition, notification.entry)
  }

  /** The streams have been notified of a transition: the rest of its effects follow. */
  #finish(transition: TaskTransition, entry: TaskEntry): void {
    if (transition.kind === 'history') {
      entry.kept = undefined
      this.listed.delete(entry.record.id)
      this.pruned.add(entry.record, transition.at)
    }
    if (transition.to === 'queued') {
      this.watchers.notify(entry)
      this.#withdrawQuestions(entry)
    }
    if (!isEnd(transition)) return
    this.watchers.notify(entry)
    this.#withdrawQuestions(entry)
    this.#options.onEnd(transition)
    unlink(entry)
    inboxes.get(entry)?.close()
    storedEnds.get(entry)?.()
    plans.take(entry)
    this.history.markHandled(entry)
    if (this.history.hasExcess()) this.send({ type: 'history.prune' })
  }

  #withdrawQuestions(entry: TaskEntry): void {
    openQuestions.get(entry)?.withdraw(entry.record)
  }

  #onDrained(): void {
    const { status, nextDeadlineAt, nextDeadlineOf, nextRetryAt, nextRetryOf } = this.snapshot
    const isActive = status === 'active'
    this.#deadlineTimer.set(isActive ? nextDeadlineAt : undefined, () => ({
      name: nextDeadlineOf === undefined ? 'end of a reservation' : `deadline of ${nextDeadlineOf}`,
      kind: 'deadline',
    }))
    this.#retryTimer.set(isActive ? nextRetryAt : undefined, () => ({ name: `retry of ${nextRetryOf ?? ''}` }))
    if (this.drained$.observed) this.drained$.next()
  }
}

/** Whether a transition is a task's end. */
export function isEnd(transition: TaskTransition): boolean {
  return transition.kind === 'status' && hasEnded(transition.to)
}
