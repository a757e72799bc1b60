/**
 * Accepts command tasks, runs them in the lanes of their instances, keeps them for a while, and emits each step.
 *
 * It wires its parts: `intake.ts` decides about submissions, `lanes.ts` runs the tasks, `task-table.ts` keeps them, `command-persistence.ts` stores
 * them, and `recovery.ts` takes over those of an earlier process. Every change is a batch of the outbox, and events follow it (promise S7). It is
 * longer than most files because the class has that many public methods.
 */
import { Subject, type Observable } from 'rxjs'
import { createActor } from 'xstate'
import { commandTaskMachine, type CommandTaskMachine, type CommandTaskRef } from '../../machines/command-task.js'
import type { OnError } from '../callbacks/error-report.js'
import { elapsedMs, systemClock, type Clock } from '../clock.js'
import { defined } from '../defined.js'
import type { Engine } from '../engine/engine.js'
import { createInProcessEngine } from '../engine/in-process.js'
import { InstanceError, InvalidInputError } from '../errors.js'
import type { InstanceEntry, InstanceManager } from '../instances/instance-manager.js'
import { instanceNotFound } from '../instances/not-found.js'
import { Emitter } from '../kernel/emitter.js'
import { ManagerOutbox, reporterOf } from '../kernel/manager-outbox.js'
import type { Task, TaskCompleteMessage, TaskProgressMessage, TaskStatus } from '../protocol/command-tasks.js'
import { jsonBytes } from '../json/json-size.js'
import { checkOptions } from '../protocol/option-checks.js'
import type { Telemetry, TraceContext } from '../protocol/telemetry.js'
import type { TaskSubmitMessage } from '../protocol/task-submission.js'
import { STORE_LOST_REASON, whenLost } from '../store/lost-store.js'
import type { Store } from '../store/store.js'
import {
  PastTasks,
  readCommandTaskQuery,
  type CommandTaskHistoryQuery,
  type HistoryPage,
} from '../kernel/past-tasks.js'
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
/** The maximum number of paused instances. Above it, instances that are gone are no longer paused. */
const MAX_PAUSED = 1000

/** Accepts command tasks, runs them in the lanes of their instances, and emits each step. */
export class TaskManager {
  /** Each step of each command. */
  readonly progress$: Observable<TaskProgressMessage>
  /** Each task once, when it has ended. */
  readonly complete$: Observable<TaskCompleteMessage>
  /** What was in the store. */
  readonly recovered: CommandRecovery
  /** @internal */
  readonly persistence: CommandPersistence | undefined
  /** @internal The ids of the tasks that were submitted, each before its first event. */
  readonly submitted$ = new Subject<string>()
  /** @internal What runs the commands. */
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
  /** Whether each unstored submission is accepted, by id. */
  readonly #unstored = new Map<string, Promise<boolean>>()
  /** The tasks of an earlier process that had started or ended there. */
  readonly #continued = new Set<string>()
  /** Called on dispose. */
  readonly #stops: (() => void)[] = []
  readonly #endClaim: () => void
  #isHeld = false
  #lateResults = 0
  #isDisposed = false
  /** Whether the last changes could not be stored on dispose. */
  #isStoreLost = false
  #disposal: Promise<void> | undefined

  /**
   * @throws InvalidSettingError for a number out of its range; InvalidInputError for an unknown or invalid option; AgentTasksError `INSTANCES_IN_USE`
   * when another manager has the instances; StoreInUseError or StoreError when the store cannot be opened
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

  /** The number of results that arrived after their command was aborted, or from a connection that was not asked. */
  get lateResults(): number {
    return this.#lateResults + this.instances.lateAnswers
  }

  /** Whether it was disposed and accepts no more tasks. */
  get isDisposed(): boolean {
    return this.#isDisposed
  }

  /** The number of unfinished tasks of each lane. */
  get laneDepths(): ReadonlyMap<string, number> {
    return new Map(this.lanes.map(({ instanceId, size }) => [instanceId, size]))
  }

