/** One command task: its record, its state machine (`machines/command-task.ts`) and the messages about it (promises S1 and S2). */
import type { TraceContext } from '../protocol/telemetry.js'
import type { CommandFailure, CommandTaskEvent, CommandTaskRef } from '../../machines/command-task.js'
import type { TaskProgress } from '../../machines/records.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { InstanceEntry } from './instances/instance-manager.js'
import type { Task, TaskCommand, TaskCompleteMessage, TaskProgressMessage } from '../protocol/command-tasks.js'
import { resultBytes, type TaskBudget } from './task-bytes.js'
import { completeMessage, progressMessage, type LiveTask, type TaskEnd } from './task-record.js'

export type SubmittedTask = Pick<LiveTask, 'id' | 'name' | 'intention' | 'commands' | 'createdAt' | 'metadata'>

/** A submission with an idempotency key. A repeated request receives the same answer. */
export interface SubmitRequest {
  /** The client together with its idempotency key. */
  readonly key: string
  /** The instance that the client named. */
  readonly instanceId?: string | undefined
  /** The position in the queue that the client received as answer. */
  readonly queuePosition: number
}

/** Where a task comes from, and the instance that runs it. */
export interface CommandTaskOrigin {
  /** The number of the task in the order of submission, from 1. */
  readonly place: number
  readonly instanceId: string
  /** The connection of the instance at submission, because another instance may use the same id later. Undefined for a task of an earlier process. */
  readonly instance?: InstanceEntry | undefined
  /** The state that an earlier process has stored. */
  readonly restored?: Task | undefined
  /** The request that submitted the task, if it has an idempotency key. */
  readonly request?: SubmitRequest | undefined
  /** The size of the submission in bytes of JSON. It counts toward the byte limits. */
  readonly bytes: number
}

export interface CommandTaskHost {
  readonly budget: TaskBudget
  /** The time of day, in ms since the epoch. */
  now(): number
  /** A monotonic time, in ms. */
  elapsed(): number
  emit(message: TaskProgressMessage | TaskCompleteMessage): void
  /** Called after a change of the task. If `index` is given, the command with this index has ended. */
  onChange(task: CommandTask, index?: number): void
}

export class CommandTask {
  readonly id: string
  readonly instanceId: string
  readonly place: number
  /** The task at its submission, when all commands were pending. */
  readonly submitted: SubmittedTask
  readonly request: SubmitRequest | undefined
  /** The span of the first command. */
  trace: TraceContext | undefined
  readonly #host: CommandTaskHost
  /** Each command is frozen. A change replaces it with a new object. */
  readonly #commands: TaskCommand[]
  /** Undefined after the end of the task. Ended tasks are kept for a while, and the actor would need more memory than the rest of the task. */
  #ref: CommandTaskRef | undefined
  #bytes: number
  #instance: InstanceEntry | undefined
  #startedAt: number | undefined
  #startedElapsed = 0
  #end: TaskEnd | undefined
  #currentCommandIndex = 0
  #record: Task | undefined

  /** @param ref the actor of the task; undefined for a task that ended in an earlier process */
  constructor(
    submitted: SubmittedTask,
    origin: CommandTaskOrigin,
    ref: CommandTaskRef | undefined,
    host: CommandTaskHost,
  ) {
    const { restored } = origin
    this.id = submitted.id
    this.instanceId = origin.instanceId
    this.place = origin.place
    this.submitted = submitted
    this.request = origin.request
    this.#host = host
    this.#commands = (restored?.commands ?? submitted.commands).slice()
    this.#ref = ref
    this.#bytes = origin.bytes
    this.#instance = origin.instance
    if (restored !== undefined) this.#restore(restored)
  }

  /** The instance that runs the task. Undefined while a task of an earlier process waits for its instance to connect. */
  get instance(): InstanceEntry | undefined {
    return this.#instance
  }

  get hasStarted(): boolean {
    return this.#startedAt !== undefined
  }

  get commands(): readonly TaskCommand[] {
    return this.#commands
  }

  /** The size of the task with its results, in bytes of JSON. */
  get bytes(): number {
    return this.#bytes
  }

  get hasEnded(): boolean {
    return this.#end !== undefined
  }

