/**
 * The manager of background tasks. It validates arguments and turns method calls into events of the registry, which keeps the invariants
 * (`registry.ts`, `machines/registry.ts`).
 *
 * The file is long because the class has many methods.
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
} from '../../machines/records.js'
import type { TaskTransition } from '../../machines/transitions.js'
import type { TaskPause } from '../../machines/registry-events.js'
import type { TerminalStatus } from '../../machines/task-status.js'
import type { QuestionRef } from '../../machines/owed-questions.js'
import { isRunning, type TaskEntry } from '../../machines/task-entry.js'
import { systemClock } from '../system/clock.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { InvalidInputError, limitReason, ownerLimitReason } from '../errors.js'
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
  type WhenFull,
} from '../protocol/async-tasks.js'
import type { MonitorOptions } from '../protocol/monitors.js'
import { aBoolean, checkOption, checkOptions, withDefaults } from '../protocol/option-checks.js'
import type { ScheduleInfo, ScheduleInput } from '../protocol/schedules.js'
import { parseInput } from '../protocol/parse.js'
import type { RestorableRecord } from '../protocol/record-fields.js'
import { toCancelOptions, toCancelReason } from './cancel-reason.js'
import { continueTask } from '../features/continuing/continuing.js'
import { createRegistryActor, type RegistryActor } from './registry-actor.js'
import { TaskRegistry } from './registry.js'
import type { RegistryReads } from './registry-reads.js'
import { checkHeir, inheritFromLost, parentOf } from '../features/families/families.js'
import { waitUntilIdle } from '../features/delivery/idle-wait.js'
import { queuePlaces } from '../features/limits/queue-places.js'
import { takeLease, type TaskLease } from '../features/delivery/leases.js'
import { detachTask, type DetachResult } from '../features/foreground/detaching.js'
import { changeDeadline, conclude, type ChangeResult } from '../features/changed-limits/changed-limits.js'
import { sendMessage, type SendResult } from '../features/questions/messages.js'
import { OutputLog, outputLogs, type OutputChunk } from '../features/output/output-log.js'
import { appendOutput, outputOf, type TaskOutputEvent } from '../features/output/output-stream.js'
import { pausing } from '../features/pausing/pausing.js'
import { reportField } from '../features/output/reports.js'
import { answerQuestion, type AnswerValue } from '../features/questions/questions.js'
import { monitors, type MonitorSource, type TaskMonitor } from '../features/monitors/monitors.js'
import { runs } from './run-plan.js'
import { freshId, randomId } from '../data/ids.js'
import { reporterOf } from '../isolation/manager-outbox.js'
import { recover, type Recovery } from './recovery/recovery.js'
import { managerOptionTypes, registryLimits, type AsyncTaskManagerOptions } from './manager-options.js'
import { toRestoredRecords } from './recovery/restoring.js'
import type { WaitOptions, WaitResult } from '../engine/children.js'
import type { Runner } from '../engine/runner.js'
import type { OnError } from '../isolation/error-report.js'
import { failureOf, toOutput } from '../protocol/outcomes.js'
import { STORE_LOST_REASON } from '../store/lost-store.js'
import { features, setFeatureOptions } from '../features/features.js'
import { addresseeOf } from '../features/questions/question-addressee.js'
import { taskHistory } from '../features/history/past-tasks.js'
import type { HistoryPage, TaskHistoryQuery } from '../store/history/past-tasks.js'
import { keptTail } from '../features/output/output-tail.js'
import { spentByOwner } from '../features/limits/spent-by-owner.js'
import { lookUpTask } from '../features/task-ids/task-lookup.js'
import { toOneLine } from '../data/control-characters.js'
import { cutText } from '../data/cut-text.js'
import { scheduleOptionTypes } from '../protocol/schedules.js'
import { taskLimit } from './settings.js'
import {
  taskEvents,
  type TaskEvents,
  type OwnerCounts,
  type TaskProgressEvent,
  type TaskQuestionsEvent,
} from './task-events.js'
import { suspendTasks } from './suspending.js'
import { steps, type EventTarget } from '../features/steps/steps.js'
import { schedules, type Schedule } from '../features/schedules/schedules.js'
import { taskWatchers } from './task-watchers.js'
import { waitForTasks } from './waiting.js'
import { Launcher } from './launching.js'
import { isWaiting } from '../../machines/task-status.js'

/** How long a reservation holds its slot, in ms. */
const DEFAULT_RESERVATION_MS = 5000

/** The part of a task's output to read. */
export interface ReadOutputOptions {
  /** The first byte to read. Default: the first byte that is kept. */
  readonly cursor?: number
  /** The maximum to return, in bytes. Default 16384. */
  readonly maxBytes?: number
}

