/**
 * Accepts command tasks, runs them on their instances one after the other, keeps ended tasks for a while, and emits an event for each step.
 *
 * The class connects its parts: `intake.ts` decides about submissions, `lanes.ts` runs the tasks, `task-table.ts` keeps them,
 * `command-persistence.ts` stores them, and `recovery.ts` takes over tasks of an earlier process. Every change runs inside `outbox.batch`, so that
 * its events follow when it is complete (promise S7). The file is longer than most, because the class has many public methods.
 */
import { Subject, type Observable } from 'rxjs'
import { createActor } from 'xstate'
import { commandTaskMachine, type CommandTaskMachine, type CommandTaskRef } from '../../machines/command-task.js'
import type { OnError } from '../isolation/error-report.js'
import { elapsedMs, systemClock, type Clock } from '../system/clock.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { Engine } from '../engine/engine.js'
import { createInProcessEngine } from '../engine/in-process.js'
import { InstanceError, InvalidInputError } from '../errors.js'
import type { InstanceEntry, InstanceManager } from './instances/instance-manager.js'
import { instanceNotFound } from './instances/not-found.js'
import { Emitter } from '../isolation/emitter.js'
import { ManagerOutbox, reporterOf } from '../isolation/manager-outbox.js'
import type { Task, TaskCompleteMessage, TaskProgressMessage, TaskStatus } from '../protocol/command-tasks.js'
import { jsonBytes } from '../data/json-size.js'
import { aBoolean, checkOptions } from '../protocol/option-checks.js'
import type { Telemetry, TraceContext } from '../protocol/telemetry.js'
import type { TaskSubmitMessage } from '../protocol/task-submission.js'
import { STORE_LOST_REASON, whenLost } from '../store/lost-store.js'
import type { Store } from '../store/store.js'
import {
  PastTasks,
  readCommandTaskQuery,
  type CommandTaskHistoryQuery,
  type HistoryPage,
} from '../store/history/past-tasks.js'
import { asPastTask } from './past-command-task.js'
import { CommandPersistence } from './command-persistence.js'
import type { CommandSettings, OutboxItem } from './command-run.js'
import { CommandTask, type CommandTaskHost, type CommandTaskOrigin, type SubmittedTask } from './command-task.js'
import { Intake } from './intake.js'
import { laneParentLogic, type LaneParentRef } from './lane.js'
import { Lanes, type LaneStanding } from './lanes.js'
import {
  managerOptionTypes,
  submitOptionTypes,
  type CommandRecovery,
  type SubmitOptions,
  type SubmitResult,
  type TaskManagerEvents,
  type TaskManagerOptions,
} from './options.js'
import { awaitInstances, recoverTasks } from './recovery.js'
import type { RestoredTask } from './stored-tasks.js'
import { refusal } from './submission.js'
import { byteLimits } from './task-bytes.js'
import { TaskTable } from './task-table.js'

const HOUR_MS = 3_600_000
const INSTANCE_GRACE_MS = 90_000
/** The maximum number of paused instances. When it is reached, instances that do not exist any more are resumed. */
const MAX_PAUSED = 1000

/**
 * Accepts command tasks and runs them. An instance runs one command at a time; different instances work in parallel. Emits the start, the progress and
 * the end of each command.
 */
export class TaskManager {
  /** Emits each start, progress report and end of a command. */
  readonly progress$: Observable<TaskProgressMessage>
  /** Emits each task once, when it has ended. */
  readonly complete$: Observable<TaskCompleteMessage>
  /** The tasks that this manager took over from the store. */
  readonly recovered: CommandRecovery
  /** @internal */
  readonly persistence: CommandPersistence | undefined
  /** @internal Emits the id of each submitted task, before the first event of the task. */
  readonly submitted$ = new Subject<string>()
  /** @internal The instances that run the commands. */
  readonly instances: InstanceManager
  readonly #report: OnError
  readonly #outbox: ManagerOutbox<OutboxItem>
  readonly #events: Emitter<TaskManagerEvents>
  readonly #settings: CommandSettings
  readonly #root: LaneParentRef
  readonly #taskMachine: CommandTaskMachine
  readonly #taskHost: CommandTaskHost
  readonly #tasks: TaskTable
  readonly #lanes: Lanes
  readonly #intake: Intake
  readonly #retentionMs: number
  /** For each submitted task that is not stored yet: a promise for whether it is accepted. */
  readonly #unstored = new Map<string, Promise<boolean>>()
  /** The tasks of an earlier process that had started or ended in that process. */
  readonly #continued = new Set<string>()
  /** Functions that `dispose` calls. */
  readonly #stops: (() => void)[] = []
  readonly #endClaim: () => void
  #isHeld = false
  #lateResults = 0
  #isDisposed = false
  /** Whether `dispose` could not store the last changes. */
  #isStoreLost = false
  #disposal: Promise<void> | undefined

