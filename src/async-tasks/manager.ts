/**
 * The manager of background tasks: it checks arguments and turns methods into events of the registry, which keeps the invariants
 * (`registry.ts`, `machines/task-registry.ts`).
 *
 * It is longer than most files because the class has that many methods.
 */
import type { Observable } from 'rxjs'
import type { AsyncTaskEvent } from '../../machines/async-task.js'
import type {
  ActiveTaskInfo,
  AsyncTaskInfo,
  CancelledTaskInfo,
  CompletedTaskInfo,
  FailedTaskInfo,
  OutputObject,
  QueuedTaskInfo,
  RunningTaskInfo,
  SettledTaskInfo,
  SpentTotals,
  TaskAnswer,
  TaskProgress,
  TaskTransition,
} from '../../machines/records.js'
import type { TaskPause } from '../../machines/pauses.js'
import type { TerminalStatus } from '../../machines/task-status.js'
import type { QuestionRef } from '../../machines/owed-questions.js'
import { isRunning, type TaskEntry } from '../../machines/task-entry.js'
import { systemClock } from '../clock.js'
import { defined } from '../defined.js'
import { InvalidInputError, limitReason } from '../errors.js'
import {
  cancelAllOptionsSchema,
  cancelOptionsSchema,
  launchInputSchema,
  leaseRequestSchema,
  ownerReleaseSchema,
  readOutputOptionsSchema,
  registerTaskInputSchema,
  reserveOptionsSchema,
  type CancelOptions,
  type LaunchTaskInput,
  type PauseOptions,
  type RegisterTaskInput,
  type RestorableRecord,
  type WhenFull,
} from '../protocol/async-tasks.js'
import type { MonitorOptions } from '../protocol/monitors.js'
import { checkOptions } from '../protocol/option-checks.js'
import type { ScheduleInfo, ScheduleInput } from '../protocol/schedules.js'
import { parseInput } from '../protocol/parse.js'
import { toCancelOptions, toCancelReason } from './cancel-reason.js'
import { continueTask } from './continuing.js'
import { createRegistryActor, type RegistryActor } from './registry-actor.js'
import { TaskRegistry } from './registry.js'
import type { RegistryReads } from './registry-reads.js'
import { checkHeir, inheritFromLost, parentOf } from './families/families.js'
import { waitUntilIdle } from './delivery/idle-wait.js'
import { queuePlaces } from './limits/queue-places.js'
import { takeLease, type TaskLease } from './delivery/leases.js'
import { detachTask, type DetachResult } from './detaching.js'
import { reportMisnamedFields } from './misnamed-fields.js'
import { sendMessage, type SendResult } from './questions/messages.js'
import { OutputLog, outputLogs, type OutputChunk } from './output/output-log.js'
import { appendOutput, outputOf, type TaskOutputEvent } from './output/output-stream.js'
import { pausing } from './pausing/pausing.js'
import { reportProgress } from './output/progress.js'
import { answerQuestion, type AnswerValue } from './questions/questions.js'
import { waitReason } from './named-slots/limit-text.js'
import { monitors, type MonitorSource, type TaskMonitor } from './monitors/monitors.js'
import { runs } from './run-plan.js'
import { freshId, randomId } from '../kernel/ids.js'
import { reporterOf } from '../kernel/manager-outbox.js'
import { recover, type Recovery } from './recovery/recovery.js'
import { managerOptionTypes, registryLimits, type AsyncTaskManagerOptions } from './manager-options.js'
import { toRestoredRecords } from './recovery/restoring.js'
import type { WaitOptions, WaitResult } from '../engine/children.js'
import type { Runner } from '../engine/runner.js'
import type { OnError } from '../callbacks/error-report.js'
import { failureOf, toOutput } from '../protocol/outcomes.js'
import { STORE_LOST_REASON, whenLost } from '../store/lost-store.js'
import { features } from './features.js'
import { addresseeOf } from './questions/question-addressee.js'
import { taskHistory } from './history/past-tasks.js'
import type { HistoryPage, TaskHistoryQuery } from '../kernel/past-tasks.js'
import { keptTail } from './output/output-tail.js'
import { spentByOwner } from './limits/spent-by-owner.js'
import { lookUpTask } from './task-lookup.js'
import { toOneLine } from '../text/control-characters.js'
import { cutText } from '../text/cut-text.js'
import { checkMaxAsyncTasks } from './settings.js'
import {
  taskEvents,
  type TaskEvents,
  type OwnerCounts,
  type TaskProgressEvent,
  type TaskQuestionsEvent,
} from './task-events.js'
import { steps, type EventTarget } from './steps/steps.js'
import { schedules, type Schedule } from './schedules/schedules.js'
import { waitForTasks } from './waiting.js'
import { Launcher } from './launching.js'

