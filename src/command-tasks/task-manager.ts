/**
 * Takes command tasks, runs them in the lanes of their instances, keeps them for a while, and emits each step.
 *
 * It is longer than most files because the class has that many public methods.
 */
import { filter, Subject, type Observable } from 'rxjs'
import { createActor } from 'xstate'
import { commandTaskMachine, type CommandTaskMachine, type CommandTaskRef } from '../../machines/command-task.js'
import type { LaneMachine } from '../../machines/lane.js'
import { isolateReport, reportToConsole, type ErrorSource, type OnError } from '../callbacks/error-report.js'
import { observerOf } from '../callbacks/observed-clock.js'
import { toInspectFunction, type Inspect } from '../callbacks/inspection.js'
import { callIsolated } from '../callbacks/isolated-call.js'
import { IsolatedObservable } from '../callbacks/isolated-observable.js'
import { createOutbox, type Outbox } from '../callbacks/outbox.js'
import {
  actorClock,
  clearLongTimeout,
  elapsedMs,
  setLongTimeout,
  systemClock,
  unrefTimer,
  type Clock,
  type LongTimer,
} from '../clock.js'
import type { Engine } from '../engine/engine.js'
import { createInProcessEngine } from '../engine/in-process.js'
import { InvalidInputError } from '../errors.js'
import type { InstanceEntry, InstanceManager } from '../instances/instance-manager.js'
import { instanceNotFound } from '../instances/not-found.js'
import type {
  SubmitErrorCode,
  Task,
  TaskCompleteMessage,
  TaskProgressMessage,
  TaskStatus,
} from '../protocol/command-tasks.js'
import {
  aClock,
  aFunction,
  aMachine,
  anEngine,
  anInspector,
  checkOptions,
  numberFrom,
  objectWith,
  optionsOf,
  required,
  type OptionTypes,
} from '../protocol/option-checks.js'
import { jsonBytes } from '../protocol/json-size.js'
import { aTelemetry, type Telemetry } from '../protocol/telemetry.js'
import type { TaskSubmitMessage } from '../protocol/task-submission.js'
import type { Store } from '../store/store.js'
import { CommandPersistence } from './command-persistence.js'
import type { CommandSettings, OutboxItem } from './command-run.js'
import { CommandTask, type CommandTaskOptions, type SubmittedTask } from './command-task.js'
import { ByteBudget, DEFAULT_BYTE_LIMITS } from './task-bytes.js'
import { Lane, laneParentLogic, type LaneParentRef } from './lane.js'
import { heldBytes, isSameSubmission, queuedRow, type RestoredTask } from './stored-tasks.js'
import { readSubmission, refusal } from './submission.js'

/** The longest idempotency key, in characters. */
const MAX_KEY = 512

/** What one row of a store may have, in bytes of JSON (64 MiB). */
const MAX_ROW_BYTES = 64 * 1024 * 1024

/** Options of `TaskManager`. */
export interface TaskManagerOptions {
  /** The instances that run the commands; no other `TaskManager` may use them. */
  readonly instances: InstanceManager
  /** The longest time that a command may take, in ms. Default 60000. */
  readonly commandTimeout?: number
  /** The most tasks of one instance that have not ended. 0 accepts no tasks. Default 100. */
  readonly maxQueueSize?: number
  /** How long an aborted command may hold its lane, in ms. Default 2000. */
  readonly abortGraceMs?: number
  /** How long an ended task is kept, in ms. Default 3600000. */
  readonly retentionMs?: number
  /** How many ended tasks are kept. Default 1000. */
  readonly maxRetained?: number
  /** The largest result of a command, in bytes of JSON; the command of a larger one fails with `RESULT_TOO_LARGE`. Default 16 MiB. */
  readonly maxResultBytes?: number
  /** The most that one task may hold, commands and results, in bytes of JSON. Default 64 MiB. */
  readonly maxTaskBytes?: number
  /** The most that all tasks may hold, in bytes of JSON. Ended ones are forgotten early for it, the earliest first. Default 256 MiB. */
  readonly maxBytes?: number
  /** Keeps tasks when the process ends. The first manager on it takes over what is stored. Default: none, and they end with the process. */
  readonly store?: Store
  /** With a store: how long tasks of an earlier process wait for their instance, in ms. Default 90000. */
  readonly instanceGraceMs?: number
  /** Default: the platform's clock. */
  readonly clock?: Clock
  /** Starts the commands. Default: in this process. */
  readonly engine?: Engine
  /** Called with exceptions of listeners and with results that came too late. Default: `console.error`. */
  readonly onError?: OnError
  /** Traces the commands and counts the tasks (`agent-tasks/telemetry`). Default: none. */
  readonly telemetry?: Telemetry | undefined
  /** Machines to run in place of the package's own. */
  readonly machines?: CommandTaskMachines
  /** Receives the XState inspection events of lanes and tasks, after the change they belong to. Default: none. */
  readonly inspect?: Inspect | undefined
}