/** Tracks background tasks from registration to the delivery of their results. */
export class AsyncTaskManager {
  /** Emits every change of every task in order, with the record after the change. Completes on `dispose`. */
  readonly transitions$: Observable<TaskTransition>
  /** Emits each task once, when it has ended. Notes, such as the messages of schedules, are no tasks. */
  readonly settled$: Observable<SettledTaskInfo>
  /** Emits the number of results owed to each owner that no message carries yet. Emits the current counts first. */
  readonly owed$: Observable<OwnerCounts>
  /** The number of running tasks of each owner. Emits the current counts first. */
  readonly running$: Observable<OwnerCounts>
  /** The progress reports of runs. */
  readonly progress$: Observable<TaskProgressEvent>
  /** Emits the open questions of a task after each change. */
  readonly questions$: Observable<TaskQuestionsEvent>
  /**
   * The registry as an actor with snapshots. Observers are notified after a transition, never inside one, so they may call any method of the manager.
   */
  readonly actor: RegistryActor
  /** @internal For the classes of this folder. */
  readonly registry: TaskRegistry
  /** @internal For the package's own tools, commands and hosts. */
  readonly reads: RegistryReads
  /** Resolves when the contents of the store are restored. Results from the store are delivered only after that. Without a store it resolves at once. */
  readonly recovered: Promise<Recovery>
  readonly #events: TaskEvents
  readonly #createId: (prefix: string) => string
  readonly #launcher: Launcher
  readonly #whenFull: WhenFull
  #disposal: Promise<void> | undefined

  /**
   * @param maxAsyncTasks how many tasks may run at once (-1: no limit), or options
   * @throws INVALID_SETTING for a number out of range
   * @throws INVALID_INPUT for an unknown option, or one of the wrong type
   * @throws STORE_IN_USE if another process uses the store
   * @throws StoreError if the store cannot be opened
   */
  constructor(maxAsyncTasks: number | AsyncTaskManagerOptions = {}) {
    const given = typeof maxAsyncTasks === 'object' ? maxAsyncTasks : { maxAsyncTasks }
    checkOptions(given, managerOptionTypes)
    const options = withDefaults(given, managerOptionTypes)
    const clock = options.clock ?? systemClock
    const report = reporterOf(options.onError, clock)
    this.#createId = options.createId ?? randomId
    this.#whenFull = options.whenFull
    this.registry = new TaskRegistry({
      ...registryLimits(options),
      notifyCancelled: options.notifyCancelled,
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
    this.#launcher = new Launcher(this.registry, options, this)
    this.registry.use(schedules).connect({
      options: withDefaults(options.schedules, scheduleOptionTypes),
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
        waiting: () =>
          this.registry.ledger.queued().flatMap(({ record }) => {
            const { own, ofOwner } = this.registry.waitReasons(record)
            return (ofOwner ?? own)?.kind ?? []
          }),
        totals: () => this.registry.totals,
        transitions$: this.transitions$,
      })
      this.registry.use(() => omitUndefined({ closing: stopWatching }))
      setFeatureOptions(this.registry, options)
      this.recovered = this.#recover(options)
      this.#cancelWhenLost(report)
    } catch (error) {
      this.registry.dispose()
      this.registry.persistence?.abandon()
      throw error
    }
  }

  /**
   * Cancels all tasks when the store is lost, for example to another process. Their results cannot be stored, so they are not delivered: waits reject,
   * and streams complete.
   */
  #cancelWhenLost(report: OnError): void {
    const { persistence } = this.registry
    if (persistence === undefined) return
    const cancel = (reason: unknown): void => {
      report(reason, { source: 'store' })
      this.cancelAll({ reason: STORE_LOST_REASON })
      this.registry.use(taskWatchers).close()
    }
    this.registry.use(() => ({ closing: persistence.onLost(cancel) }))
  }