  /**
   * Creates a task manager.
   * @throws INVALID_SETTING for a number out of its range
   * @throws INVALID_INPUT for an unknown or invalid option
   * @throws AgentTasksError with the code `INSTANCES_IN_USE` when another manager uses these instances
   * @throws STORE_IN_USE when another process has the store
   * @throws StoreError when the store cannot be opened
   */
  constructor(options: TaskManagerOptions) {
    checkOptions(options, managerOptionTypes)
    const { instances, clock = systemClock, machines = {}, store, telemetry } = options
    this.instances = instances
    this.#report = reporterOf(options.onError, clock)
    this.#retentionMs = options.retentionMs ?? HOUR_MS
    this.#events = new Emitter(['progress', 'complete', 'pause'], this.#report)
    this.progress$ = this.#events.stream('progress')
    this.complete$ = this.#events.stream('complete')
    this.#outbox = new ManagerOutbox<OutboxItem>({
      clock,
      inspect: options.inspect,
      report: this.#report,
      notify: (item) => this.#notify(item),
      ...(store && {
        mayDeliver: () => this.#isStoreLost || (this.persistence?.isSettled() ?? true),
        afterWrite: (run) => this.persistence?.afterWrite(run),
      }),
    })
    const outbox = this.#outbox
    this.#tasks = new TaskTable({
      clock,
      limits: byteLimits(options, store !== undefined),
      maxRetained: options.maxRetained ?? 1000,
      retentionMs: this.#retentionMs,
      onForgotten: (task) => {
        this.#continued.delete(task.id)
        this.persistence?.forget(task)
      },
    })
    this.#taskMachine = machines.task ?? commandTaskMachine
    this.#taskHost = {
      budget: this.#tasks,
      now: () => clock.now(),
      elapsed: () => elapsedMs(clock),
      emit: (message) => outbox.push(message),
      onChange: (task, index) => this.persistence?.note(task, index),
    }
    this.#settings = {
      outbox,
      clock,
      telemetry,
      traces: telemetry && new WeakMap(),
      whenStored: store === undefined ? (run) => run() : (run) => outbox.callLater(run, 'runner'),
      engine: options.engine ?? this.#createEngine(clock),
      abortGraceMs: options.abortGraceMs ?? 2000,
      commandTimeout: options.commandTimeout ?? 60_000,
    }
    this.#endClaim = instances.claim()
    let rows: readonly RestoredTask[] = []
    try {
      this.persistence = store && this.#openStore(store, clock)
      rows = this.persistence?.takeTasks() ?? []
    } catch (error) {
      this.persistence?.abandon()
      this.#endClaim()
      throw error
    }
    this.#root = createActor(laneParentLogic, { id: 'command-tasks', ...outbox.actorOptions() })
    outbox.batch(() => this.#root.start())
    this.#lanes = new Lanes({
      machine: machines.lane,
      parent: this.#root,
      settings: this.#settings,
      isHeld: () => this.#isHeld,
    })
    for (const [id, since] of this.persistence?.paused ?? []) this.#lanes.paused.set(id, since)
    this.#intake = new Intake({
      instances,
      clock,
      lanes: this.#lanes,
      tasks: this.#tasks,
      maxQueueSize: options.maxQueueSize ?? 100,
      lastPlace: this.persistence?.lastPlace ?? 0,
    })
    this.#listen(telemetry)
    if (store !== undefined) this.#stops.push(whenLost(store, (reason) => this.#cancelLost(reason)))
    this.recovered = outbox.batch(() => this.#recover(rows, clock, options.instanceGraceMs ?? INSTANCE_GRACE_MS))
  }

  /** The number of results that were dropped. They arrived after their command was aborted, or over a connection to which the call was not sent. */
  get lateResults(): number {
    return this.#lateResults + this.instances.lateAnswers
  }

  /** Whether the manager was disposed. A disposed manager accepts no tasks. */
  get isDisposed(): boolean {
    return this.#isDisposed
  }

  /** The number of unfinished tasks of each instance. */
  get laneDepths(): ReadonlyMap<string, number> {
    return new Map(this.lanes.map(({ instanceId, size }) => [instanceId, size]))
  }

  /**
   * Queues a task for the instance that it names, or for the first connected instance that has all its tools.
   *
   * With a store, the task starts after it was stored (see `stored`). If it cannot be stored, it is withdrawn: `getTask` does not find it, and no
   * event is emitted.
   * @returns the id of the task, and its position among the unfinished tasks of the instance, from 1; an error and a code if the task was refused
   * @throws INVALID_INPUT for an unknown or invalid option
   */
  submitTask(message: TaskSubmitMessage, options: SubmitOptions = {}): SubmitResult {
    checkOptions(options, submitOptionTypes)
    if (this.#isDisposed) return refusal('NO_INSTANCE', 'The task manager was disposed.')
    const decision = this.#intake.decide(message, options.idempotencyKey)
    if (!('submitted' in decision)) return decision
    const { submitted, origin } = decision
    return this.#outbox.batch(() => {
      this.#lanes.open(origin.instanceId)
      const task = this.#createTask(submitted, origin)
      this.#tasks.add(task)
      this.#noteTrace(task)
      const queuePosition = this.#lanes.add(task)
      if (this.submitted$.observed) {
        const notify = (): void => {
          if (this.#tasks.get(task.id) === task) this.submitted$.next(task.id)
        }
        this.#outbox.callLater(notify, 'stream')
      }
      this.#store(task)
      return { taskId: task.id, queuePosition }
    })
  }

  /**
   * Resolves when every change until now is stored; without a store, at once. Await it before you report to a client that its task was accepted.
   * @throws StoreError when the changes cannot be stored now. Submitted tasks are then withdrawn. Other changes are written later.
   */
  async stored(): Promise<void> {
    await this.persistence?.stored()
  }

  /** @internal A promise for whether a newly submitted task is accepted. Undefined when the task is stored already, or when there is no store. */
  accepted(taskId: string): Promise<boolean> | undefined {
    return this.#unstored.get(taskId)
  }

  #store(task: CommandTask): void {
    const { persistence } = this
    if (persistence === undefined) return
    const accepted = new Promise<boolean>((resolve) => {
      const settle = (isStored: boolean): void => {
        this.#unstored.delete(task.id)
        resolve(isStored)
      }
      persistence.submit(task, {
        onStored: () => settle(true),
        onRefused: () => {
          this.#withdraw(task)
          settle(false)
        },
      })
    })
    this.#unstored.set(task.id, accepted)
  }

  /** Removes a submitted task that could not be stored, and its events. */
  #withdraw(task: CommandTask): void {
    this.#lanes.cancel(task, undefined)
    this.persistence?.withdraw(task)
    this.#tasks.withdraw(task)
    this.#outbox.drop((item) => 'taskId' in item && item.taskId === task.id)
  }

  /** @internal Runs a task that a cluster has accepted on an instance of this process. */
  run(submitted: SubmittedTask, place: number, instance: InstanceEntry): void {
    const bytes = jsonBytes(submitted)
    this.#tasks.hold(bytes)
    this.#outbox.batch(() => {
      this.#lanes.open(instance.id)
      const task = this.#createTask(submitted, { instanceId: instance.id, place, instance, bytes })
      this.#tasks.add(task)
      this.#lanes.add(task)
    })
  }

  /**
   * Cancels an unfinished task, and aborts its running command. With a store, the command is aborted after the attempt to store the cancellation.
   * @param why the reason; it becomes part of the task's error message
   * @returns false when the task has ended or is unknown
   */
  cancelTask(taskId: string, why?: string): boolean {
    const task = this.#tasks.get(taskId)
    if (task === undefined) return false
    return this.#outbox.batch(() => this.#lanes.cancel(task, why))
  }

  /**
   * Pauses an instance: its queued tasks do not start until `resumeInstance`. A running task continues, and tasks can still be submitted. With a
   * store, the pause outlasts the process.
   * @returns false when the instance is paused already, or after `dispose`
   * @throws AgentTasksError with the code `INSTANCE_UNKNOWN` when the instance is not connected and has no tasks
   */
  pauseInstance(instanceId: string): boolean {
    const { paused } = this.#lanes
    if (this.#isDisposed || paused.has(instanceId)) return false
    const known = [...new Set([...this.instances.list().map(({ id }) => id), ...this.#lanes.instanceIds()])]
    if (!known.includes(instanceId)) {
      throw new InstanceError('INSTANCE_UNKNOWN', instanceId, instanceNotFound(instanceId, known))
    }
    // If too many instances are paused, those that do not exist any more are resumed.
    for (const id of paused.keys()) {
      if (paused.size < MAX_PAUSED) break
      if (!known.includes(id)) this.resumeInstance(id)
    }
    const since = this.#settings.clock.now()
    paused.set(instanceId, since)
    this.#notePause(instanceId, since)
    return true
  }

  /** Lets the queued tasks of an instance start again. Returns false when the instance is not paused, or after `dispose`. */
  resumeInstance(instanceId: string): boolean {
    if (this.#isDisposed || !this.#lanes.resume(instanceId)) return false
    this.#notePause(instanceId)
    return true
  }

  /** The paused instances, also disconnected ones, and when each was paused, in ms since the epoch. */
  get pausedInstances(): ReadonlyMap<string, number> {
    return new Map(this.#lanes.paused)
  }

  #notePause(instanceId: string, pausedSince?: number): void {
    this.#outbox.batch(() => {
      this.persistence?.setPaused(instanceId, pausedSince)
      const timestamp = pausedSince ?? this.#settings.clock.now()
      this.#outbox.push({ type: 'instance_pause', instanceId, timestamp, ...omitUndefined({ pausedSince }) })
    })
  }

  /** Returns a frozen snapshot of a task. Returns undefined for an unknown task. */
  getTask(taskId: string): Task | undefined {
    return this.#tasks.get(taskId)?.record
  }

  /** @internal The span of the first command of a task. */
  traceOf(taskId: string): TraceContext | undefined {
    return this.#tasks.get(taskId)?.trace
  }

  /** Returns the number of a task in the order of submission, from 1. Returns undefined for an unknown task. */
  placeOf(taskId: string): number | undefined {
    return this.#tasks.get(taskId)?.place
  }

  /** @internal Whether an earlier process may already have emitted events of this task. */
  isContinued(taskId: string): boolean {
    return this.#continued.has(taskId)
  }

  /** @internal Whether tasks of an earlier process wait for an instance with this id to connect. */
  isAwaited(instanceId: string): boolean {
    return this.#lanes.isAwaited(instanceId)
  }

  /**
   * @internal Starts no further tasks. The queued tasks stay in the store for the next process.
   * @returns false, without a change, if there is no store
   */
  holdQueue(): boolean {
    this.#isHeld = this.persistence !== undefined
    return this.#isHeld
  }

  /** @internal A snapshot of each lane (the task queue of one instance). */
  get lanes(): readonly LaneStanding[] {
    return this.#lanes.standings()
  }

  /** @internal Whether a task is running. */
  get hasRunning(): boolean {
    return this.#lanes.counts().running > 0
  }

  /**
   * Returns snapshots of the tasks, newest first.
   * @param instanceId the instance whose tasks are returned. Default: all instances
   * @param status the status of the tasks that are returned. Default `all`
   */
  listTasks(instanceId?: string, status: TaskStatus | 'all' = 'all'): Task[] {
    return this.#tasks.list(instanceId, status)
  }

  /**
   * Reads ended tasks, the latest first. If the store has a history, the result includes tasks that the manager has already dropped.
   * @returns a page of tasks, and a cursor for the next page
   * @throws INVALID_INPUT for an invalid query
   * @throws StoreError when the history cannot be read
   */
  async history(query: CommandTaskHistoryQuery = {}): Promise<HistoryPage<Task>> {
    const wanted = readCommandTaskQuery(query)
    const ended = this.listTasks().filter(({ completedAt }) => completedAt !== undefined)
    const past = this.persistence?.past ?? new PastTasks()
    const { tasks, ...page } = await past.page(ended.map(asPastTask), wanted)
    return { ...page, tasks: tasks.map(({ record }) => Object.freeze(record) as unknown as Task) }
  }

  /**
   * @internal Finds a task that the manager has dropped, in the history of the store. `isCut` means that the task was too large, so its arguments and
   * results were left out.
   */
  async findPast(id: string): Promise<{ readonly task: Task; readonly isCut: boolean } | undefined> {
    const past = await this.persistence?.past.find('command task', id)
    return past && { task: past.record as unknown as Task, isCut: past.isCut === true }
  }

  /** Fails every unfinished task of an instance. */
  handleInstanceDisconnect(instanceId: string): void {
    this.#lanes.disconnect(instanceId)
  }

  /**
   * Drops tasks that ended longer ago than `maxAge`.
   * @param maxAge the age in ms. Default `retentionMs`
   * @returns the number of dropped tasks
   * @throws INVALID_INPUT when `maxAge` is not a number; no task is dropped then
   */
  cleanupTasks(maxAge: number = this.#retentionMs): number {
    // NaN would silently drop no task, because every comparison with NaN is false.
    if (typeof maxAge !== 'number' || Number.isNaN(maxAge)) throw new InvalidInputError('maxAge', maxAge, 'a number')
    return this.#tasks.forgetOlder(maxAge)
  }

  /** Calls `handler` with each event of this kind. An exception of a handler is passed to `onError`, and does not affect other handlers. */
  on<E extends keyof TaskManagerEvents>(event: E, handler: (message: TaskManagerEvents[E]) => void): this {
    this.#events.on(event, handler)
    return this
  }

  /** Removes a handler. */
  off<E extends keyof TaskManagerEvents>(event: E, handler: (message: TaskManagerEvents[E]) => void): this {
    this.#events.off(event, handler)
    return this
  }

  /**
   * Stops. Without a store, all unfinished tasks are cancelled. With a store they are kept for the next manager, as after a crash, and emit no `complete`.
   * Running commands are aborted, and what a command returns within its grace period is stored. Resolves when every running command has settled, or
   * its grace period has passed.
   * @param options `cancel`: cancel the running tasks although there is a store. Default: false
   * @throws INVALID_INPUT for an invalid option
   */
  dispose(options: { readonly cancel?: boolean } = {}): Promise<void> {
    checkOptions(options, { cancel: aBoolean })
    this.#disposal ??= new Promise((resolve) => {
      this.#isDisposed = true
      for (const stop of this.#stops.splice(0)) stop()
      const isKept = this.holdQueue()
      if (isKept && options.cancel !== true && this.persistence?.isLost === false) {
        const ending = this.#finish()
        this.#outbox.batch(() => this.#lanes.suspend())
        resolve(ending)
        return
      }
      // If a handler calls `dispose`, the events of these cancellations are emitted after that handler. The streams complete after these events.
      this.#outbox.batch(() => {
        for (const { id, hasStarted } of this.#tasks.values()) {
          if (hasStarted || !isKept) this.cancelTask(id, 'the task manager was disposed')
        }
        this.#outbox.callLater(() => resolve(this.#finish()), 'runner')
      })
      this.persistence?.afterWrite((isStored) => (this.#isStoreLost = !isStored))
    })
    return this.#disposal
  }

  /** Calls `dispose()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  async #finish(): Promise<void> {
    this.#events.close()
    this.submitted$.complete()
    this.#tasks.close()
    // Commands that are suspended are aborted in the same tick.
    await Promise.resolve()
    await this.#lanes.settled()
    this.#outbox.batch(() => {
      this.#lanes.close()
      this.#root.stop()
    })
    // Another manager may use the instances only now, because an aborted command may still have been running until here.
    this.#endClaim()
    await this.persistence?.close()
  }

  #openStore(store: Store, clock: Clock): CommandPersistence {
    return new CommandPersistence({
      store,
      clock,
      report: (error) => this.#report(error, { source: 'store' }),
      outbox: this.#outbox,
    })
  }

  /** Cancels all tasks, because another process has taken over the store and runs them. */
  #cancelLost(reason: unknown): void {
    this.#report(reason, { source: 'store' })
    this.#outbox.batch(() => {
      for (const { id } of [...this.#tasks.values()]) this.cancelTask(id, STORE_LOST_REASON)
    })
  }

  #createEngine(clock: Clock): Engine {
    return createInProcessEngine({
      clock,
      onError: (error, { id }) => this.#report(error, { source: 'abort-listener', taskId: id }),
    })
  }

  #listen(telemetry: Telemetry | undefined): void {
    const { instances, persistence } = this
    if (telemetry !== undefined) {
      this.#stops.push(telemetry.watch({ kind: 'command_task', counts: () => this.#lanes.counts() }))
    }
    this.#stops.push(
      // An earlier listener may have connected another instance with the same id, and submitted tasks to it. These tasks must continue.
      instances.onDisconnect((instanceId) => {
        const successor = instances.get(instanceId)
        this.#lanes.disconnect(instanceId, successor)
        if (successor === undefined) persistence?.removeWorker(instanceId)
      }),
    )
    if (persistence !== undefined) this.#stops.push(instances.onConnect((instanceId) => this.#adopt(instanceId)))
  }

  #adopt(instanceId: string): void {
    const instance = this.instances.get(instanceId)
    if (instance !== undefined) this.#lanes.adopt(instance)
  }

  /** Takes over the tasks that an earlier process has stored. */
  #recover(rows: readonly RestoredTask[], clock: Clock, instanceGraceMs: number): CommandRecovery {
    const { queued, interrupted } = recoverTasks(rows, {
      clock,
      tasks: this.#tasks,
      lanes: this.#lanes,
      continued: this.#continued,
      createTask: (submitted, origin) => this.#createTask(submitted, origin),
    })
    for (const instanceId of this.#lanes.instanceIds()) this.#adopt(instanceId)
    if (queued.length > 0) this.#stops.push(awaitInstances(this.#lanes, clock, instanceGraceMs))
    return { queued, interrupted }
  }

  #createTask(submitted: SubmittedTask, origin: CommandTaskOrigin): CommandTask {
    const ref = origin.restored?.completedAt === undefined ? this.#startActor(submitted) : undefined
    return new CommandTask(submitted, origin, ref, this.#taskHost)
  }

  #startActor({ id, commands }: SubmittedTask): CommandTaskRef {
    const ref = createActor(this.#taskMachine, {
      id: `task.${id}`,
      input: { totalCommands: commands.length },
      parent: this.#root,
    })
    ref.start()
    return ref
  }

  #noteTrace(task: CommandTask): void {
    const { telemetry, traces } = this.#settings
    const trace = telemetry?.current()
    if (trace !== undefined) traces?.set(task, trace)
  }

  #notify(item: OutboxItem): void {
    // The last changes could not be stored. The next process will not know them, so their events are not emitted.
    if (this.#isStoreLost) return
    switch (item.type) {
      case 'late_result':
        this.#countLate(item.taskId)
        break
      case 'instance_pause':
        this.#events.emit('pause', item)
        break
      case 'task_progress':
        this.#events.emit('progress', item)
        break
      case 'task_complete': {
        const task = this.#tasks.get(item.taskId)
        // The task may be dropped from here on. Listeners of `complete` can still read it, because `trim` runs after them.
        if (task !== undefined) this.#tasks.end(task)
        this.#events.emit('complete', item)
        this.#tasks.trim()
      }
    }
  }

  #countLate(taskId: string): void {
    this.#lateResults += 1
    if (!this.#isDisposed) {
      this.#report(new Error(`A result of task ${taskId} arrived after its command was aborted, and was dropped.`), {
        source: 'late-result',
        taskId,
      })
    }
  }
}