/** Machines to run in place of the package's own, made of them with `machine.provide`. They get the same input. */
export interface CommandTaskMachines {
  /** Runs the tasks of one instance, one after the other. */
  readonly lane?: LaneMachine
  /** Goes through the commands of one task. */
  readonly task?: CommandTaskMachine
}

const optionTypes: OptionTypes<TaskManagerOptions> = {
  instances: required(objectWith('an InstanceManager', 'get', 'first', 'onDisconnect')),
  commandTimeout: numberFrom(1),
  maxQueueSize: numberFrom(0),
  abortGraceMs: numberFrom(0),
  retentionMs: numberFrom(0),
  maxRetained: numberFrom(0),
  maxResultBytes: numberFrom(1),
  maxTaskBytes: numberFrom(1),
  maxBytes: numberFrom(1),
  store: objectWith('a store', 'open', 'write', 'close'),
  instanceGraceMs: numberFrom(0),
  clock: aClock,
  engine: anEngine,
  onError: aFunction,
  telemetry: aTelemetry,
  machines: optionsOf<CommandTaskMachines>({ lane: aMachine, task: aMachine }),
  inspect: anInspector,
}

/** The result of `submitTask`. */
export type SubmitResult =
  | { readonly taskId: string; readonly queuePosition: number }
  | { readonly error: string; readonly code: SubmitErrorCode }

/** Options of `submitTask`. */
export interface SubmitOptions {
  /**
   * Identifies the submission. Repeated with the same key while the task is retained, it gets the same answer, and nothing is submitted; another
   * task under the key is refused. 1 to 512 characters.
   */
  readonly idempotencyKey?: string
}

const submitOptionTypes: OptionTypes<SubmitOptions> = {
  idempotencyKey: {
    expected: `a string of 1 to ${MAX_KEY} characters`,
    accepts: (key) => typeof key === 'string' && key !== '' && key.length <= MAX_KEY,
  },
}

/** What a manager has taken over from an earlier process, as ids of tasks. */
export interface CommandRecovery {
  /** They had not started: they wait for their instance. */
  readonly queued: readonly string[]
  /** They ran when the process ended: they have failed. */
  readonly interrupted: readonly string[]
}

/** The events of `TaskManager`. */
export interface TaskManagerEvents {
  /** A command has started, reported progress or ended. */
  readonly progress: TaskProgressMessage
  /** A task has ended; emitted once for each task. */
  readonly complete: TaskCompleteMessage
}

type Handlers = { readonly [E in keyof TaskManagerEvents]: Set<(message: TaskManagerEvents[E]) => void> }

const HOUR_MS = 3_600_000
const INSTANCE_GRACE_MS = 90_000

