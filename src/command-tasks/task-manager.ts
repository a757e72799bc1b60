/**
 * Takes command tasks, runs them in the lanes of their instances, keeps them for a while, and emits each step.
 *
 * It is longer than most files because the class has that many public methods.
 */
import { filter, Subject, type Observable } from 'rxjs'
import { createActor } from 'xstate'
import { commandTaskMachine, type CommandTaskMachine } from '../../machines/command-task.js'
import type { LaneMachine } from '../../machines/lane.js'
import { isolateReport, reportToConsole, type OnError } from '../callbacks/error-report.js'
import { toInspectFunction, type Inspect } from '../callbacks/inspection.js'
import { callIsolated } from '../callbacks/isolated-call.js'
import { IsolatedObservable } from '../callbacks/isolated-observable.js'
import { createOutbox } from '../callbacks/outbox.js'
import { actorClock, elapsedMs, systemClock, type Clock } from '../clock.js'
import type { Engine } from '../engine/engine.js'
import { createInProcessEngine } from '../engine/in-process.js'
import { InvalidInputError } from '../errors.js'
import type { InstanceEntry, InstanceManager } from '../instances/instance-manager.js'
import { preview } from '../preview.js'
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
import { describeIssue } from '../protocol/parse.js'
import { MAX_LEVELS, toWholePlainData } from '../protocol/plain-data.js'
import { taskSubmitSchema, type TaskSubmitMessage } from '../protocol/task-submission.js'
import type { CommandSettings, OutboxItem } from './command-run.js'
import { CommandTask, type CommandTaskOptions, type SubmittedTask } from './command-task.js'
import { ByteBudget, DEFAULT_BYTE_LIMITS } from './task-bytes.js'
import { Lane, laneParentLogic, type LaneParentRef } from './lane.js'

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
  /** Default: the platform's clock. */
  readonly clock?: Clock
  /** Starts the commands. Default: in this process. */
  readonly engine?: Engine
  /** Called with exceptions of listeners and with results that came too late. Default: `console.error`. */
  readonly onError?: OnError
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
  clock: aClock,
  engine: anEngine,
  onError: aFunction,
  machines: optionsOf<CommandTaskMachines>({ lane: aMachine, task: aMachine }),
  inspect: anInspector,
}

/** The result of `submitTask`. */
export type SubmitResult =
  | { readonly taskId: string; readonly queuePosition: number }
  | { readonly error: string; readonly code: SubmitErrorCode }

/** The events of `TaskManager`. */
export interface TaskManagerEvents {
  /** A command has started, reported progress or ended. */
  readonly progress: TaskProgressMessage
  /** A task has ended; emitted once for each task. */
  readonly complete: TaskCompleteMessage
}

type Handlers = { readonly [E in keyof TaskManagerEvents]: Set<(message: TaskManagerEvents[E]) => void> }

const HOUR_MS = 3_600_000

/** Takes command tasks, runs them in the lanes of their instances, and emits each step. */
export class TaskManager {
  /** Each step of each command. */
  readonly progress$: Observable<TaskProgressMessage>
  /** Each task once, when it has ended. */
  readonly complete$: Observable<TaskCompleteMessage>
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
  readonly #stopListening: () => void
  readonly #endClaim: () => void
  #sweep: unknown
  #taskCount = 0
  #lateResults = 0
  #isDisposed = false
  #disposal: Promise<void> | undefined