/** How long a reservation holds its slot, in ms. */
const DEFAULT_RESERVATION_MS = 5000

/** Which part of a task's text to read. */
export interface ReadOutputOptions {
  /** The byte to start at. Default: the first byte that is kept. */
  readonly cursor?: number
  /** The maximum to return, in bytes. Default 16384. */
  readonly maxBytes?: number
}

/** Tracks background tasks from their registration to the delivery of their end. */
export class AsyncTaskManager {
  /** Every change of every task, in order, with the record as it was after it. Completes on `dispose`. */
  readonly transitions$: Observable<TaskTransition>
  /** Each task once, when it has ended. */
  readonly settled$: Observable<SettledTaskInfo>
  /** How many ended tasks each owner is owed that no lease holds; emits the current counts first. */
  readonly owed$: Observable<OwnerCounts>
  /** How many tasks each owner has running; emits the current counts first. */
  readonly running$: Observable<OwnerCounts>
  /** The progress that runs report. */
  readonly progress$: Observable<TaskProgressEvent>
  /** The open questions of a task, whenever they change. */
  readonly questions$: Observable<TaskQuestionsEvent>
  /** The registry's snapshots. Observers are notified after a transition, never inside one, and may call any method here. */
  readonly actor: RegistryActor
  /** @internal For the classes of this folder. */
  readonly registry: TaskRegistry
  /** @internal For the package's own tools, commands and hosts. */
  readonly reads: RegistryReads
  /** Resolves when the store's content has been taken over: nothing of it is delivered before. Without a store there is nothing in it. */
  readonly recovered: Promise<Recovery>
  readonly #events: TaskEvents
  readonly #createId: (prefix: string) => string
  readonly #launcher: Launcher
  readonly #whenFull: WhenFull
  #disposal: Promise<void> | undefined

  /**
   * @param maxAsyncTasks how many tasks may run at once (-1: no limit), or options
   * @throws InvalidSettingError when a number is out of its range; InvalidInputError for an unknown or wrong option; StoreInUseError, StoreError
   *   when the store cannot be opened
   */
  constructor(maxAsyncTasks: number | AsyncTaskManagerOptions = {}) {
    const options = typeof maxAsyncTasks === 'object' ? maxAsyncTasks : { maxAsyncTasks }
    checkOptions(options, managerOptionTypes)
    const clock = options.clock ?? systemClock
    const report = reporterOf(options.onError, clock)
    this.#createId = options.createId ?? randomId
    this.#whenFull = options.whenFull ?? 'refuse'
    this.registry = new TaskRegistry({
      ...registryLimits(options),
      notifyCancelled: options.notifyCancelled ?? false,
      createId: this.#createId,
      clock,
      report,
      inspect: options.inspect,
      taskMachine: options.machines?.task,
      store: options.store,
      features,
      addresseeOf: (registry, { record }) => addresseeOf(registry, record),
      tailOf: (entry, settlement) => keptTail(entry, settlement, outputLogs.get(entry)),
    })
    this.reads = this.registry
    this.#events = this.registry.use(taskEvents)
    this.transitions$ = this.#events.transitions$
    this.settled$ = this.#events.settled$
    this.owed$ = this.#events.owed$
    this.running$ = this.#events.running$
    this.progress$ = this.#events.progress$
    this.questions$ = this.#events.questions$
    this.actor = createRegistryActor(this.registry)
    this.registry.use(monitors).setLimits(options.monitors ?? {})
    this.#launcher = new Launcher(this.registry, options, this)
    this.registry.use(schedules).connect({
      options: options.schedules ?? {},
      runnerOf: (name, field) => this.#launcher.knownRunner(name, field),
      launch: (input, runner) => this.launch(input, runner),
    })
    try {
      const stopWatching = options.telemetry?.watch({
        kind: 'task',
        counts: () => ({
          running: this.registry.ledger.running().length,
          queued: this.registry.ledger.queued().length,
          owed: this.registry.ledger.owed().length,
          pauses: this.registry.pauses.list().length,
        }),
        waiting: () => this.registry.ledger.queued().flatMap((entry) => waitReason(this.registry, entry) ?? []),
        totals: () => this.registry.totals,
        transitions$: this.transitions$,
      })
      this.registry.use(() => defined({ closing: stopWatching }))
      this.recovered = this.#recover(options)
      this.#cancelWhenLost(options.store, report)
    } catch (error) {
      this.registry.dispose()
      this.registry.persistence?.abandon()
      throw error
    }
  }