/** Takes command tasks, runs them in the lanes of their instances, and emits each step. */
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
  readonly #instances: InstanceManager
  readonly #settings: CommandSettings
  readonly #machines: CommandTaskMachines
  readonly #root: LaneParentRef
  readonly #report: OnError
  readonly #handlers: Handlers = { progress: new Set(), complete: new Set() }
  readonly #messages$ = new Subject<TaskProgressMessage | TaskCompleteMessage>()
  readonly #lanes = new Map<string, Lane>()
  readonly #tasks = new Map<string, CommandTask>()
  /** When each ended task ended, on the clock of `elapsedMs`, in the order in which they ended. */
  readonly #endedAt = new Map<string, number>()
  readonly #budget: ByteBudget
  readonly #maxQueueSize: number
  readonly #retentionMs: number
  readonly #maxRetained: number
  /** The tasks that were submitted with a key. */
  readonly #keys = new Map<string, CommandTask>()
  /** The tasks of an earlier process that had started or ended there. */
  readonly #continued = new Set<string>()
  readonly #stopListening: readonly (() => void)[]
  readonly #endClaim: () => void
  #instanceGrace: LongTimer | undefined
  #sweep: unknown
  #taskCount = 0
  #isHeld = false
  #lateResults = 0
  #isDisposed = false
  #disposal: Promise<void> | undefined

  /**
   * @throws InvalidSettingError for a number out of its range; InvalidInputError for an unknown or wrong option; AgentTasksError `INSTANCES_IN_USE`
   *   when another manager has the instances; StoreInUseError or StoreError when the store cannot be opened
   */
  constructor(options: TaskManagerOptions) {
    checkOptions(options, optionTypes)
    const { instances, clock = systemClock, machines = {}, store } = options
    this.#instances = instances
    this.#report = isolateReport(options.onError ?? observerOf(clock) ?? reportToConsole)
    this.#machines = machines
    this.#maxQueueSize = options.maxQueueSize ?? 100
    this.#retentionMs = options.retentionMs ?? HOUR_MS
    this.#maxRetained = options.maxRetained ?? 1000
    this.#budget = new ByteBudget(
      {
        maxResultBytes: Math.min(
          options.maxResultBytes ?? DEFAULT_BYTE_LIMITS.maxResultBytes,
          store === undefined ? Infinity : MAX_ROW_BYTES,
        ),
        maxTaskBytes: options.maxTaskBytes ?? DEFAULT_BYTE_LIMITS.maxTaskBytes,
        maxBytes: options.maxBytes ?? DEFAULT_BYTE_LIMITS.maxBytes,
      },
      () => this.#forgetFirst(),
    )
    const outbox = createOutbox<OutboxItem>({
      notify: (item) => this.#notify(item),
      mayDeliver: () => this.#isDisposed || (this.persistence?.isSettled() ?? true),
    })
    this.#settings = {
      ...(store === undefined ? withoutStore(outbox) : withStore(outbox, (run) => this.#callBack(run, 'runner'))),
      ...{ clock, telemetry: options.telemetry },
      traces: options.telemetry && new WeakMap(),
      engine: options.engine ?? this.#createEngine(clock),
      abortGraceMs: options.abortGraceMs ?? 2000,
      commandTimeout: options.commandTimeout ?? 60_000,
    }
    const { batch } = this.#settings.outbox
    const inspect = toInspectFunction(options.inspect)
    this.#endClaim = instances.claim()
    let rows: readonly RestoredTask[] = []
    try {
      this.persistence =
        store &&
        new CommandPersistence({
          ...{ store, clock },
          report: (error) => this.#report(error, { source: 'store' }),
          onWritten: () => outbox.drain(),
        })
      rows = this.persistence?.takeTasks() ?? []
    } catch (error) {
      this.persistence?.close()
      this.#endClaim()
      throw error
    }
    this.#root = createActor(laneParentLogic, {
      id: 'command-tasks',
      clock: actorClock(clock, batch),
      ...(inspect && {
        inspect: (event) => outbox.push({ type: 'callback', run: () => inspect(event), source: 'inspector' }),
      }),
    })
    batch(() => this.#root.start())
    this.progress$ = this.#streamOf('task_progress')
    this.complete$ = this.#streamOf('task_complete')
    const { telemetry } = options
    this.#stopListening = [
      ...(telemetry === undefined ? [] : [telemetry.watch({ kind: 'command_task', counts: () => this.#counts() })]),
      // A handler that ran before this one may have connected another instance with the same id, and submitted to it.
      instances.onDisconnect((instanceId) => {
        const successor = instances.get(instanceId)
        this.#disconnect(instanceId, successor)
        if (successor === undefined) this.persistence?.removeWorker(instanceId)
      }),
      ...(this.persistence === undefined ? [] : [instances.onConnect((instanceId) => this.#adopt(instanceId))]),
    ]
    this.recovered = batch(() => this.#restore(rows, options.instanceGraceMs ?? INSTANCE_GRACE_MS))
  }

  /** Results that arrived after their command had been given up, or from a connection that was not asked. */
  get lateResults(): number {
    return this.#lateResults + this.#instances.lateAnswers
  }

  #noteTrace(task: CommandTask): void {
    const trace = this.#settings.telemetry?.current()
    if (trace !== undefined) this.#settings.traces?.set(task, trace)
  }

  #counts(): { running: number; queued: number } {
    const lanes = [...this.#lanes.values()]
    const running = lanes.filter(({ hasRunning }) => hasRunning).length
    return { running, queued: lanes.reduce((sum, { size }) => sum + size, 0) - running }
  }

  /** Whether it was disposed: it takes no more tasks. */
  get isDisposed(): boolean {
    return this.#isDisposed
  }

  /** How many tasks of each lane have not ended. */
  get laneDepths(): ReadonlyMap<string, number> {
    return new Map(Array.from(this.#lanes, ([instanceId, { size }]) => [instanceId, size]))
  }

  /**
   * Queues a task for the instance that it names, or for the first connected one.
   * @returns its id and its place among the tasks of the lane that have not ended (from 1); or why it was refused, and nothing was changed
   * @throws InvalidInputError for an unknown or wrong option
   */
  submitTask(message: TaskSubmitMessage, options: SubmitOptions = {}): SubmitResult {
    checkOptions(options, submitOptionTypes)
    if (this.#isDisposed) return refusal('NO_INSTANCE', 'The task manager was disposed.')
    const read = readSubmission(message)
    if ('error' in read) return read
    const { submission, instanceId } = read
    const { idempotencyKey: key } = options
    const known = key === undefined ? undefined : this.#keys.get(key)
    if (known?.request !== undefined) {
      return known.request.instanceId === instanceId && isSameSubmission(known.submitted, submission)
        ? { taskId: known.id, queuePosition: known.request.queuePosition }
        : refusal('IDEMPOTENCY_KEY_REUSED', 'This idempotency key was used for another task. Choose another key.')
    }
    const instance = instanceId === undefined ? this.#instances.first() : this.#instances.get(instanceId)
    if (instance === undefined) {
      return instanceId === undefined
        ? refusal('NO_INSTANCE', 'No instance is connected')
        : refusal(
            'INVALID_INSTANCE',
            instanceNotFound(
              instanceId,
              this.#instances.list().map(({ id }) => id),
            ),
          )
    }
    if (!instance.isConnected) return refusal('NOT_CONNECTED', `Instance not connected: ${instance.id}`)
    const depth = this.#lanes.get(instance.id)?.size ?? 0
    if (depth >= this.#maxQueueSize) return refusal('QUEUE_FULL', `Task queue is full (max ${this.#maxQueueSize})`)
    const { clock, outbox } = this.#settings
    const createdAt = clock.now()
    const place = this.#taskCount + 1
    const submitted: SubmittedTask = { id: `task_${createdAt}_${place.toString(36)}`, createdAt, ...submission }
    const { maxTaskBytes, maxBytes } = this.#budget.limits
    const mostBytes = this.persistence === undefined ? maxTaskBytes : Math.min(maxTaskBytes, MAX_ROW_BYTES)
    const bytes = jsonBytes(submitted, mostBytes)
    if (bytes > mostBytes) {
      return refusal('INVALID_TASK', `task: got ${bytes} or more bytes of JSON, expected at most ${mostBytes}.`)
    }
    if (!this.#budget.take(bytes)) {
      return refusal('QUEUE_FULL', `Task queue is full: the tasks that have not ended hold ${maxBytes} bytes`)
    }
    const request = key === undefined ? undefined : { key, instanceId, queuePosition: depth + 1 }
    try {
      this.persistence?.submit(queuedRow(submitted, { instanceId: instance.id, place, request }))
    } catch (error) {
      this.#budget.giveBack(bytes)
      this.#report(error, { source: 'store' })
      return refusal('NOT_STORED', 'The task could not be stored, and was not accepted. Try again later.')
    }
    this.#taskCount = place
    return outbox.batch(() => {
      const lane = this.#laneOf(instance.id)
      const task = this.#createTask(submitted, { instanceId: instance.id, place, instance, bytes, request })
      this.#keep(task)
      this.#noteTrace(task)
      lane.add(task)
      if (this.submitted$.observed) {
        outbox.push({ type: 'callback', run: () => this.submitted$.next(task.id), source: 'stream' })
      }
      return { taskId: task.id, queuePosition: lane.size }
    })
  }

  /** @internal Runs a task that a cluster has accepted, on an instance of this process. */
  run(submitted: SubmittedTask, place: number, instance: InstanceEntry): void {
    const bytes = jsonBytes(submitted)
    this.#budget.hold(bytes)
    this.#settings.outbox.batch(() => {
      const task = this.#createTask(submitted, { instanceId: instance.id, place, instance, bytes })
      this.#keep(task)
      this.#laneOf(instance.id).add(task)
    })
  }

  /**
   * Cancels a task that has not ended and aborts its command in flight. Returns false when it has ended or is unknown.
   * @param why the reason in words, for the error of the task
   */
  cancelTask(taskId: string, why?: string): boolean {
    const task = this.#tasks.get(taskId)
    if (task === undefined) return false
    return this.#settings.outbox.batch(() => {
      const isCancelled = this.#lanes.get(task.instanceId)?.cancel(task, why) ?? false
      // Stored before the abort, which happens also when that fails.
      if (isCancelled) this.persistence?.flush()
      return isCancelled
    })
  }

  /** A frozen snapshot of a task. */
  getTask(taskId: string): Task | undefined {
    return this.#tasks.get(taskId)?.record
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
    return this.#lanes.get(instanceId)?.isWaiting === true
  }

  /**
   * @internal Starts no further task: what is queued stays in the store, for the next process.
   * @returns false, with everything as it was, without a store
   */
  holdQueue(): boolean {
    this.#isHeld = this.persistence !== undefined
    return this.#isHeld
  }

  /** @internal What runs the commands. */
  get instances(): InstanceManager {
    return this.#instances
  }

  /** @internal The lanes that there are, each with the state of its machine. */
  get lanes(): readonly LaneStanding[] {
    return Array.from(this.#lanes, ([instanceId, { state, size, runningId }]) => ({
      instanceId,
      state,
      size,
      runningId,
    }))
  }

  /** @internal Whether a task has started and has not ended. */
  get hasRunning(): boolean {
    return [...this.#lanes.values()].some((lane) => lane.hasRunning)
  }

  /**
   * Snapshots of the tasks, newest first.
   * @param instanceId only the tasks of this instance. Default: all instances
   * @param status only the tasks with this status. Default `all`
   */
  listTasks(instanceId?: string, status: TaskStatus | 'all' = 'all'): Task[] {
    const tasks = Array.from(this.#tasks.values(), ({ record }) => record).reverse()
    return tasks.filter(
      (task) =>
        (instanceId === undefined || task.instanceId === instanceId) && (status === 'all' || task.status === status),
    )
  }

  /** Fails every task of an instance that has not ended. */
  handleInstanceDisconnect(instanceId: string): void {
    this.#disconnect(instanceId)
  }

  /**
   * Forgets tasks that ended longer ago than `maxAge`.
   * @param maxAge in ms; default `retentionMs`
   * @returns how many were forgotten
   * @throws InvalidInputError when `maxAge` is not a number; nothing was forgotten then
   */
  cleanupTasks(maxAge: number = this.#retentionMs): number {
    // Every task would be forgotten: no age is less than NaN.
    if (typeof maxAge !== 'number' || Number.isNaN(maxAge)) throw new InvalidInputError('maxAge', maxAge, 'a number')
    const cutoff = elapsedMs(this.#settings.clock) - maxAge
    let count = 0
    for (const [id, endedAt] of this.#endedAt) {
      if (endedAt >= cutoff) break
      this.#forget(id)
      count += 1
    }
    return count
  }

  /** Calls `handler` with each message. A handler that throws is reported and stops nothing. */
  on<E extends keyof TaskManagerEvents>(event: E, handler: (message: TaskManagerEvents[E]) => void): this {
    this.#handlers[event].add(handler)
    return this
  }

  /** Removes a handler. */
  off<E extends keyof TaskManagerEvents>(event: E, handler: (message: TaskManagerEvents[E]) => void): this {
    this.#handlers[event].delete(handler)
    return this
  }

  /**
   * Cancels all tasks that have not ended, and stops; with a store, those that are queued stay there for the next manager. Resolves when every
   * command has settled or its grace period has passed.
   */
  dispose(): Promise<void> {
    this.#disposal ??= new Promise((resolve) => {
      this.#isDisposed = true
      this.#stopListening.forEach((stop) => stop())
      clearLongTimeout(this.#settings.clock, this.#instanceGrace)
      const { outbox } = this.#settings
      const isKept = this.holdQueue()
      // Inside a handler, the messages of these cancellations are emitted later: the streams complete after them.
      outbox.batch(() => {
        for (const { id, hasStarted } of [...this.#tasks.values()]) {
          if (hasStarted || !isKept) this.cancelTask(id, 'the task manager was disposed')
        }
        this.persistence?.flush()
        outbox.push({ type: 'callback', run: () => resolve(this.#finish()), source: 'runner' })
      })
    })
    return this.#disposal
  }

  /** The same as `dispose()`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose()
  }

  async #finish(): Promise<void> {
    this.#messages$.complete()
    this.submitted$.complete()
    this.#handlers.progress.clear()
    this.#handlers.complete.clear()
    const { clock, outbox } = this.#settings
    if (this.#sweep !== undefined) clock.clearTimeout(this.#sweep)
    await Promise.all([...this.#lanes.values()].flatMap(({ settled }) => settled ?? []))
    outbox.batch(() => {
      for (const lane of [...this.#lanes.values()]) lane.close()
      this.#root.stop()
    })
    // Only now: a command that was aborted may have run until here.
    this.#endClaim()
    this.persistence?.close()
  }

  #streamOf<T extends 'task_progress' | 'task_complete'>(type: T) {
    type Message = Extract<TaskProgressMessage | TaskCompleteMessage, { type: T }>
    const messages$ = this.#messages$.pipe(filter((message): message is Message => message.type === type))
    return new IsolatedObservable<Message>(
      (error) => this.#report(error, { source: 'stream' }),
      (subscriber) => messages$.subscribe(subscriber),
    )
  }

  #createEngine(clock: Clock): Engine {
    return createInProcessEngine({
      clock,
      onError: (error, { id }) => this.#report(error, { source: 'abort-listener', taskId: id }),
    })
  }

  #laneOf(instanceId: string): Lane {
    let lane = this.#lanes.get(instanceId)
    if (lane === undefined) {
      lane = new Lane({
        instanceId,
        machine: this.#machines.lane,
        parent: this.#root,
        settings: this.#settings,
        isHeld: () => this.#isHeld,
        onClosed: () => this.#lanes.delete(instanceId),
      })
      this.#lanes.set(instanceId, lane)
    }
    return lane
  }

  #createTask(submitted: SubmittedTask, own: OwnTaskOptions): CommandTask {
    const { clock, outbox } = this.#settings
    const { persistence } = this
    return new CommandTask(submitted, {
      ...own,
      ref: own.restored?.completedAt === undefined ? this.#startActor(submitted) : undefined,
      budget: this.#budget,
      now: () => clock.now(),
      elapsed: () => elapsedMs(clock),
      emit: (message) => outbox.push(message),
      onChange: persistence && ((task, index) => persistence.note(task, index)),
    })
  }

  #startActor({ id, commands }: SubmittedTask): CommandTaskRef {
    const ref = createActor(this.#machines.task ?? commandTaskMachine, {
      id: `task.${id}`,
      input: { totalCommands: commands.length },
      parent: this.#root,
    })
    ref.start()
    return ref
  }

  #keep(task: CommandTask): void {
    this.#tasks.set(task.id, task)
    if (task.request !== undefined) this.#keys.set(task.request.key, task)
  }

  /** Takes over what an earlier process has stored. */
  #restore(rows: readonly RestoredTask[], instanceGraceMs: number): CommandRecovery {
    const { clock } = this.#settings
    const queued: string[] = []
    const interrupted: string[] = []
    const ended: CommandTask[] = []
    this.#taskCount = this.persistence?.lastPlace ?? 0
    for (const { task: restored, submitted, place, request } of rows) {
      const { instanceId } = restored
      const bytes = heldBytes(submitted, restored)
      const task = this.#createTask(submitted, { ...{ instanceId, place, bytes, request, restored } })
      this.#keep(task)
      if (task.hasEnded) ended.push(task)
      else this.#budget.hold(bytes)
      if (task.hasEnded || task.hasStarted) this.#continued.add(task.id)
      if (task.hasEnded) continue
      if (task.hasStarted) {
        interrupted.push(task.id)
        task.interrupt()
      } else {
        queued.push(task.id)
        this.#laneOf(instanceId).add(task)
      }
    }
    const endOf = ({ record }: CommandTask): number => record.completedAt ?? 0
    for (const task of ended.sort((a, b) => endOf(a) - endOf(b))) {
      this.#endedAt.set(task.id, elapsedMs(clock) - Math.max(0, clock.now() - endOf(task)))
      this.#budget.hold(task.bytes)
    }
    this.#budget.take(0)
    this.cleanupTasks()
    if (this.#endedAt.size > 0) this.#forgetOldest()
    for (const instanceId of this.#lanes.keys()) this.#adopt(instanceId)
    if (queued.length > 0) this.#awaitInstances(instanceGraceMs)
    return { queued, interrupted }
  }

  #awaitInstances(graceMs: number): void {
    const giveUp = (): void => {
      for (const [id, lane] of [...this.#lanes]) {
        lane.abandonWaiting(`Instance ${id} was not connected within ${graceMs} ms after the server had started again`)
      }
    }
    const label = { name: 'limit of the wait for instances', kind: 'deadline' } as const
    this.#instanceGrace = setLongTimeout(this.#settings.clock, giveUp, graceMs, label)
    unrefTimer(this.#instanceGrace.current)
  }

  #adopt(instanceId: string): void {
    const instance = this.#instances.get(instanceId)
    if (instance?.isConnected === true) this.#lanes.get(instanceId)?.adopt(instance)
  }

  /** @param successor the instance that has the id now: tasks that were submitted to it go on */
  #disconnect(instanceId: string, successor?: InstanceEntry): void {
    this.#lanes
      .get(instanceId)
      ?.disconnect(({ instance }) => (instance === undefined ? successor === undefined : instance !== successor))
  }

  #callBack(run: () => unknown, source: ErrorSource['source']): void {
    callIsolated(run, (error) => this.#report(error, { source }))
  }

  #notify(item: OutboxItem): void {
    // The store was given up: nobody hears of what it does not have.
    if (this.#isDisposed && this.persistence?.isPending === true && 'taskId' in item) return
    switch (item.type) {
      case 'callback':
        this.#callBack(item.run, item.source)
        break
      case 'late_result':
        this.#countLate(item.taskId)
        break
      case 'task_progress':
        this.#messages$.next(item)
        this.#callHandlers(this.#handlers.progress, item)
        break
      case 'task_complete': {
        // Only now: listeners of its complete can still look a task up.
        if (this.#tasks.has(item.taskId)) this.#endedAt.set(item.taskId, elapsedMs(this.#settings.clock))
        this.#messages$.next(item)
        this.#callHandlers(this.#handlers.complete, item)
        this.#forgetOldest()
      }
    }
  }

  #callHandlers<M extends { readonly taskId: string }>(handlers: Set<(message: M) => void>, message: M): void {
    for (const handler of [...handlers]) {
      if (!handlers.has(handler)) continue
      callIsolated(
        (): unknown => handler(message),
        (error) => this.#report(error, { source: 'handler', taskId: message.taskId }),
      )
    }
  }

  #forgetOldest(): void {
    for (const id of this.#endedAt.keys()) {
      if (this.#endedAt.size <= this.#maxRetained) break
      this.#forget(id)
    }
    if (this.#sweep !== undefined || this.#isDisposed) return
    this.#sweep = this.#settings.clock.setTimeout(
      () => {
        this.#sweep = undefined
        this.cleanupTasks()
        if (this.#endedAt.size > 0) this.#forgetOldest()
      },
      Math.max(1000, Math.min(HOUR_MS, this.#retentionMs)),
      { name: 'removal of old command tasks', kind: 'deadline' },
    )
    unrefTimer(this.#sweep)
  }

  /** Returns false when no task has ended. */
  #forgetFirst(): boolean {
    for (const id of this.#endedAt.keys()) {
      this.#forget(id)
      return true
    }
    return false
  }

  #forget(id: string): void {
    const task = this.#tasks.get(id)
    this.#endedAt.delete(id)
    this.#continued.delete(id)
    if (task === undefined) return
    this.#budget.giveBack(task.bytes)
    this.#tasks.delete(id)
    if (task.request !== undefined) this.#keys.delete(task.request.key)
    this.persistence?.forget(task)
  }

  #countLate(taskId: string): void {
    this.#lateResults += 1
    if (!this.#isDisposed) {
      this.#report(new Error(`A result of task ${taskId} came too late: dropped.`), { source: 'late-result', taskId })
    }
  }
}

/** @internal How a lane stands. */
export interface LaneStanding {
  readonly instanceId: string
  /** The state of its machine. */
  readonly state: string
  /** How many tasks have not ended. */
  readonly size: number
  /** The task that runs. */
  readonly runningId: string | undefined
}

type OwnTaskOptions = Pick<CommandTaskOptions, 'instanceId' | 'place' | 'instance' | 'bytes' | 'request' | 'restored'>

type Delivery = Pick<CommandSettings, 'outbox' | 'whenStored' | 'abort'>

/** Aborts are the host's code, and are called in the order of what is notified. */
const withoutStore = (outbox: Outbox<OutboxItem>): Delivery => ({
  outbox,
  whenStored: (run) => run(),
  abort: (run) => outbox.push({ type: 'callback', run, source: 'runner' }),
})

/** What is notified waits until it is stored; an abort only for the end of the change. */
function withStore(outbox: Outbox<OutboxItem>, call: (run: () => void) => void): Delivery {
  const aborts = createOutbox<() => void>({ notify: call })
  return {
    outbox: { ...outbox, batch: (change) => outbox.batch(() => aborts.batch(change)) },
    whenStored: (run) => outbox.push({ type: 'callback', run, source: 'runner' }),
    abort: aborts.push,
  }
}
