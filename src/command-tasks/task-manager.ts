/**
 * Command tasks: takes them, runs them in their instances' lanes, keeps them for a while, and tells of each step (seed 004).
 *
 * It is longer than most files because the seed's class has that many methods.
 */
import { Subject, type Observable } from 'rxjs'
import type { Outcome, Engine } from '../engine/engine.js'
import { createInProcessEngine } from '../engine/in-process.js'
import { callIsolated } from '../callbacks/isolated-call.js'
import { toInspectFunction, type Inspect } from '../callbacks/inspection.js'
import { createOutbox, type Outbox } from '../callbacks/outbox.js'
import { systemClock, type Clock } from '../clock.js'
import { InvalidInputError } from '../errors.js'
import { isolateReport, reportToConsole, type ErrorSource, type OnError } from '../callbacks/error-report.js'
import { IsolatedObservable } from '../callbacks/isolated-observable.js'
import type { InstanceManager } from '../instances/instance-manager.js'
import { performCommand } from '../instances/mcp-request.js'
import { checkLeast } from '../protocol/option-checks.js'
import { describeIssue } from '../protocol/parse.js'
import { toPlainData } from '../protocol/plain-data.js'
import { preview } from '../preview.js'
import type {
  SubmitErrorCode,
  Task,
  TaskCompleteMessage,
  TaskProgressMessage,
  TaskStatus,
} from '../protocol/command-tasks.js'
import { taskSubmitSchema, type TaskSubmitMessage } from '../protocol/task-submission.js'
import { createLanes, type CommandTaskMachines, type Lanes, type TaskEntry } from './lanes.js'

/** Options of `TaskManager`. All durations in ms. */
export interface TaskManagerOptions {
  /** What runs the commands. */
  readonly instances: InstanceManager
  /** The longest a command may take, in ms. Default 60000. */
  readonly commandTimeout?: number
  /** The most tasks of one instance that have not ended. 0 accepts nothing. Default 100. */
  readonly maxQueueSize?: number
  /** How long an aborted command holds its lane, in ms. Default 2000. */
  readonly abortGraceMs?: number
  /** How long an ended task is kept, in ms. Default 3600000. */
  readonly retentionMs?: number
  /** How many ended tasks are kept. Default 1000. */
  readonly maxRetained?: number
  /** Default: the platform's. */
  readonly clock?: Clock
  /** Where calls are started. Default: in this process. */
  readonly engine?: Engine
  /** Told of exceptions in listeners and of results that came too late. Default: `console.error`. */
  readonly onError?: OnError
  /** The charts to run, with implementations provided by `machine.provide`. */
  readonly machines?: CommandTaskMachines
  /** Sees what lanes and tasks do (XState's inspection events), after the fact. Default: nobody, which costs nothing. */
  readonly inspect?: Inspect | undefined
}

/** What a submit answers. */
export type SubmitResult =
  | { readonly taskId: string; readonly queuePosition: number }
  | { readonly error: string; readonly code: SubmitErrorCode }

/** The events of `TaskManager` and what they carry. */
export interface TaskManagerEvents {
  /** A command has started, reported or ended. */
  readonly progress: TaskProgressMessage
  /** A task has ended: told once. */
  readonly complete: TaskCompleteMessage
}

type Handlers = { readonly [E in keyof TaskManagerEvents]: Set<(message: TaskManagerEvents[E]) => void> }

type Item =
  { readonly run: () => unknown; readonly source: ErrorSource['source'] } | TaskProgressMessage | TaskCompleteMessage

const HOUR_MS = 3_600_000

/** Takes command tasks, runs them in their instances' lanes, and tells of each step (seed 004). */
export class TaskManager {
  /** Each step of each command. */
  readonly progress$: Observable<TaskProgressMessage>
  /** Each task once, when it has ended. */
  readonly complete$: Observable<TaskCompleteMessage>
  readonly #instances: InstanceManager
  readonly #clock: Clock
  readonly #report: OnError
  readonly #lanes: Lanes
  readonly #outbox: Outbox<Item>
  readonly #handlers: Handlers = { progress: new Set(), complete: new Set() }
  readonly #told$ = new Subject<TaskProgressMessage | TaskCompleteMessage>()
  readonly #entries = new Map<string, TaskEntry>()
  /** Ended tasks in the order in which they ended. */
  readonly #ended = new Map<string, TaskEntry>()
  readonly #maxQueueSize: number
  readonly #retentionMs: number
  readonly #maxRetained: number
  #sweep: unknown
  #taskCount = 0
  #lateResults = 0
  #isDisposed = false
  #disposal: Promise<void> | undefined
  #stopListening: () => void