  /**
   * Queues a task for the instance that it names, or for the first connected one that has all its tools. With a store, it starts when it is stored (`stored`). A task
   * that cannot be stored is withdrawn: it is no longer known, and no message about it is emitted.
   * @returns its id and its place among the tasks of the lane that have not ended (from 1); or why it was refused, and nothing was changed
   * @throws InvalidInputError for an unknown or wrong option
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
   * Resolves when every change made so far is stored; without a store, at once. Await it before you report a task as accepted.
   * @throws StoreError when the changes cannot be stored now: submissions among them are withdrawn, and other changes are written later
   */
  async stored(): Promise<void> {
    await this.persistence?.stored()
  }

  /** @internal Whether a task that was submitted in this tick is accepted; undefined when it need not be stored first. */
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

  /** Ends a task that could not be stored, without events. */
  #withdraw(task: CommandTask): void {
    this.#lanes.cancel(task, undefined)
    this.persistence?.withdraw(task)
    this.#tasks.withdraw(task)
    this.#outbox.drop((item) => 'taskId' in item && item.taskId === task.id)
  }

  /** @internal Runs a task that a cluster has accepted, on an instance of this process. */
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
   * Cancels a task that has not ended and aborts its command in flight; with a store, after the attempt to store the cancellation. Returns false when it
   * has ended or is unknown.
   * @param why the reason as text, for the error of the task
   */
  cancelTask(taskId: string, why?: string): boolean {
    const task = this.#tasks.get(taskId)
    if (task === undefined) return false
    return this.#outbox.batch(() => this.#lanes.cancel(task, why))
  }

  /**
   * Pauses an instance: until `resumeInstance`, no task of it starts. The running one continues, and tasks can be submitted. With a store the pause
   * survives the process.
   * @returns false when it is paused already
   * @throws InstanceError `INSTANCE_UNKNOWN` when it is not connected and has no tasks
   */
  pauseInstance(instanceId: string): boolean {
    const { paused } = this.#lanes
    if (this.#isDisposed || paused.has(instanceId)) return false
    const known = [...new Set([...this.instances.list().map(({ id }) => id), ...this.#lanes.instanceIds()])]
    if (!known.includes(instanceId)) {
      throw new InstanceError('INSTANCE_UNKNOWN', instanceId, instanceNotFound(instanceId, known))
    }
    // Paused instances that are gone make room.
    for (const id of paused.keys()) {
      if (paused.size < MAX_PAUSED) break
      if (!known.includes(id)) this.resumeInstance(id)
    }
    const since = this.#settings.clock.now()
    paused.set(instanceId, since)
    this.#notePause(instanceId, since)
    return true
  }

  /** Lets the tasks of an instance start again. Returns false when it is not paused. */
  resumeInstance(instanceId: string): boolean {
    if (this.#isDisposed || !this.#lanes.resume(instanceId)) return false
    this.#notePause(instanceId)
    return true
  }

  /** The paused instances, including disconnected ones, and since when, in ms since the epoch. */
  get pausedInstances(): ReadonlyMap<string, number> {
    return new Map(this.#lanes.paused)
  }

  #notePause(instanceId: string, pausedSince?: number): void {
    this.#outbox.batch(() => {
      this.persistence?.setPaused(instanceId, pausedSince)
      const timestamp = this.#settings.clock.now()
      this.#outbox.push({ type: 'instance_pause', instanceId, timestamp, ...defined({ pausedSince }) })
    })
  }

  /** A frozen snapshot of a task. */
  getTask(taskId: string): Task | undefined {
    return this.#tasks.get(taskId)?.record
  }

  /** @internal The span of the first command of a task. */
  traceOf(taskId: string): TraceContext | undefined {
    return this.#tasks.get(taskId)?.trace
  }

  /** A task's number in the order of submission, from 1; undefined for an unknown task. */
  placeOf(taskId: string): number | undefined {
    return this.#tasks.get(taskId)?.place
  }

  /** @internal Whether events of a task may have been emitted in an earlier process. */
  isContinued(taskId: string): boolean {
    return this.#continued.has(taskId)
  }

  /** @internal Whether tasks of an earlier process wait for an instance with this id. */
  isAwaited(instanceId: string): boolean {
    return this.#lanes.isAwaited(instanceId)
  }

  /**
   * @internal Starts no further task. Queued tasks stay in the store, for the next process.
   * @returns false, without a change, if there is no store
   */
  holdQueue(): boolean {
    this.#isHeld = this.persistence !== undefined
    return this.#isHeld
  }

  /** @internal The lanes, each with the state of its machine. */
  get lanes(): readonly LaneStanding[] {
    return this.#lanes.standings()
  }

  /** @internal Whether a task is running. */
  get hasRunning(): boolean {
    return this.#lanes.counts().running > 0
  }

  /**
   * Snapshots of the tasks, newest first.
   * @param instanceId only the tasks of this instance. Default: all instances
   * @param status only the tasks with this status. Default `all`
   */
  listTasks(instanceId?: string, status: TaskStatus | 'all' = 'all'): Task[] {
    return this.#tasks.list(instanceId, status)
  }

  /**
   * Reads the ended tasks, the latest first. If the store has a history, this includes tasks that the manager no longer keeps.
   * @returns a page, and the cursor of the next one
   * @throws InvalidInputError for an invalid query; StoreError when the history cannot be read
   */
  async history(query: CommandTaskHistoryQuery = {}): Promise<HistoryPage<Task>> {
    const wanted = readCommandTaskQuery(query)
    const ended = this.listTasks().filter(({ completedAt }) => completedAt !== undefined)
    const past = this.persistence?.past ?? new PastTasks()
    const { tasks, ...page } = await past.page(ended.map(asPastTask), wanted)
    return { ...page, tasks: tasks.map(({ record }) => Object.freeze(record) as unknown as Task) }
  }

  /** @internal A task that is no longer kept; undefined unless the history has it. `isCut`: it was too large, and lacks arguments and results. */
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
   * @param maxAge in ms; default `retentionMs`
   * @returns the number of dropped tasks
   * @throws InvalidInputError when `maxAge` is not a number; no task is dropped then
   */
  cleanupTasks(maxAge: number = this.#retentionMs): number {
    // NaN would drop every task, because every comparison with it is false.
    if (typeof maxAge !== 'number' || Number.isNaN(maxAge)) throw new InvalidInputError('maxAge', maxAge, 'a number')
    return this.#tasks.forgetOlder(maxAge)
  }

  /** Calls `handler` with each message. Exceptions of a handler are reported, and do not affect other handlers. */
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
   * Cancels all unfinished tasks and stops. With a store, queued tasks stay there for the next manager. Resolves when every
   * command has settled or its grace period has passed.
   */
  dispose(): Promise<void> {
    this.#disposal ??= new Promise((resolve) => {
      this.#isDisposed = true
      for (const stop of this.#stops.splice(0)) stop()
      const isKept = this.holdQueue()
      // Inside a handler, the messages of these cancellations are emitted later, and the streams complete after them.
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

  /** The same as `dispose()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  async #finish(): Promise<void> {
    this.#events.close()
    this.submitted$.complete()
    this.#tasks.close()
    await this.#lanes.settled()
    this.#outbox.batch(() => {
      this.#lanes.close()
      this.#root.stop()
    })
    // Not earlier, because an aborted command may have run until here.
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

  /** Another owner runs the stored tasks. */
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
      // An earlier handler may have connected another instance with the same id, and submitted tasks to it.
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

  /** Takes over what an earlier process has stored. */
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
    // Changes that are not in the store must not be reported.
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
        // Not earlier, so that listeners of its `complete` can still look the task up.
        if (task !== undefined) this.#tasks.end(task)
        this.#events.emit('complete', item)
        this.#tasks.trim()
      }
    }
  }

  #countLate(taskId: string): void {
    this.#lateResults += 1
    if (!this.#isDisposed) {
      this.#report(new Error(`A result of task ${taskId} came too late: dropped.`), { source: 'late-result', taskId })
    }
  }
}