  /** Another owner runs what is stored: what runs here ends, and nothing of it is delivered, because it is not stored. */
  #cancelWhenLost(store: AsyncTaskManagerOptions['store'], report: OnError): void {
    if (store === undefined) return
    const cancel = (reason: unknown): void => {
      report(reason, { source: 'store' })
      this.cancelAll({ reason: STORE_LOST_REASON })
    }
    this.registry.use(() => ({ closing: whenLost(store, cancel) }))
  }

  #recover({ wasDelivered, findRunner }: AsyncTaskManagerOptions): Promise<Recovery> {
    const { persistence } = this.registry
    if (persistence === undefined) {
      return Promise.resolve({ adopted: [], queued: [], retried: [], interrupted: [], uncertain: [] })
    }
    return recover(this.registry, persistence, {
      wasDelivered,
      findRunner,
      goOn: (entry, start) => this.#launcher.goOn(entry, start),
      link: (entry) => this.#launcher.link(entry),
      newController: (taskId) => this.#launcher.newController(taskId),
    })
  }

  /**
   * Rebuilds a registry from records of an earlier process. What was owed or leased is owed again; a task that was running has
   * failed, because its run was lost.
   * @throws InvalidInputError if a record is malformed or two records have the same id
   */
  static restore(
    records: readonly RestorableRecord[],
    options: number | AsyncTaskManagerOptions = {},
  ): AsyncTaskManager {
    const given = typeof options === 'object' ? options : { maxAsyncTasks: options }
    checkOptions(given, managerOptionTypes)
    // Before a store is opened: a manager that throws has none.
    const restored = inheritFromLost(toRestoredRecords(records, (given.clock ?? systemClock).now()))
    const manager = new AsyncTaskManager(given)
    const { registry } = manager
    registry.batch(() => {
      for (const record of restored) registry.send({ type: 'task.restore', record })
    })
    return manager
  }

  // Limit and slots

  /**
   * Changes the limit. Lowering it stops nothing that runs.
   * @throws InvalidSettingError for a value that is not an integer >= -1; the old limit stays
   */
  setMaxAsyncTasks(max: number): void {
    checkMaxAsyncTasks(max, 'maxAsyncTasks')
    this.registry.send({ type: 'limit.set', max })
  }

  /** How many tasks may run at once; -1 for no limit. */
  getMaxAsyncTasks(): number {
    return this.registry.pools.task.max
  }

  /** How many commands may run at once; -1 for no limit. */
  getMaxCommands(): number {
    return this.registry.pools.command.max
  }

  /** Whether there is a free slot now; if not, the reason. */
  canLaunchAsync(): { allowed: boolean; reason?: string } {
    if (this.#disposal !== undefined) return { allowed: false, reason: 'The task manager was disposed' }
    const slots = this.registry.pools.task
    if (slots.hasRoom()) return { allowed: true }
    const isFull = this.#whenFull === 'queue' && !this.canQueue()
    return { allowed: false, reason: limitReason(slots.max, isFull ? slots.queue.size : undefined) }
  }

  /**
   * Reserves a slot for a task that is about to be registered.
   * @param options `ttlMs`: after how many ms the reservation expires (default 5000)
   * @returns the reservation's id, or null when no slot is free
   */
  tryReserveAsyncSlot(options: { ttlMs?: number } = {}): string | null {
    if (this.#disposal !== undefined) return null
    const { ttlMs = DEFAULT_RESERVATION_MS } = parseInput(reserveOptionsSchema(), options, 'options')
    const reservationId = this.#freshId('reservation', (id) => this.registry.pools.task.hasReservation(id))
    const isReserved = this.registry.ask({ type: 'reservation.take', reservationId, ttlMs })
    return isReserved === true && this.registry.pools.task.hasReservation(reservationId) ? reservationId : null
  }

  /** Cancels a reservation. False when there is no such reservation. */
  cancelReservation(reservationId: string): boolean {
    return this.registry.ask({ type: 'reservation.cancel', reservationId }) === true
  }

  // Tasks

  /**
   * Registers a task that the caller runs. Without a reservation it is registered even at the limit. With a store, await `stored()` before you start its
   * work: a task that cannot be stored fails with the code `NOT_STORED`.
   * @throws InvalidInputError, TaskIdInUseError, ReservationError, DisposedError; nothing has changed then
   */
  registerTask(input: RegisterTaskInput, reservationId?: string): RunningTaskInfo {
    const fields = parseInput(registerTaskInputSchema(), input, 'input')
    // The record as registered: running, even if its controller was aborted before.
    return this.registry.batch(() => this.#launcher.register(fields, reservationId))
  }

  /**
   * Registers a task and starts its run through the engine; the end of the run ends the task. With `isForeground` the caller waits
   * for the task in place (as a synchronous call of the task tool does): it takes no slot of `maxAsyncTasks`, but one of `maxForegroundTasks`; a command takes its slot there, too. With `whenFull: 'queue'` a task for
   * which no slot is free waits for one. With `parentId` it belongs to the run of that task, as if its `context.launch` had launched it.
   *
   * With a store the run starts when the launch is stored (`stored`). A launch that cannot be stored fails its task, with the code `NOT_STORED`: it
   * has not run, and its end is not delivered.
   * @param runner runs the task: a function, or a definition that also says what is done when it fails, and what it may use
   * @returns the record of the task, running or queued; its id is made from the subagent's name unless the input has one
   * @throws TaskLimitError at the limit, FamilyError, and what `registerTask` throws
   */
  launch(input: LaunchTaskInput, runner: Runner, reservationId?: string): ActiveTaskInfo {
    const fields = parseInput(launchInputSchema(), input, 'input')
    return this.#launcher.launch(fields, runner, reservationId, parentOf(this.registry, fields))
  }

  /**
   * Resolves when every change made so far is stored; without a store, at once. Await it before you report a launch to someone else.
   * @throws StoreError when the changes cannot be stored now: launches among them have failed, and everything else is written later
   */
  async stored(): Promise<void> {
    await this.registry.persistence?.stored()
  }

  /**
   * Sends an event to runs that wait for it (`context.waitFor`). A task keeps what no run has taken, until it ends: at most 100 events, of 256 KiB.
   * @param event its name, of 1 to 100 characters without #, parentheses, control characters and lone surrogates
   * @param value becomes JSON of at most 256 KiB; undefined becomes null
   * @param target a task that has not ended, or the tasks of an owner that are durable or have had a step
   * @returns the ids of the tasks that have it, when that is stored
   * @throws InvalidInputError; AgentTasksError `EVENTS_FULL`, which names the task; StoreError when it cannot be stored now. Otherwise nothing has changed
   */
  async emit(event: string, value: unknown, target: EventTarget): Promise<readonly string[]> {
    return this.registry.use(steps).emit(event, value, target)
  }

  /** A new task id, `<name>-<random>`, that no retained task has. */
  createTaskId(subagentName: string): string {
    // An id is a name too, and no name is longer than 512 characters.
    return this.#freshId(toOneLine(cutText(subagentName, 256)), (id) => this.registry.history.get(id) !== undefined)
  }

  /** Ends a task with an output. False, with nothing changed, unless this call completed it. */
  completeTask(id: string, output: OutputObject): boolean {
    return this.#end(id, 'completed', () => ({ type: 'task.complete', output: toOutput(output) }))
  }

  /** Ends a task with an error. False, with nothing changed, unless this call failed it. */
  failTask(id: string, error: string): boolean {
    return this.#end(id, 'failed', () => ({ type: 'task.fail', ...failureOf(error) }))
  }

  /**
   * Cancels a task, and what its run has launched: the status first, then the abort of the run, then the event. With a store the abort follows when it
   * was tried to store the cancellation. False when it had ended.
   * @param options the reason, or `reason`: why, in words: `cancelReason` of the record and the message of the abort's reason. Of more than 1000 characters the
   * rest is cut.
   * @throws InvalidInputError for a reason that is no text; nothing has changed then
   */
  cancelTask(id: string, options: CancelOptions | string = {}): boolean {
    const { reason } = parseInput(cancelOptionsSchema(), toCancelOptions(options), 'options')
    const entry = this.registry.history.get(id)
    return entry !== undefined && this.registry.cancel(entry, toCancelReason(reason))
  }

  /**
   * Moves a task from the foreground to the background: it takes a slot, as a task that was launched there. A call of a tool that waits for it
   * returns, and its result is then owed. A caller that launched it with `isForeground` and waits for it itself goes on waiting.
   * @returns whether it was moved; if not, the reason: it is unknown, has ended, or is in the background
   * @throws TaskLimitError when no slot is free; nothing has changed then
   */
  detachTask(id: string): DetachResult {
    return detachTask(this.registry, id)
  }

  /**
   * Cancels every task that has not ended, or every one of an owner with what these have launched, as `cancelTask` does.
   * @returns the ids of the tasks that this call cancelled
   * @throws InvalidInputError; nothing has changed then
   */
  cancelAll(options: CancelOptions & { readonly owner?: string } = {}): string[] {
    const { owner, reason: given } = parseInput(cancelAllOptionsSchema(), options, 'options')
    const reason = toCancelReason(given)
    return this.registry.batch(() =>
      this.registry.cancelAll(this.#cancellable(owner), reason).map(({ record }) => record.id),
    )
  }

  /**
   * A frozen snapshot of a retained task; undefined for an unknown id. Its `abortController`, if the task has one, is not a copy: aborting it cancels
   * the task.
   */
  getTask(id: string): AsyncTaskInfo | undefined {
    return this.registry.history.get(id)?.record
  }

  /**
   * Finds the task whose id is or starts with `prefix`. An exact id takes precedence over longer ones; an empty prefix matches nothing.
   * @returns the task, or the candidates when there are several, or neither
   */
  getTaskByPrefix(prefix: string): { task?: AsyncTaskInfo; candidates?: AsyncTaskInfo[] } {
    const found = lookUpTask(this, prefix)
    if (found.type === 'found') return { task: found.task }
    return found.type === 'ambiguous' ? { candidates: [...found.candidates] } : {}
  }

  /** Every retained task, in the order of registration. */
  getAllTasks(): AsyncTaskInfo[] {
    return Array.from(this.registry.history.entries(), (entry) => entry.record)
  }

  /**
   * Reads the tasks that have ended, the latest first: also those that this manager does not keep any longer, if its store has a history.
   * @returns a page, and the cursor of the next one
   * @throws InvalidInputError for an invalid query; StoreError when the history cannot be read
   */
  history(query: TaskHistoryQuery = {}): Promise<HistoryPage<SettledTaskInfo>> {
    return this.registry.use(taskHistory).page(query)
  }

  /** @internal The runner of a subagent, as `findRunner` has it. */
  findRunner(subagentName: string): Runner | undefined {
    return this.#launcher.findRunner(subagentName)
  }

  /** The tasks that run, in the order of registration. */
  getRunningTasks(owner?: string): RunningTaskInfo[] {
    return this.registry.ledger
      .running(owner)
      .map(({ record }) => record)
      .filter(isRunning)
  }

  /** The tasks that have not ended, queued and running, in the order of registration. */
  getActiveTasks(owner?: string): ActiveTaskInfo[] {
    return this.registry.ledger.active(owner).map((entry) => entry.record as ActiveTaskInfo)
  }

  /** The tasks that wait for a slot, in the order of registration. */
  getQueuedTasks(owner?: string): QueuedTaskInfo[] {
    return this.registry.ledger.queued(owner).map((entry) => entry.record as QueuedTaskInfo)
  }

  /** Whether a launch for which no slot is free may wait for one. */
  canQueue(): boolean {
    const { queue } = this.registry.pools.task
    return this.#disposal === undefined && this.#whenFull === 'queue' && queue.size < queue.limits.max
  }

  /** The place of a task among those that wait for a slot, from 1; undefined for one that does not wait. */
  queuePosition(id: string): number | undefined {
    return this.getTask(id)?.status === 'queued' ? queuePlaces(this.registry).get(id) : undefined
  }

  /** What the tasks of an owner, or of all, have used since this manager was created, and those that it restored. */
  spent(owner?: string): SpentTotals {
    return this.registry.use(spentByOwner).of(owner)
  }

  /** The ended tasks that are owed and that no lease holds, in the order in which they ended. */
  getPendingNotifications(owner?: string): SettledTaskInfo[] {
    return this.registry.ledger.owed(owner).map((entry) => entry.record as SettledTaskInfo)
  }

  // Delivery

  /** Marks the end of a task as delivered. Does nothing for a task that runs, is unknown, or is delivered. */
  markNotified(id: string): void {
    this.registry.send({ type: 'task.delivered', taskIds: [id] })
  }

  /**
   * Leases what is owed: until the lease ends, no other message carries it.
   * @param request `owner`: whose (default: every owner's); `exclusive`: refuse while another exclusive lease of the owner is open;
   * `taskIds`: of what is owed, these tasks alone; `questions`: these open questions too, if they are owed
   * @returns undefined when nothing is owed, or an exclusive lease of the owner is open
   * @throws InvalidInputError
   */
  lease(
    request: {
      readonly owner?: string
      readonly exclusive?: boolean
      readonly taskIds?: readonly string[]
      readonly questions?: readonly QuestionRef[]
    } = {},
  ): TaskLease | undefined {
    const { owner, exclusive = false, taskIds, questions } = parseInput(leaseRequestSchema(), request, 'request')
    const deliveryId = this.#freshId('delivery', (id) => this.registry.ledger.lease(id) !== undefined)
    return takeLease(this.registry, {
      deliveryId,
      isExclusive: exclusive,
      ...defined({ owner }),
      ...(taskIds !== undefined && { taskIds: [...new Set(taskIds)] }),
      ...defined({ questions }),
    })
  }

  /**
   * Says that the message with this id is in the host's transcript: its results will not be delivered again after a crash. The next message that
   * the owner accepts says so too.
   * @returns false when no accepted message with this id waits for it, as always without a store
   */
  confirm(deliveryId: string): boolean {
    return this.registry.batch(() => this.registry.persistence?.confirmDelivery(deliveryId) === true)
  }

  /**
   * Owes once more what a message has delivered, such as one that was removed from the agent's context: its results, as far as their records are
   * retained, and its questions, as far as they are open. The next message says that they are repeats.
   * @returns false, with nothing changed, when there is nothing of it left, or it was not accepted
   */
  redeliver(deliveryId: string): boolean {
    return this.registry.batch(() => {
      const isRepeated = this.registry.ask({ type: 'delivery.repeat', deliveryId }) === true
      // Whoever asks for it has had it: after a crash it is owed all the same.
      if (isRepeated) this.registry.persistence?.confirmDelivery(deliveryId)
      return isRepeated
    })
  }

  /**
   * Pauses the tasks of an owner, or of all: until `resume`, none of them starts. What runs goes on, with the tasks that it launches. A launch is queued, within
   * `queue.max`; one in the foreground is refused. A pause again with other options changes them. With a store a pause outlives the process.
   * @param owner whose tasks, not those of a run. Default: those of every owner
   * @returns the pause
   * @throws InvalidInputError; DisposedError. Nothing has changed then
   */
  pause(owner?: string, options: PauseOptions = {}): TaskPause {
    return this.registry.use(pausing).pause(owner, options)
  }

  /**
   * Ends the pause of an owner, or that of all, which leaves the pauses of owners: what waits starts as far as there are slots, and results that were held are delivered.
   * @returns false when there is no such pause
   * @throws InvalidInputError
   */
  resume(owner?: string): boolean {
    return this.registry.use(pausing).resume(owner)
  }

  /** What is paused, in the order in which the pauses began. */
  pauses(): readonly TaskPause[] {
    return this.registry.pauses.list()
  }

  /**
   * Hands the queued, running, owed and leased tasks of an owner to the owner `to`; without one they are no longer owed. `to` may be the run of a
   * task (`ownerOfRun`) that has not ended and does not belong to `owner` itself.
   * @returns the number of those tasks
   * @throws InvalidInputError; nothing has changed then
   */
  releaseOwner(owner: string, options: { readonly to?: string } = {}): number {
    const { to: heir } = parseInput(ownerReleaseSchema(), { ...options, owner }, 'input')
    if (heir !== undefined) checkHeir(this.registry, heir, owner)
    const count = this.registry.ledger.outstanding(owner)
    this.registry.send({ type: 'owner.release', owner, heir })
    return count
  }

  /**
   * Waits for tasks to end. The tasks it returns are delivered; an aborted wait leaves them owed.
   * @throws the signal's reason when aborted, InvalidInputError
   */
  async waitFor(ids: readonly string[], options: WaitOptions = {}): Promise<WaitResult> {
    const deliveryId = this.#freshId('wait', (id) => this.registry.ledger.lease(id) !== undefined)
    return waitForTasks(this.registry, ids, options, deliveryId)
  }

  /**
   * Resolves when no task of the owner (of any owner) is queued, runs, is owed or is leased. When that may never be, because a result is owed to an
   * owner to whom nothing delivers it, `onError` is called, once.
   */
  onIdle(owner?: string): Promise<void> {
    return waitUntilIdle(this.registry, owner)
  }

  /**
   * Answers a question that a task's run has asked (`questions` of its record).
   * @param answer `{ action, content? }`, or what a model may answer: a text, a number or a boolean for a question with one field, or an object with
   *   its fields (without a field `action`)
   * @returns false, with nothing changed, when that question is not open. The answer to a durable task is stored when `stored` resolves, and its run goes on then
   * @throws InvalidInputError for an answer that does not match the schema of its question, which stays open, or that is too large for a step
   */
  answerTask(id: string, questionId: string, answer: TaskAnswer | AnswerValue): boolean {
    const entry = this.registry.history.get(id)
    return entry !== undefined && answerQuestion(this.registry, entry, questionId, answer)
  }

  /**
   * Sends a message to the run of a task, which takes it at most once, after those that were accepted before (`context.messages`).
   * @returns whether it was accepted; if not, the reason. What the run has not taken when the task ends, or the process dies, is dropped
   * @throws InvalidInputError for a message that is not a text, or is empty
   */
  sendToTask(id: string, message: string): SendResult {
    return sendMessage(this.registry, id, message)
  }

  /**
   * Continues a task that has ended: launches one of its subagent for its owner, with its `timeoutMs`, `budget` and `concurrencyKey`. The goal is the message; the
   * run gets how the other one ended (`context.previous`).
   * @param task the id of a task that is kept, or a record of `history`
   * @throws InvalidInputError; AgentTasksError `NOT_CONTINUED` with the reason; and what `launch` throws. Nothing has changed then
   */
  continueTask(task: string | SettledTaskInfo, message: string): ActiveTaskInfo {
    return continueTask(this.#launcher, task, message)
  }

  // Schedules

  /**
   * Wakes an owner with a message, or launches a task for it, after a time (`in`), at a time (`at`), again and again (`every`), or as a cron expression says (`cron`). The message is
   * owed as a result is. A task that cannot be launched when its time comes is reported to the owner in such a message. With a store, schedules survive the process.
   * `onIdle` does not wait for schedules, and they run no task while this process does not.
   * @param input one of `in` and `every` (in ms), `at` and `cron`, and one of `message` and `launch`
   * @throws InvalidInputError; AgentTasksError `SCHEDULE_LIMIT` when the owner has as many as it may, `PACKAGES_MISSING` when `cron` or a local time needs the package
   *   `croner`; DisposedError. Nothing has changed then
   */
  schedule(input: ScheduleInput): Schedule {
    return this.registry.use(schedules).add(input)
  }

  /** The schedules of an owner, or of all, those first that fire first. */
  schedules(owner?: string): ScheduleInfo[] {
    return this.registry.use(schedules).list(owner)
  }

  /** Ends a schedule; a task that it has launched goes on. False when it has ended before, or is unknown. */
  cancelSchedule(id: string): boolean {
    return this.registry.use(schedules).cancel(id)
  }

  // Output and progress

  /** Reports the progress of a registered task. False when the task does not run, or the progress is malformed. */
  reportProgress(id: string, progress: number | TaskProgress): boolean {
    const entry = this.registry.history.get(id)
    return entry !== undefined && reportProgress(this.registry, entry, progress)
  }

  /** Appends to the output of a registered task. False when the task does not run. */
  appendOutput(id: string, text: string): boolean {
    const entry = this.registry.history.get(id)
    return entry !== undefined && appendOutput(entry, text, this.#launcher.outputBytes)
  }

  /**
   * Reads the output that a task has appended, from a byte cursor on. Undefined for an unknown task.
   * @throws InvalidInputError for a cursor or a size that is not an integer >= 0
   */
  readOutput(id: string, options: ReadOutputOptions = {}): OutputChunk | undefined {
    const { cursor, maxBytes = 16_384 } = parseInput(readOutputOptionsSchema(), options, 'options')
    const entry = this.registry.history.get(id)
    if (entry === undefined) return undefined
    const log = outputLogs.get(entry) ?? new OutputLog(0)
    return log.read(cursor, maxBytes)
  }

  /**
   * The output of a task as it comes: what is kept from a byte cursor on, and then what the task appends. Completes when the task has ended, and at
   * once, without a value and without an error, for an unknown task: `getTask` tells the two apart. A subscriber that is slow loses what is no longer kept.
   * @param options `cursor`: the byte to start at. Default: the first byte that is kept
   * @throws InvalidInputError for a cursor that is not an integer >= 0
   */
  output$(id: string, options: Pick<ReadOutputOptions, 'cursor'> = {}): Observable<TaskOutputEvent> {
    const { cursor } = parseInput(readOutputOptionsSchema(), options, 'options')
    return outputOf(this.registry, this.registry.history.get(id), cursor)
  }

  /**
   * Wakes an owner when lines match in what a task writes, beginning with what is kept of it, or in a file, beginning with its last 64 KiB. Matching
   * lines of 200 ms are one event, and the end of the monitor is one. An event is owed as a result is, in the words of a note.
   * @throws InvalidInputError, DisposedError, AgentTasksError `MONITOR_LIMIT`; nothing has changed then
   */
  monitor(source: MonitorSource, options: MonitorOptions): TaskMonitor {
    return this.registry.use(monitors).plan(source, options)()
  }

  /** The monitors of an owner, or of all, in the order in which they were started. */
  monitors(owner?: string): TaskMonitor[] {
    return this.registry.use(monitors).list(owner)
  }

  // Events

  /** Calls `handler` once for each task that completes, after the change. Returns an unsubscribe function. */
  onTaskCompleted(handler: (task: CompletedTaskInfo) => void): () => void {
    return this.#events.on('completed', handler)
  }

  /** Calls `handler` once for each task that fails, after the change. Returns an unsubscribe function. */
  onTaskFailed(handler: (task: FailedTaskInfo) => void): () => void {
    return this.#events.on('failed', handler)
  }

  /** Calls `handler` once for each task that is cancelled, after the change. Returns an unsubscribe function. */
  onTaskCancelled(handler: (task: CancelledTaskInfo) => void): () => void {
    return this.#events.on('cancelled', handler)
  }

  /**
   * Cancels what runs, completes the streams and stops every actor. No callback runs after this call. Messages that were accepted are confirmed.
   * @returns resolves when every run has ended or its grace has passed
   */
  dispose(): Promise<void> {
    if (this.#disposal !== undefined) return this.#disposal
    const { registry } = this
    const { persistence } = registry
    const { unsettled } = registry.use(runs)
    this.#launcher.close()
    this.#disposal = Promise.all(Array.from(unsettled, (run) => run.settled)).then(() => persistence?.close())
    registry.batch(() => {
      // What waits for others is cancelled with them: it does not fail because of them.
      registry.cancelAll(registry.ledger.queued().filter(({ record }) => record.waitsFor !== undefined))
      for (const entry of this.#cancellable()) registry.cancel(entry)
    })
    registry.dispose()
    // The host ends in good order: it has what it has accepted (K5).
    persistence?.confirmOwner()
    persistence?.flush()
    return this.#disposal
  }

  /** `dispose`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  /** What has not ended. What waits comes first, so that it does not start when the rest is cancelled. */
  #cancellable(owner?: string): TaskEntry[] {
    const { ledger } = this.registry
    return [...ledger.queued(owner), ...ledger.running(owner)]
  }

  #end(id: string, status: TerminalStatus, toEvent: () => AsyncTaskEvent): boolean {
    const entry = this.registry.history.get(id)
    if (entry?.ref === undefined) return false
    // Reading the arguments may call code of the host, which may end the task.
    const event = toEvent()
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- it may have ended meanwhile
    if (entry.ref === undefined) return false
    this.registry.batch(() => entry.ref?.send(event))
    reportMisnamedFields(this.registry, entry)
    return entry.record.status === status
  }

  #freshId(prefix: string, isTaken: (id: string) => boolean): string {
    return freshId(this.#createId, prefix, isTaken)
  }
}

/** The registry of a manager. @throws InvalidInputError for anything else */
export function registryOf(manager: AsyncTaskManager): TaskRegistry {
  if (!(manager instanceof AsyncTaskManager)) throw new InvalidInputError('manager', manager, 'an AsyncTaskManager')
  return manager.registry
}