  #recover({ wasDelivered, findRunner }: AsyncTaskManagerOptions): Promise<Recovery> {
    const { persistence } = this.registry
    if (persistence === undefined) {
      return Promise.resolve({ adopted: [], queued: [], retried: [], interrupted: [], uncertain: [] })
    }
    return recover(this.registry, persistence, {
      wasDelivered,
      findRunner,
      resumeRun: (entry, start) => this.#launcher.resumeRun(entry, start),
      link: (entry) => this.#launcher.link(entry),
      newController: (taskId) => this.#launcher.newController(taskId),
    })
  }

  /**
   * Creates a manager with records from an earlier process. Results that were owed or leased are owed again. Tasks that were running have failed,
   * because their runs ended with that process.
   * @throws INVALID_INPUT if a record is malformed, or if two records have the same id
   */
  static restore(
    records: readonly RestorableRecord[],
    options: number | AsyncTaskManagerOptions = {},
  ): AsyncTaskManager {
    const given = typeof options === 'object' ? options : { maxAsyncTasks: options }
    checkOptions(given, managerOptionTypes)
    // Validates the records before a store is opened, so that an exception leaves no store open.
    const restored = inheritFromLost(toRestoredRecords(records, (given.clock ?? systemClock).now()))
    const manager = new AsyncTaskManager(given)
    const { registry } = manager
    registry.batch(() => {
      for (const record of restored) registry.send({ type: 'task.restore', record })
    })
    return manager
  }

  /**
   * Changes the limit. A lower limit does not stop running tasks.
   * @throws INVALID_SETTING for a value that is not an integer >= -1; the old limit stays in force then
   */
  setMaxAsyncTasks(max: number): void {
    checkOption(max, taskLimit, ['options', 'maxAsyncTasks'])
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

  /**
   * Returns whether a slot is free, and the reason if none is.
   * @param owner also considers the limits of this owner (`ownerLimits`)
   */
  canLaunchAsync(owner?: string): { allowed: boolean; reason?: string } {
    if (this.#disposal !== undefined) return { allowed: false, reason: 'The task manager was disposed' }
    const slots = this.registry.pools.task
    if (owner === undefined ? slots.hasRoom() : slots.hasRoomFor(owner)) return { allowed: true }
    if (owner !== undefined && slots.hasRoom()) {
      return { allowed: false, reason: ownerLimitReason({ owner, running: slots.heldBy(owner) }, slots.maxOfOwner) }
    }
    const isFull = this.#whenFull === 'queue' && !this.canQueue()
    return { allowed: false, reason: limitReason(slots.max, isFull ? slots.queue.size : undefined) }
  }

  /**
   * Reserves a slot for a task that will be registered.
   * @param options `ttlMs`: the time after which the reservation expires, in ms (default 5000); `owner`: the owner of that task. Without it, the
   * reservation does not count for `ownerLimits`
   * @returns the id of the reservation, or null if no slot is free
   */
  tryReserveAsyncSlot(options: { ttlMs?: number; owner?: string } = {}): string | null {
    if (this.#disposal !== undefined) return null
    const { ttlMs = DEFAULT_RESERVATION_MS, owner } = parseInput(reserveOptionsSchema(), options, 'options')
    const reservationId = this.#freshId('reservation', (id) => this.registry.pools.task.hasReservation(id))
    const isReserved = this.registry.ask({ type: 'reservation.take', reservationId, ttlMs, owner })
    return isReserved === true && this.registry.pools.task.hasReservation(reservationId) ? reservationId : null
  }

  /** Cancels a reservation. Returns false if it does not exist. */
  cancelReservation(reservationId: string): boolean {
    return this.registry.ask({ type: 'reservation.cancel', reservationId }) === true
  }

  /**
   * Registers a task that the caller runs itself. Without a reservation it is registered even if no slot is free. With a store, await `stored()`
   * before you start the work. A task that cannot be stored fails with `NOT_STORED`, unless it has ended before. If this method throws, no task was registered.
   * @throws INVALID_INPUT for an invalid field
   * @throws TASK_ID_IN_USE if a task has the same id
   * @throws RESERVATION_UNKNOWN if the reservation is unknown or has expired
   * @throws DISPOSED after `dispose`
   */
  registerTask(input: RegisterTaskInput, reservationId?: string): RunningTaskInfo {
    const fields = parseInput(registerTaskInputSchema(), input, 'input')
    // The returned record has the status `running`, even if an aborted controller has cancelled the task already.
    return this.registry.batch(() => this.#launcher.register(fields, reservationId))
  }

  /**
   * Registers a task and starts its run. The task ends when the run ends.
   *
   * With `isForeground` the caller waits for the task, as in a synchronous call of the task tool. It takes a slot of `maxForegroundTasks` rather than
   * `maxAsyncTasks`; a command takes its usual slot. With `whenFull: 'queue'` the task waits if no slot is free. With `parentId` it belongs to the
   * run of that task, as if launched with `context.launch`.
   *
   * With a store the run starts when the launch is stored (`stored`). If the launch cannot be stored, the task fails with `NOT_STORED` without having
   * run, and the owner receives no message about it. If this method throws, no task was launched.
   *
   * In a turn of a conversation that was lost and is taken again (`keepTurns`), a launch of the same work returns the record of the task that the lost
   * turn has launched. It may have ended.
   * @param runner runs the task: a function, or a definition that also has retries and limits
   * @returns the record of the task, which is running or queued. Without an `id` in the input, the id is made from the subagent's name
   * @throws TASK_LIMIT if no slot is free, or the queue is full
   * @throws AgentTasksError if the run named by `parentId` may not launch the task
   * @throws INVALID_INPUT, TASK_ID_IN_USE, RESERVATION_UNKNOWN, DISPOSED, as `registerTask` does
   */
  launch(input: LaunchTaskInput, runner: Runner, reservationId?: string): ActiveTaskInfo {
    const fields = parseInput(launchInputSchema(), input, 'input')
    return this.#launcher.launch(fields, runner, reservationId, parentOf(this.registry, fields))
  }

  /**
   * Resolves when all changes so far are stored; without a store, at once. Await it before you report a launch to others.
   * @throws StoreError if the changes cannot be stored now. Launches among them have failed, except
   * those whose tasks had ended before. The other changes, and these ends, are written later
   */
  async stored(): Promise<void> {
    await this.registry.persistence?.stored()
  }

  /**
   * Sends an event to runs that wait for it (`context.waitFor`). If no run waits for it, its task keeps the event until a run takes it or the task
   * ends: at most 100 events and 256 KiB. If this method throws anything but StoreError, the event was not sent.
   * @param event its name: 1 to 100 characters, without #, parentheses, control characters and lone surrogates
   * @param value becomes JSON of at most 256 KiB; undefined becomes null
   * @param target an active task, or the active tasks of an owner that are durable or have had a step
   * @returns the ids of the tasks that received the event, once it is stored
   * @throws INVALID_INPUT for an invalid name, value or target
   * @throws AgentTasksError `EVENTS_FULL` if a task keeps too many events; the message names the task
   * @throws StoreError if the event cannot be stored now
   */
  async emit(event: string, value: unknown, target: EventTarget): Promise<readonly string[]> {
    return this.registry.use(steps).emit(event, value, target)
  }

  /** Returns a new task id, `<name>-<random>`, that no kept task has. */
  createTaskId(subagentName: string): string {
    // An id may have at most 512 characters, as a name may. So only 256 of the name go into the id.
    return this.#freshId(toOneLine(cutText(subagentName, 256)), (id) => this.registry.history.get(id) !== undefined)
  }

  /** Completes a task with an output. Returns false if the task is unknown or has already ended. */
  completeTask(id: string, output: OutputObject): boolean {
    return this.#end(id, 'completed', () => ({ type: 'task.complete', output: toOutput(output) }))
  }

  /** Fails a task with an error. Returns false if the task is unknown or has already ended. */
  failTask(id: string, error: string): boolean {
    return this.#end(id, 'failed', () => ({ type: 'task.fail', ...failureOf(error) }))
  }

  /**
   * Cancels a task and the tasks that its run has launched. The status changes first, then the run is aborted, then the event is emitted. With a
   * store, the run is aborted only after the attempt to store the cancellation. Returns false if the task has ended.
   * @param options the reason in words, or an object with `reason`. It becomes `cancelReason` of the record and the message of the abort reason,
   *   shortened to 1000 characters
   * @throws INVALID_INPUT for a reason that is not text; the task was not cancelled then
   */
  cancelTask(id: string, options: CancelOptions | string = {}): boolean {
    const { reason } = parseInput(cancelOptionsSchema(), toCancelOptions(options), 'options')
    const entry = this.registry.history.get(id)
    return entry !== undefined && this.registry.cancel(entry, toCancelReason(reason))
  }

  /**
   * Moves a task from the foreground to the background. The task takes a slot like a task launched in the background. A tool call that waits for it
   * returns at once, and the result is delivered later. But a caller that has used `launch` with `isForeground` continues to wait.
   * @returns whether the task was moved. If not, the reason: it is unknown, has ended, or already runs in the background
   * @throws TASK_LIMIT if no slot is free; the task stays in the foreground then
   */
  detachTask(id: string): DetachResult {
    return detachTask(this.registry, id)
  }

  /**
   * Cancels all active tasks, or those of an owner. Like `cancelTask`, it also cancels the tasks that they have launched.
   * @returns the ids of the tasks that this call cancelled
   * @throws INVALID_INPUT for an invalid option; no task was cancelled then
   */
  cancelAll(options: CancelOptions & { readonly owner?: string } = {}): string[] {
    const { owner, reason: given } = parseInput(cancelAllOptionsSchema(), options, 'options')
    const reason = toCancelReason(given)
    return this.registry.batch(() =>
      this.registry.cancelAll(this.#cancellable(owner), reason).map(({ record }) => record.id),
    )
  }

  /**
   * Returns a frozen snapshot of a kept task; undefined for an unknown id. Its `abortController`, if any, is not a copy: if you abort it, the task is
   * cancelled.
   */
  getTask(id: string): AsyncTaskInfo | undefined {
    return this.registry.history.get(id)?.record
  }

  /**
   * Finds the task whose id equals or starts with `prefix`. An exact id takes precedence. An empty prefix matches nothing.
   * @returns the task, or the candidates if several tasks match, or an empty object
   */
  getTaskByPrefix(prefix: string): { task?: AsyncTaskInfo; candidates?: AsyncTaskInfo[] } {
    const found = lookUpTask(this, prefix)
    if (found.type === 'found') return { task: found.task }
    return found.type === 'ambiguous' ? { candidates: [...found.candidates] } : {}
  }

  /** Returns all kept tasks, in the order of registration. */
  getAllTasks(): AsyncTaskInfo[] {
    return Array.from(this.registry.history.entries(), (entry) => entry.record)
  }

  /**
   * Returns ended tasks, newest first. Includes tasks that this manager no longer keeps, if its store has a history.
   * @returns one page of tasks, and the cursor of the next page
   * @throws INVALID_INPUT for an invalid query
   * @throws StoreError if the history cannot be read
   */
  history(query: TaskHistoryQuery = {}): Promise<HistoryPage<SettledTaskInfo>> {
    return this.registry.use(taskHistory).page(query)
  }

  /** @internal Returns the runner that the option `findRunner` finds for a subagent. */
  findRunner(subagentName: string): Runner | undefined {
    return this.#launcher.findRunner(subagentName)
  }

  /** Returns the running tasks, in the order of registration. */
  getRunningTasks(owner?: string): RunningTaskInfo[] {
    return this.registry.ledger
      .running(owner)
      .map(({ record }) => record)
      .filter(isRunning)
  }

  /** Returns the queued and running tasks, in the order of registration. */
  getActiveTasks(owner?: string): ActiveTaskInfo[] {
    return this.registry.ledger.active(owner).map((entry) => entry.record as ActiveTaskInfo)
  }

  /** Returns the tasks that wait for a slot, in the order of registration. */
  getQueuedTasks(owner?: string): QueuedTaskInfo[] {
    return this.registry.ledger.queued(owner).map((entry) => entry.record as QueuedTaskInfo)
  }

  /** Whether a launch waits if no slot is free. */
  canQueue(): boolean {
    const { queue } = this.registry.pools.task
    return this.#disposal === undefined && this.#whenFull === 'queue' && queue.size < queue.limits.max
  }

  /** Returns the position of a task in the queue for slots, from 1; undefined if the task does not wait. */
  queuePosition(id: string): number | undefined {
    const task = this.getTask(id)
    return task !== undefined && isWaiting(task.status) ? queuePlaces(this.registry).get(id) : undefined
  }

  /**
   * Returns the usage of the tasks of an owner, including those that its runs have launched, or of all tasks. With a store, it includes the usage in
   * earlier processes. Beyond 100,000 owners, the one that has used nothing for the longest time counts only in that of all tasks.
   */
  spent(owner?: string): SpentTotals {
    return this.registry.use(spentByOwner).of(owner)
  }

  /** Returns the ended tasks whose results are owed and in no message yet, in the order in which they ended. */
  getPendingNotifications(owner?: string): SettledTaskInfo[] {
    return this.registry.ledger.owed(owner).map((entry) => entry.record as SettledTaskInfo)
  }

  /** Marks the result of a task as delivered. Has no effect on a task that is active, unknown or already delivered. */
  markNotified(id: string): void {
    this.registry.send({ type: 'task.delivered', taskIds: [id] })
  }

  /**
   * Leases owed results. No other message contains them until the lease ends.
   * @param request `owner`: whose results (default: those of all owners); `exclusive`: refuse while the owner has another exclusive lease; `taskIds`:
   *   only these tasks; `questions`: also these open questions, if they are owed
   * @returns undefined if nothing is owed, or if an exclusive lease was refused
   * @throws INVALID_INPUT for an invalid request
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
      ...omitUndefined({ owner }),
      ...(taskIds !== undefined && { taskIds: [...new Set(taskIds)] }),
      ...omitUndefined({ questions }),
    })
  }

  /**
   * Confirms that the message with this id is in the host's transcript, so that its results are not delivered again after a crash. This message is
   * also confirmed when the owner accepts the next message.
   * @returns false if there is no unconfirmed message with this id. Without a store it always returns false
   */
  confirm(deliveryId: string): boolean {
    return this.registry.batch(() => this.registry.persistence?.confirmDelivery(deliveryId) === true)
  }

  /**
   * Delivers the content of a message again, for example because the message was removed from the agent's context. The next message contains its
   * results (if their records are kept) and its open questions, marked as repeats.
   * @returns false if nothing of the content is left, or if the message was not accepted
   */
  redeliver(deliveryId: string): boolean {
    return this.registry.batch(() => {
      const isRepeated = this.registry.ask({ type: 'delivery.repeat', deliveryId }) === true
      // The host has received the message, so a crash must not make it uncertain whether it arrived.
      if (isRepeated) this.registry.persistence?.confirmDelivery(deliveryId)
      return isRepeated
    })
  }

  /**
   * Pauses the tasks of an owner, or of all owners, until `resume`. Running tasks and the tasks that they launch continue. New background tasks wait
   * in the queue, within `queue.max`. Foreground launches are refused. A second call changes the options. With a store, a pause outlives the process.
   * @param owner whose tasks. Cannot be a run. Default: all owners
   * @returns the pause
   * @throws INVALID_INPUT for an invalid owner or option, and DISPOSED after `dispose`; no pause began then
   */
  pause(owner?: string, options: PauseOptions = {}): TaskPause {
    return this.registry.use(pausing).pause(owner, options)
  }

  /**
   * Ends the pause of an owner. Without an owner, it ends the pause of all owners, while separate pauses of single owners continue. Waiting tasks
   * start if there are slots, and held results are delivered.
   * @returns false if there is no such pause
   * @throws INVALID_INPUT for an invalid owner
   */
  resume(owner?: string): boolean {
    return this.registry.use(pausing).resume(owner)
  }

  /** Returns the current pauses, in the order in which they began. */
  pauses(): readonly TaskPause[] {
    return this.registry.pauses.list()
  }

  /**
   * Transfers the active, owed and leased tasks of an owner to the owner `to`. Without `to`, nobody receives their results. `to` may be the run of an
   * active task (`ownerOfRun`), but not a run that belongs to `owner` itself.
   * @returns the number of the transferred tasks
   * @throws INVALID_INPUT for an invalid owner; no task was transferred then
   */
  releaseOwner(owner: string, options: { readonly to?: string } = {}): number {
    const { to: heir } = parseInput(ownerReleaseSchema(), { ...options, owner }, 'input')
    if (heir !== undefined) checkHeir(this.registry, heir, owner)
    const count = this.registry.ledger.outstanding(owner)
    this.registry.send({ type: 'owner.release', owner, heir })
    return count
  }

  /**
   * Waits for tasks to end. The results that it returns count as delivered. After an aborted wait they are still owed.
   * @throws the reason of the signal when it aborts
   * @throws INVALID_INPUT for an invalid argument
   */
  async waitFor(ids: readonly string[], options: WaitOptions = {}): Promise<WaitResult> {
    const deliveryId = this.#freshId('wait', (id) => this.registry.ledger.lease(id) !== undefined)
    return waitForTasks(this.registry, ids, options, deliveryId)
  }

  /**
   * Resolves when no task of the owner is queued, running, owed or leased; without an owner, when this is true of all owners. If an owed result has no
   * subscriber that could deliver it, the promise may never resolve. `onError` is then called once.
   *
   * Resolves on `dispose`, too. With a store, tasks may be unfinished then: the next process goes on with them or reports them.
   */
  onIdle(owner?: string): Promise<void> {
    return waitUntilIdle(this.registry, owner)
  }

  /**
   * Answers a question of a task's run (`questions` of its record).
   * @param answer `{ action, content? }`, or the short form for models: a text, number or boolean for a question with one field, or an object with
   *   the fields (without a field `action`)
   * @returns false if that question is not open. The run of a durable task continues when the answer is stored (`stored`)
   * @throws INVALID_INPUT for an answer that does not match the question's schema or is too large for a step; the question stays open
   */
  answerTask(id: string, questionId: string, answer: TaskAnswer | AnswerValue): boolean {
    const entry = this.registry.history.get(id)
    return entry !== undefined && answerQuestion(this.registry, entry, questionId, answer)
  }

  /**
   * Sends a message to the run of a task (`context.messages`). The run takes each message at most once, in the order of sending. Messages that it has
   * not taken are dropped when the task ends or the process dies.
   * @returns whether the message was accepted, and the reason if it was not
   * @throws INVALID_INPUT for a message that is empty or not text
   */
  sendToTask(id: string, message: string): SendResult {
    return sendMessage(this.registry, id, message)
  }

  /**
   * Gives the run of a task another deadline. `timeoutMs` of the record becomes the time from the start of the run to that deadline, and counts for
   * later runs of the task, too.
   * @param inMs the time until the deadline, in ms from now; null for no deadline
   * @returns whether the deadline was changed, and the reason if not: the task does not run, is concluding or being stopped, or its program survives
   *   the host and has a deadline of its own
   * @throws INVALID_INPUT for a value that is not a number >= 0 or null
   */
  changeDeadline(id: string, inMs: number | null): ChangeResult {
    return changeDeadline(this.registry, id, inMs)
  }

  /**
   * Asks the run of a task to conclude now, as if it had exceeded a budget: `context.wrapUp` aborts, a run that takes messages receives one, and open
   * questions are withdrawn. A run that has not returned after `budget.wrapUpMs` (default 30000) is stopped, and its task fails with `TASK_CONCLUDED`.
   * @param options `reason`: why, in at most 1000 characters. The run and the error have it
   * @returns whether the run was asked, and the reason if not: the task does not run, is concluding or being stopped
   * @throws INVALID_INPUT for an invalid option
   */
  concludeTask(id: string, options: { readonly reason?: string | undefined } = {}): ChangeResult {
    return conclude(this.registry, id, options)
  }

  /**
   * Continues an ended task: launches a task of the same subagent and owner, with the same `timeoutMs`, `budget` and `concurrencyKey`. The message is
   * the goal of the new task, and its run receives the earlier result (`context.previous`). If this method throws, no task was launched.
   * @param task the id of a kept task, or a record of `history`
   * @throws INVALID_INPUT for an unknown task or an invalid message
   * @throws AgentTasksError `NOT_CONTINUED` with the reason
   * @throws the errors of `launch`
   */
  continueTask(task: string | SettledTaskInfo, message: string): ActiveTaskInfo {
    return continueTask(this.#launcher, task, message)
  }

  /**
   * Sends a message to an owner, or launches a task for it: after a time (`in`), at a time (`at`), repeatedly (`every`), or by a cron expression
   * (`cron`). The message is delivered like a result. If a task cannot be launched, the owner receives a message with the reason. With a store,
   * schedules outlive the process, but they do not fire while no process is running. `onIdle` does not wait for schedules. If this method throws, no
   * schedule was created.
   * @param input one of `in` and `every` (in ms), `at` and `cron`, and one of `message` and `launch`
   * @throws INVALID_INPUT for an invalid field
   * @throws AgentTasksError `SCHEDULE_LIMIT` if the owner has reached its maximum of schedules
   * @throws AgentTasksError `PACKAGES_MISSING` if `cron` or a local time needs the package `croner`
   * @throws DISPOSED after `dispose`
   */
  schedule(input: ScheduleInput): Schedule {
    return this.registry.use(schedules).add(input)
  }

  /** Returns the schedules of an owner, or all schedules, in the order of their next firings. */
  schedules(owner?: string): ScheduleInfo[] {
    return this.registry.use(schedules).list(owner)
  }

  /** Cancels a schedule. A task that the schedule has launched continues. Returns false if the schedule is unknown or has already ended. */
  cancelSchedule(id: string): boolean {
    return this.registry.use(schedules).cancel(id)
  }

  /** Reports the progress of a registered task. Returns false if the task is not running, or if the progress is malformed. */
  reportProgress(id: string, progress: number | TaskProgress): boolean {
    const entry = this.registry.history.get(id)
    return entry !== undefined && reportField(this.registry, entry, 'progress', progress)
  }

  /** Appends to the output of a registered task. Returns false if the task is not running. */
  appendOutput(id: string, text: string): boolean {
    const entry = this.registry.history.get(id)
    return entry !== undefined && appendOutput(this.registry, entry, text, this.#launcher.outputBytes)
  }

  /**
   * Reads the output of a task from a byte cursor. Returns undefined for an unknown task.
   * @throws INVALID_INPUT for a cursor or size that is not an integer >= 0
   */
  readOutput(id: string, options: ReadOutputOptions = {}): OutputChunk | undefined {
    const { cursor, maxBytes = 16_384 } = parseInput(readOutputOptionsSchema(), options, 'options')
    const entry = this.registry.history.get(id)
    if (entry === undefined) return undefined
    const log = outputLogs.get(entry) ?? new OutputLog(0)
    return log.read(cursor, maxBytes)
  }

  /**
   * Streams the output of a task: first what is kept after a byte cursor, then what the task appends. Completes when the task has ended. For an
   * unknown task it completes at once without a value, so use `getTask` to find out whether the task exists. A slow subscriber misses output that is
   * no longer kept.
   * @param options `cursor`: the first byte to read. Default: the first byte that is kept
   * @throws INVALID_INPUT for a cursor that is not an integer >= 0
   */
  output$(id: string, options: Pick<ReadOutputOptions, 'cursor'> = {}): Observable<TaskOutputEvent> {
    const { cursor } = parseInput(readOutputOptionsSchema(), options, 'options')
    return outputOf(this.registry, this.registry.history.get(id), cursor)
  }

  /**
   * Sends an event to an owner when lines match in the output of a task, or in a file. The output so far and the last 64 KiB of the file are searched
   * too. Matching lines within 200 ms are one event. The end of the monitor is an event too. Events are delivered like results, and start a turn. If
   * this method throws, no monitor was started.
   * @throws INVALID_INPUT for an invalid source or option
   * @throws AgentTasksError `MONITOR_LIMIT` if the owner has reached its maximum of monitors
   * @throws AgentTasksError `PACKAGES_MISSING` if a regular expression needs the package `re2js`
   * @throws DISPOSED after `dispose`
   */
  monitor(source: MonitorSource, options: MonitorOptions): TaskMonitor {
    return this.registry.use(monitors).plan(source, options)()
  }

  /** Returns the monitors of an owner, or all monitors, in the order in which they were started. */
  monitors(owner?: string): TaskMonitor[] {
    return this.registry.use(monitors).list(owner)
  }

  /** Calls `handler` once for each task that completes, when its record has changed. Returns an unsubscribe function. */
  onTaskCompleted(handler: (task: CompletedTaskInfo) => void): () => void {
    return this.#events.on('succeeded', handler)
  }

  /** Calls `handler` once for each task that fails, when its record has changed. Returns an unsubscribe function. */
  onTaskFailed(handler: (task: FailedTaskInfo) => void): () => void {
    return this.#events.on('failed', handler)
  }

  /** Calls `handler` once for each task that is cancelled, when its record has changed. Returns an unsubscribe function. */
  onTaskCancelled(handler: (task: CancelledTaskInfo) => void): () => void {
    return this.#events.on('stopped', handler)
  }

  /**
   * Completes the streams and stops all actors. No callback is called after this call. All messages that the host has accepted count as confirmed.
   *
   * Without a store, active tasks are cancelled. With a store they are kept, as after a crash: the next process goes on with those that wait and with
   * programs that survive, and runs the others again or reports them. Runs are aborted, and what a run returns within its grace completes its task.
   * @param options `cancel`: cancel the active tasks although there is a store. Default: false
   * @returns a promise that resolves when every run has ended or its grace period has passed. Until then the store stays open
   * @throws INVALID_INPUT for an invalid option
   */
  dispose(options: { readonly cancel?: boolean } = {}): Promise<void> {
    checkOptions(options, { cancel: aBoolean })
    if (this.#disposal !== undefined) return this.#disposal
    const { registry } = this
    const { persistence } = registry
    const { unsettled } = registry.use(runs)
    this.#launcher.close()
    if (persistence !== undefined && !persistence.isLost && options.cancel !== true) {
      let close: () => void = () => undefined
      // Set first, because listeners of aborted signals may call `dispose`.
      this.#disposal = new Promise<void>((resolve) => (close = resolve)).then(() => persistence.close())
      void suspendTasks(registry, persistence).then(() => {
        registry.close()
        close()
      })
      persistence.confirmOwner()
      persistence.flush()
      return this.#disposal
    }
    this.#disposal = Promise.all(Array.from(unsettled, (run) => run.settled)).then(() => persistence?.close())
    registry.batch(() => {
      // Tasks that wait for others are cancelled first. Otherwise they would fail, because the tasks that they wait for are cancelled.
      registry.cancelAll(registry.ledger.queued().filter(({ record }) => record.waitsFor !== undefined))
      for (const entry of this.#cancellable()) registry.cancel(entry)
    })
    registry.dispose()
    // The host shuts down normally, so its transcript contains all messages that it has accepted (promise K5).
    persistence?.confirmOwner()
    persistence?.flush()
    return this.#disposal
  }

  /** Same as `dispose`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  /** Returns the active tasks. Queued tasks come first, so that cancelling a running task does not start one of them. */
  #cancellable(owner?: string): TaskEntry[] {
    const { ledger } = this.registry
    return [...ledger.queued(owner), ...ledger.running(owner)]
  }

  #end(id: string, status: TerminalStatus, toEvent: () => AsyncTaskEvent): boolean {
    const entry = this.registry.history.get(id)
    if (entry?.ref === undefined || this.registry.isDisposed) return false
    // Reading the arguments may call host code (getters), and that code may end the task.
    const event = toEvent()
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- it may have ended meanwhile
    if (entry.ref === undefined) return false
    this.registry.batch(() => entry.ref?.send(event))
    return entry.record.status === status
  }

  #freshId(prefix: string, isTaken: (id: string) => boolean): string {
    return freshId(this.#createId, prefix, isTaken)
  }
}

/**
 * Returns the registry of a manager.
 * @throws INVALID_INPUT for any other value
 */
export function registryOf(manager: AsyncTaskManager): TaskRegistry {
  if (!(manager instanceof AsyncTaskManager)) throw new InvalidInputError('manager', manager, 'an AsyncTaskManager')
  return manager.registry
}