  /**
   * @throws InvalidSettingError for a number out of its range; InvalidInputError for an unknown or wrong option; AgentTasksError `INSTANCES_IN_USE`
   *   when another manager has the instances
   */
  constructor(options: TaskManagerOptions) {
    checkOptions(options, optionTypes)
    const { instances, clock = systemClock, machines = {} } = options
    this.#instances = instances
    this.#report = isolateReport(options.onError ?? reportToConsole)
    this.#machines = machines
    this.#maxQueueSize = options.maxQueueSize ?? 100
    this.#retentionMs = options.retentionMs ?? HOUR_MS
    this.#maxRetained = options.maxRetained ?? 1000
    this.#budget = new ByteBudget(
      {
        maxResultBytes: options.maxResultBytes ?? DEFAULT_BYTE_LIMITS.maxResultBytes,
        maxTaskBytes: options.maxTaskBytes ?? DEFAULT_BYTE_LIMITS.maxTaskBytes,
        maxBytes: options.maxBytes ?? DEFAULT_BYTE_LIMITS.maxBytes,
      },
      () => this.#forgetFirst(),
    )
    const outbox = createOutbox<OutboxItem>({ notify: (item) => this.#notify(item) })
    this.#settings = {
      clock,
      engine: options.engine ?? this.#createEngine(clock),
      outbox,
      abortGraceMs: options.abortGraceMs ?? 2000,
      commandTimeout: options.commandTimeout ?? 60_000,
    }
    const inspect = toInspectFunction(options.inspect)
    this.#endClaim = instances.claim()
    this.#root = createActor(laneParentLogic, {
      id: 'command-tasks',
      clock: actorClock(clock, (run) => outbox.batch(run)),
      ...(inspect && {
        inspect: (event) => outbox.push({ type: 'callback', run: () => inspect(event), source: 'inspector' }),
      }),
    })
    outbox.batch(() => this.#root.start())
    this.progress$ = this.#streamOf('task_progress')
    this.complete$ = this.#streamOf('task_complete')
    // A handler that ran before this one may have connected another instance with the same id, and submitted to it.
    this.#stopListening = instances.onDisconnect((instanceId) =>
      this.#disconnect(instanceId, instances.get(instanceId)),
    )
  }

  /** Results that arrived after their command had been given up, or from a connection that was not asked. */
  get lateResults(): number {
    return this.#lateResults + this.#instances.lateAnswers
  }

  /** How many tasks of each lane have not ended. */
  get laneDepths(): ReadonlyMap<string, number> {
    return new Map(Array.from(this.#lanes, ([instanceId, { size }]) => [instanceId, size]))
  }

  /**
   * Queues a task for the instance that it names, or for the first connected one.
   * @returns its id and its place among the tasks of the lane that have not ended (from 1); or why it was refused, and nothing was changed
   */
  submitTask(message: TaskSubmitMessage): SubmitResult {
    if (this.#isDisposed) return refusal('NO_INSTANCE', 'The task manager was disposed.')
    const parsed = taskSubmitSchema().safeParse(message)
    if (!parsed.success) {
      const { field, received, expected } = describeIssue(parsed.error, message, 'task')
      return refusal('INVALID_TASK', `${field}: got ${preview(received)}, expected ${expected}.`)
    }
    const { task_name, task_intention, commands, metadata, instanceId } = parsed.data
    if (commands.length === 0) return refusal('NO_COMMANDS', 'Task must have at least one command')
    // Copying may call code of the submitter: the queue is looked at afterwards.
    const copies = commands.map((command) => toWholePlainData(command.args))
    const metadataCopy = metadata && toWholePlainData(metadata)
    if (copies.includes(undefined)) return tooDeep(`task.commands[${copies.indexOf(undefined)}].args`)
    if (metadataCopy === undefined && metadata !== undefined) return tooDeep('task.metadata')
    const { clock, outbox } = this.#settings
    const instance = instanceId === undefined ? this.#instances.first() : this.#instances.get(instanceId)
    if (instance === undefined) {
      return instanceId === undefined
        ? refusal('NO_INSTANCE', 'No instance is connected')
        : refusal('INVALID_INSTANCE', `Instance not found: ${instanceId}`)
    }
    if (!instance.isConnected) return refusal('NOT_CONNECTED', `Instance not connected: ${instance.id}`)
    if ((this.#lanes.get(instance.id)?.size ?? 0) >= this.#maxQueueSize) {
      return refusal('QUEUE_FULL', `Task queue is full (max ${this.#maxQueueSize})`)
    }
    const createdAt = clock.now()
    const place = this.#taskCount + 1
    const submitted: SubmittedTask = {
      id: `task_${createdAt}_${place.toString(36)}`,
      name: task_name,
      intention: task_intention,
      commands: commands.map((command, index) =>
        Object.freeze({
          id: `cmd_${index + 1}`,
          status: 'pending' as const,
          ...command,
          args: copies[index] ?? {},
        }),
      ),
      createdAt,
      ...(metadataCopy !== undefined && { metadata: metadataCopy }),
    }
    const { maxTaskBytes, maxBytes } = this.#budget.limits
    const bytes = jsonBytes(submitted, maxTaskBytes)
    if (bytes > maxTaskBytes) {
      return refusal('INVALID_TASK', `task: got ${bytes} or more bytes of JSON, expected at most ${maxTaskBytes}.`)
    }
    if (!this.#budget.take(bytes)) {
      return refusal('QUEUE_FULL', `Task queue is full: the tasks that have not ended hold ${maxBytes} bytes`)
    }
    this.#taskCount = place
    return outbox.batch(() => {
      const lane = this.#laneOf(instance.id)
      const task = this.#createTask(submitted, { place, instance, bytes })
      this.#tasks.set(task.id, task)
      lane.add(task)
      return { taskId: task.id, queuePosition: lane.size }
    })
  }

  /**
   * Cancels a task that has not ended and aborts its command in flight. Returns false when it has ended or is unknown.
   * @param why the reason in words, for the error of the task
   */
  cancelTask(taskId: string, why?: string): boolean {
    const task = this.#tasks.get(taskId)
    return task !== undefined && (this.#lanes.get(task.instanceId)?.cancel(task, why) ?? false)
  }

  /** A frozen snapshot of a task. */
  getTask(taskId: string): Task | undefined {
    return this.#tasks.get(taskId)?.record
  }

  /** A task's number in the order of submission, from 1; undefined for an unknown task. */
  placeOf(taskId: string): number | undefined {
    return this.#tasks.get(taskId)?.place
  }

  /** Snapshots of the tasks, in the order of submission. */
  listTasks(instanceId?: string, status?: TaskStatus): Task[] {
    const tasks = Array.from(this.#tasks.values(), ({ record }) => record)
    return tasks.filter(
      (task) =>
        (instanceId === undefined || task.instanceId === instanceId) &&
        (status === undefined || task.status === status),
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

  /** Cancels all tasks that have not ended, and stops. Resolves when every command has settled or its grace period has passed. */
  dispose(): Promise<void> {
    this.#disposal ??= new Promise((resolve) => {
      this.#isDisposed = true
      this.#stopListening()
      const { outbox } = this.#settings
      // Inside a handler, the messages of these cancellations are emitted later: the streams complete after them.
      outbox.batch(() => {
        for (const id of [...this.#tasks.keys()]) this.cancelTask(id, 'the task manager was disposed')
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
        onClosed: () => this.#lanes.delete(instanceId),
      })
      this.#lanes.set(instanceId, lane)
    }
    return lane
  }

  #createTask(submitted: SubmittedTask, own: Pick<CommandTaskOptions, 'place' | 'instance' | 'bytes'>): CommandTask {
    const { clock, outbox } = this.#settings
    const ref = createActor(this.#machines.task ?? commandTaskMachine, {
      id: `task.${submitted.id}`,
      input: { totalCommands: submitted.commands.length },
      parent: this.#root,
    })
    ref.start()
    return new CommandTask(submitted, {
      ...own,
      ref,
      budget: this.#budget,
      now: () => clock.now(),
      elapsed: () => elapsedMs(clock),
      emit: (message) => outbox.push(message),
    })
  }

  /** @param successor the instance that has the id now: tasks that were submitted to it go on */
  #disconnect(instanceId: string, successor?: InstanceEntry): void {
    this.#lanes.get(instanceId)?.disconnect(({ instance }) => instance !== successor)
  }

  #notify(item: OutboxItem): void {
    switch (item.type) {
      case 'callback':
        callIsolated(item.run, (error) => this.#report(error, { source: item.source }))
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
    )
    // This timer keeps no process alive.
    const timer = this.#sweep as { unref?: () => void } | undefined
    timer?.unref?.()
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
    this.#budget.giveBack(this.#tasks.get(id)?.bytes ?? 0)
    this.#endedAt.delete(id)
    this.#tasks.delete(id)
  }

  #countLate(taskId: string): void {
    this.#lateResults += 1
    if (!this.#isDisposed) {
      this.#report(new Error(`A result of task ${taskId} came too late: dropped.`), { source: 'late-result', taskId })
    }
  }
}

const refusal = (code: SubmitErrorCode, error: string): SubmitResult => ({ code, error })

/** Parts of it would be lost. */
const tooDeep = (field: string): SubmitResult =>
  refusal('INVALID_TASK', `${field}: got a value that is nested deeper, expected at most ${MAX_LEVELS} levels.`)