  /** @throws InvalidSettingError for an option out of its range */
  constructor(options: TaskManagerOptions) {
    this.#instances = options.instances
    this.#clock = options.clock ?? systemClock
    this.#report = isolateReport(options.onError ?? reportToConsole)
    this.#maxQueueSize = checkLeast('maxQueueSize', options.maxQueueSize ?? 100, 0)
    this.#retentionMs = checkLeast('retentionMs', options.retentionMs ?? HOUR_MS, 0)
    this.#maxRetained = checkLeast('maxRetained', options.maxRetained ?? 1000, 0)
    this.#outbox = createOutbox({ notify: (item) => this.#tell(item) })
    const clock = this.#clock
    const inspect = toInspectFunction(options.inspect)
    this.#lanes = createLanes({
      clock,
      engine:
        options.engine ??
        createInProcessEngine({
          clock,
          onError: (error, { id }) => this.#report(error, { source: 'abort-listener', taskId: id }),
        }),
      abortGraceMs: checkLeast('abortGraceMs', options.abortGraceMs ?? 2000, 0),
      commandTimeout: checkLeast('commandTimeout', options.commandTimeout ?? 60_000, 1),
      transact: (change) => this.#outbox.batch(change),
      defer: (run) => this.#outbox.push({ run, source: 'runner' }),
      onProgress: (message) => this.#outbox.push(message),
      onComplete: (message) => this.#outbox.push(message),
      onLateResult: (taskId, outcome) => this.#noteLate(taskId, outcome),
      machines: options.machines,
      onInspected: inspect && ((event) => this.#outbox.push({ run: () => inspect(event), source: 'inspector' })),
      perform: (task, index, context) => performCommand(this.#instances, task, index, context),
    })
    const report = (error: unknown): void => this.#report(error, { source: 'stream' })
    const stream = <T extends 'task_progress' | 'task_complete'>(type: T) =>
      new IsolatedObservable<Extract<TaskProgressMessage | TaskCompleteMessage, { type: T }>>(report, (subscriber) =>
        this.#told$.subscribe({
          next: (message) => {
            if (message.type === type) subscriber.next(message as Extract<typeof message, { type: T }>)
          },
          complete: () => subscriber.complete(),
        }),
      )
    this.progress$ = stream('task_progress')
    this.complete$ = stream('task_complete')
    // Who was told before may have connected a successor, and submitted to that.
    this.#stopListening = this.#instances.onDisconnect((instanceId) =>
      this.handleInstanceDisconnect(instanceId, this.#instances.get(instanceId)?.serial),
    )
  }

  /** Results that came after their call had been given up, or from a connection that was not asked (S4). */
  get lateResults(): number {
    return this.#lateResults + this.#instances.lateAnswers
  }

  /** How many tasks each lane has that have not ended. */
  get laneDepths(): ReadonlyMap<string, number> {
    return this.#lanes.depths()
  }

  /**
   * Queues a task for an instance: the one it names, or the first that is connected.
   * @returns its id and its place among the tasks of the lane that have not ended (from 1), or why not; nothing was changed then
   */
  submitTask(message: TaskSubmitMessage): SubmitResult {
    if (this.#isDisposed) return refusal('NO_INSTANCE', 'The task manager was disposed.')
    const parsed = taskSubmitSchema().safeParse(message)
    if (!parsed.success) {
      const { field, received, expected } = describeIssue(parsed.error, message, 'task')
      return refusal('INVALID_TASK', `${field}: got ${preview(received)}, expected ${expected}.`)
    }
    const { task_name, task_intention, commands, metadata, instanceId: named } = parsed.data
    if (commands.length === 0) return refusal('NO_COMMANDS', 'Task must have at least one command')
    const instance = named === undefined ? this.#instances.first() : this.#instances.get(named)
    if (instance === undefined) {
      return named === undefined
        ? refusal('NO_INSTANCE', 'No instance is connected')
        : refusal('INVALID_INSTANCE', `Instance not found: ${named}`)
    }
    if (!instance.isConnected) return refusal('NOT_CONNECTED', `Instance not connected: ${instance.id}`)
    if (this.#lanes.liveCount(instance.id) >= this.#maxQueueSize) {
      return refusal('QUEUE_FULL', `Task queue is full (max ${this.#maxQueueSize})`)
    }
    const now = this.#clock.now()
    const place = (this.#taskCount += 1)
    const task: Task = Object.freeze({
      id: `task_${now}_${place.toString(36)}`,
      instanceId: instance.id,
      name: task_name,
      intention: task_intention,
      commands: commands.map(({ args, ...command }, index) =>
        Object.freeze({ id: `cmd_${index + 1}`, status: 'pending' as const, ...command, args: plainRecord(args) }),
      ),
      status: 'queued',
      currentCommandIndex: 0,
      createdAt: now,
      ...(metadata !== undefined && { metadata: plainRecord(metadata) }),
    })
    const { wake } = this.#outbox.batch(() => {
      const added = this.#lanes.add(task, place, instance.serial)
      this.#entries.set(task.id, added.entry)
      return added
    })
    // Whoever submits subscribes before the first event (S7).
    queueMicrotask(wake)
    return { taskId: task.id, queuePosition: this.#lanes.liveCount(instance.id) }
  }

  /** Ends a task that has not ended; a command in flight is aborted. False when it had ended or is unknown. */
  cancelTask(taskId: string): boolean {
    const entry = this.#entries.get(taskId)
    return entry !== undefined && this.#lanes.cancel(entry)
  }

  /** A frozen snapshot. */
  getTask(taskId: string): Task | undefined {
    return this.#entries.get(taskId)?.task
  }

  /** A task's place in the order of submission, from 1; no two tasks share one. Undefined for a task that is not known. */
  placeOf(taskId: string): number | undefined {
    return this.#entries.get(taskId)?.place
  }

  /** In the order of submission. */
  listTasks(instanceId?: string, status?: TaskStatus): Task[] {
    const tasks = Array.from(this.#entries.values(), ({ task }) => task)
    return tasks.filter(
      (task) =>
        (instanceId === undefined || task.instanceId === instanceId) &&
        (status === undefined || task.status === status),
    )
  }

  /**
   * Fails every task of an instance that has not ended.
   * @param successor `InstanceEntry.serial` of the instance that bears the id now: what was submitted to that goes on
   */
  handleInstanceDisconnect(instanceId: string, successor?: number): void {
    this.#lanes.disconnect(instanceId, ({ instanceSerial }) => instanceSerial !== successor)
  }

  /**
   * Forgets tasks that ended long ago.
   * @param maxAge in ms; default `retentionMs`
   * @returns how many
   * @throws InvalidInputError for what is no number; nothing was forgotten then
   */
  cleanupTasks(maxAge: number = this.#retentionMs): number {
    // No age is older than NaN and none is younger: every task would go.
    if (typeof maxAge !== 'number' || Number.isNaN(maxAge)) throw new InvalidInputError('maxAge', maxAge, 'a number')
    const cutoff = this.#clock.now() - maxAge
    let count = 0
    for (const [id, { task }] of this.#ended) {
      if ((task.completedAt ?? 0) >= cutoff) break
      this.#forget(id)
      count += 1
    }
    return count
  }

  /** Calls `handler` for each message; one that throws is reported and stops nobody (S6). */
  on<E extends keyof TaskManagerEvents>(event: E, handler: (message: TaskManagerEvents[E]) => void): this {
    this.#handlers[event].add(handler)
    return this
  }

  /** Takes a handler back. */
  off<E extends keyof TaskManagerEvents>(event: E, handler: (message: TaskManagerEvents[E]) => void): this {
    this.#handlers[event].delete(handler)
    return this
  }

  /** Cancels what has not ended, tells it, and stops; resolves when every call has settled or its grace has passed. */
  dispose(): Promise<void> {
    this.#disposal ??= new Promise((resolve) => {
      this.#isDisposed = true
      this.#stopListening()
      // From inside a handler, what is cancelled now is told later: the streams end after that.
      this.#outbox.batch(() => {
        for (const { task } of [...this.#entries.values()]) this.cancelTask(task.id)
        this.#outbox.push({ run: () => resolve(this.#finish()), source: 'runner' })
      })
    })
    return this.#disposal
  }

  async #finish(): Promise<void> {
    this.#told$.complete()
    this.#handlers.progress.clear()
    this.#handlers.complete.clear()
    if (this.#sweep !== undefined) this.#clock.clearTimeout(this.#sweep)
    await Promise.all(this.#lanes.calls())
    this.#outbox.batch(() => this.#lanes.stop())
  }

  #tell(item: Item): void {
    if ('run' in item) {
      callIsolated(item.run, (error) => this.#report(error, { source: item.source }))
      return
    }
    const { taskId } = item
    const entry = item.type === 'task_complete' ? this.#entries.get(taskId) : undefined
    // What has not been told is not old yet.
    if (entry !== undefined) this.#ended.set(taskId, entry)
    this.#told$.next(item)
    const handlers = item.type === 'task_progress' ? this.#handlers.progress : this.#handlers.complete
    for (const handler of [...handlers] as ((message: typeof item) => unknown)[]) {
      if (!handlers.has(handler)) continue
      callIsolated(
        () => handler(item),
        (error) => this.#report(error, { source: 'handler', taskId }),
      )
    }
    if (item.type === 'task_complete') this.#bound()
  }

  #bound(): void {
    for (const id of this.#ended.keys()) {
      if (this.#ended.size <= this.#maxRetained) break
      this.#forget(id)
    }
    if (this.#sweep !== undefined || this.#isDisposed) return
    this.#sweep = this.#clock.setTimeout(
      () => {
        this.#sweep = undefined
        this.cleanupTasks()
        if (this.#ended.size > 0) this.#bound()
      },
      Math.max(1000, Math.min(HOUR_MS, this.#retentionMs)),
    )
    // Forgetting keeps no process alive.
    const timer = this.#sweep as { unref?: () => void } | undefined
    timer?.unref?.()
  }

  #forget(id: string): void {
    this.#ended.delete(id)
    this.#entries.delete(id)
  }

  #noteLate(taskId: string, outcome: Outcome): void {
    if (outcome.type !== 'returned') return
    this.#lateResults += 1
    if (!this.#isDisposed) {
      this.#report(new Error(`A result of task ${taskId} came too late: dropped.`), { source: 'late-result', taskId })
    }
  }
}

const refusal = (code: SubmitErrorCode, error: string): SubmitResult => ({ code, error })

/** A copy that neither the submitter nor a tool can change. */
const plainRecord = (value: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  toPlainData(value) as Record<string, unknown>