  /** A frozen snapshot of the task. */
  get record(): Task {
    this.#record ??= Object.freeze({
      ...this.submitted,
      instanceId: this.instanceId,
      commands: Object.freeze([...this.#commands]) as TaskCommand[],
      currentCommandIndex: this.#currentCommandIndex,
      ...omitUndefined({ startedAt: this.#startedAt }),
      ...(this.#end ?? { status: this.#startedAt === undefined ? 'queued' : 'running' }),
    } as Task)
    return this.#record
  }

  startCommand(): { readonly index: number; readonly command: TaskCommand } {
    const now = this.#host.now()
    if (this.#startedAt === undefined) {
      this.#ref?.send({ type: 'task.start' })
      this.#startedAt = now
      this.#startedElapsed = this.#host.elapsed()
      this.#host.onChange(this)
    }
    const index = this.#nextIndex()
    this.#currentCommandIndex = index
    const command = this.#change(index, { status: 'running', startedAt: now })
    this.#host.emit(progressMessage(this, index, now))
    return { index, command }
  }

  report(index: number, progress: TaskProgress): void {
    this.#host.emit(progressMessage(this, index, this.#host.now(), progress))
  }

  /** Ends a command with its result. If the result is too large to be kept, the command fails instead. */
  succeed(index: number, result: unknown): void {
    const problem = this.#keep(result)
    if (problem !== undefined) this.fail(index, { code: 'RESULT_TOO_LARGE', message: problem })
    else this.#endCommand(index, { status: 'success', result }, { type: 'command.succeeded' })
  }

  fail(index: number, error: CommandFailure): void {
    this.#endCommand(index, { status: 'error', error }, { type: 'command.failed', error })
  }

  /** Cancels the task. Returns false when the task has already ended. */
  cancel(why: string | undefined): boolean {
    const message = why === undefined ? 'Task cancelled' : `Task cancelled: ${why}`
    return this.#send({ type: 'task.cancel', error: { code: 'CANCELLED', message } })
  }

  /** Assigns the instance that has connected. Only a task of an earlier process waits for its instance. */
  adopt(instance: InstanceEntry): void {
    this.#instance ??= instance
  }

  /** Fails the task, because its instance was lost or did not connect in time. */
  lose(message = `${this.#instanceName()} disconnected`): void {
    this.#send({ type: 'instance.lost', error: { code: 'INSTANCE_DISCONNECTED', message } })
  }

  /** Fails the command that was running when the earlier process ended. */
  interrupt(): void {
    this.fail(this.#nextIndex(), { code: 'INTERRUPTED', message: INTERRUPTED })
  }

  #restore(task: Task): void {
    const { startedAt, completedAt } = task
    this.#currentCommandIndex = task.currentCommandIndex
    this.#startedAt = startedAt
    if (completedAt !== undefined) {
      const { status, duration, error } = task
      this.#end = { status, completedAt, duration, ...omitUndefined({ error }) } as TaskEnd
    } else if (startedAt !== undefined) {
      // The time between the last stored change and the crash is unknown, so it does not count toward the duration.
      const last = Math.max(startedAt, ...task.commands.map((command) => command.completedAt ?? 0))
      this.#startedElapsed = this.#host.elapsed() - (last - startedAt)
      this.#ref?.send({ type: 'task.start' })
      for (const { status } of task.commands) if (status === 'success') this.#ref?.send({ type: 'command.succeeded' })
      this.#currentCommandIndex = this.#nextIndex()
    }
  }

  /** The index of the running command, or else of the next one. */
  #nextIndex(): number {
    return this.#ref?.getSnapshot().context.index ?? 0
  }

  #instanceName(): string {
    if (this.#instance === undefined) return `Instance ${this.instanceId}`
    const { kind, instance } = this.#instance
    return instance.isBrowser === false ? 'Remote worker' : (instanceNames.get(kind) ?? 'Instance')
  }

  /** Counts the size of a result toward the limits. Returns an error message if the result is too large to be kept. */
  #keep(result: unknown): string | undefined {
    const { maxResultBytes, maxTaskBytes, maxBytes } = this.#host.budget.limits
    const bytes = resultBytes(result, maxResultBytes)
    if (bytes > maxResultBytes) {
      return `The result has more than ${maxResultBytes} bytes of JSON, which is the maximum for one command (maxResultBytes).`
    }
    if (this.#bytes + bytes > maxTaskBytes) {
      return `The result has ${bytes} bytes of JSON. With this result, the task would hold more than ${maxTaskBytes} bytes (maxTaskBytes).`
    }
    if (!this.#host.budget.take(bytes)) {
      return `The result has ${bytes} bytes of JSON. With this result, all tasks together would hold more than ${maxBytes} bytes (maxBytes).`
    }
    this.#bytes += bytes
    return undefined
  }

  #endCommand(index: number, change: Partial<TaskCommand>, event: CommandTaskEvent): void {
    const now = this.#host.now()
    this.#change(index, { completedAt: now, ...change })
    this.#host.onChange(this, index)
    this.#host.emit(progressMessage(this, index, now))
    this.#send(event)
  }

  #change(index: number, change: Partial<TaskCommand>): TaskCommand {
    const before = this.#commands[index]
    if (before === undefined) throw new RangeError(`task ${this.id} has no command ${index}`)
    this.#record = undefined
    return (this.#commands[index] = Object.freeze({ ...before, ...change }))
  }

  /** Sends an event to the state machine. Returns whether the event has ended the task. */
  #send(event: CommandTaskEvent): boolean {
    if (this.#end !== undefined) return false
    this.#ref?.send(event)
    const end = this.#ref?.getSnapshot().output
    if (end === undefined) return false
    this.#ref = undefined
    const completedAt = this.#host.now()
    const ranMs = this.#startedAt === undefined ? 0 : this.#host.elapsed() - this.#startedElapsed
    const duration = Math.round(Math.max(0, ranMs))
    const ended: TaskEnd =
      end.status === 'completed'
        ? { status: end.status, completedAt, duration }
        : { status: end.status, completedAt, duration, error: this.#stopCommands(end.error, completedAt) }
    this.#end = ended
    this.#record = undefined
    this.#host.onChange(this)
    const { id, instanceId, commands } = this
    this.#host.emit(completeMessage({ id, instanceId, commands, ...ended }))
    return true
  }

  /** Marks the remaining commands as skipped. Returns the error of the task. */
  #stopCommands(given: CommandFailure, completedAt: number): NonNullable<TaskEnd['error']> {
    const error = Object.freeze(given)
    const failed = this.#commands.find(({ status }) => status === 'error')
    this.#commands.forEach(({ status }, index) => {
      if (status === 'pending') this.#change(index, { status: 'skipped' })
      // An aborted command gets the error of the task. A skipped command without an error never started.
      if (status !== 'running') return
      this.#change(index, { status: 'skipped', completedAt, error })
      this.#host.onChange(this, index)
    })
    return Object.freeze({ ...(failed && { commandId: failed.id }), ...error })
  }
}

const INTERRUPTED =
  'The server ended while this command was running. The command may have taken effect. Check this before you submit it or the remaining commands again.'

const instanceNames = new Map([
  ['local', 'In-process instance'],
  ['mcp', 'MCP server instance'],
  ['websocket', 'Browser instance'],
])
