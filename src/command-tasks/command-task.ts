/** One command task: its record, its actor (`machines/command-task.ts`) and the messages about it (promises S1 and S2). */
import type { TraceContext } from '../protocol/telemetry.js'
import type { CommandFailure, CommandTaskEvent, CommandTaskRef } from '../../machines/command-task.js'
import type { TaskProgress } from '../../machines/records.js'
import { defined } from '../defined.js'
import type { InstanceEntry } from '../instances/instance-manager.js'
import type { Task, TaskCommand, TaskCompleteMessage, TaskProgressMessage } from '../protocol/command-tasks.js'
import { resultBytes, type TaskBudget } from './task-bytes.js'
import { completeMessage, progressMessage, type LiveTask, type TaskEnd } from './task-record.js'

/** The fields of a task that its submission sets. */
export type SubmittedTask = Pick<LiveTask, 'id' | 'name' | 'intention' | 'commands' | 'createdAt' | 'metadata'>

/** A request that returns the same answer when it is repeated. */
export interface SubmitRequest {
  /** The client, and its idempotency key. */
  readonly key: string
  /** The requested instance. */
  readonly instanceId?: string | undefined
  /** The answer. */
  readonly queuePosition: number
}

/** The origin of a task, and its instance. */
export interface CommandTaskOrigin {
  /** Its place in the order of submission, from 1. */
  readonly place: number
  /** The id of the instance that runs it. */
  readonly instanceId: string
  /** The instance that it was submitted to, because another one may have the same id later. Undefined for a task of an earlier process. */
  readonly instance?: InstanceEntry | undefined
  /** The state from an earlier process. */
  readonly restored?: Task | undefined
  /** The request that submitted it, if it may be repeated. */
  readonly request?: SubmitRequest | undefined
  /** The size of the submission, which is part of the byte budget. */
  readonly bytes: number
}

/** The services that all tasks of a manager share. */
export interface CommandTaskHost {
  readonly budget: TaskBudget
  /** The time of day. */
  now(): number
  /** A monotonic time, in ms. */
  elapsed(): number
  emit(message: TaskProgressMessage | TaskCompleteMessage): void
  /** Called after a change of the task. With `index`, that command has ended. */
  onChange(task: CommandTask, index?: number): void
}

export class CommandTask {
  readonly id: string
  readonly instanceId: string
  readonly place: number
  /** The submission, with pending commands. */
  readonly submitted: SubmittedTask
  readonly request: SubmitRequest | undefined
  /** The span of its first command. */
  trace: TraceContext | undefined
  readonly #host: CommandTaskHost
  /** Frozen, and replaced on a change. */
  readonly #commands: TaskCommand[]
  /** Undefined after the end, because an actor is larger than the rest of the task, which is kept for a while. */
  #ref: CommandTaskRef | undefined
  #bytes: number
  #instance: InstanceEntry | undefined
  #startedAt: number | undefined
  #startedElapsed = 0
  #end: TaskEnd | undefined
  #currentCommandIndex = 0
  #record: Task | undefined

  /** @param ref its actor; undefined for a task that ended in an earlier process */
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

  /** The instance that runs it; undefined while it waits for one. */
  get instance(): InstanceEntry | undefined {
    return this.#instance
  }

  /** Whether a command of it has started. */
  get hasStarted(): boolean {
    return this.#startedAt !== undefined
  }

  /** The commands as they are now. */
  get commands(): readonly TaskCommand[] {
    return this.#commands
  }

  /** Its size, in bytes of JSON. */
  get bytes(): number {
    return this.#bytes
  }

  get hasEnded(): boolean {
    return this.#end !== undefined
  }

  /** A frozen snapshot, which is made on first use. */
  get record(): Task {
    this.#record ??= Object.freeze({
      ...this.submitted,
      instanceId: this.instanceId,
      commands: Object.freeze([...this.#commands]) as TaskCommand[],
      currentCommandIndex: this.#currentCommandIndex,
      ...defined({ startedAt: this.#startedAt }),
      ...(this.#end ?? { status: this.#startedAt === undefined ? 'queued' : 'running' }),
    } as Task)
    return this.#record
  }

  /** Starts the next command. */
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

  /** Emits the progress of a running command. */
  report(index: number, progress: TaskProgress): void {
    this.#host.emit(progressMessage(this, index, this.#host.now(), progress))
  }

  /** A result that is too large to be kept fails the command. */
  succeed(index: number, result: unknown): void {
    const problem = this.#keep(result)
    if (problem !== undefined) this.fail(index, { code: 'RESULT_TOO_LARGE', message: problem })
    else this.#endCommand(index, { status: 'success', result }, { type: 'command.succeeded' })
  }

  fail(index: number, error: CommandFailure): void {
    this.#endCommand(index, { status: 'error', error }, { type: 'command.failed', error })
  }

  /** Returns false when the task has already ended. */
  cancel(why: string | undefined): boolean {
    const message = why === undefined ? 'Task cancelled' : `Task cancelled: ${why}`
    return this.#send({ type: 'task.cancel', error: { code: 'CANCELLED', message } })
  }

  /** The instance that it was waiting for has connected. */
  adopt(instance: InstanceEntry): void {
    this.#instance ??= instance
  }

  /** The instance was lost, or did not come back. */
  lose(message = `${this.#instanceName()} disconnected`): void {
    this.#send({ type: 'instance.lost', error: { code: 'INSTANCE_DISCONNECTED', message } })
  }

  /** Fails the command that was in flight when the process ended. */
  interrupt(): void {
    this.fail(this.#nextIndex(), { code: 'INTERRUPTED', message: INTERRUPTED })
  }

  #restore(task: Task): void {
    const { startedAt, completedAt } = task
    this.#currentCommandIndex = task.currentCommandIndex
    this.#startedAt = startedAt
    if (completedAt !== undefined) {
      const { status, duration, error } = task
      this.#end = { status, completedAt, duration, ...defined({ error }) } as TaskEnd
    } else if (startedAt !== undefined) {
      // The time between its last activity and the crash is unknown.
      const last = Math.max(startedAt, ...task.commands.map((command) => command.completedAt ?? 0))
      this.#startedElapsed = this.#host.elapsed() - (last - startedAt)
      this.#ref?.send({ type: 'task.start' })
      for (const { status } of task.commands) if (status === 'success') this.#ref?.send({ type: 'command.succeeded' })
      this.#currentCommandIndex = this.#nextIndex()
    }
  }

  /** The index of the current or next command. */
  #nextIndex(): number {
    return this.#ref?.getSnapshot().context.index ?? 0
  }

  #instanceName(): string {
    if (this.#instance === undefined) return `Instance ${this.instanceId}`
    const { kind, instance } = this.#instance
    return instance.isBrowser === false ? 'Remote worker' : instanceNames[kind]
  }

  /** Returns why a result cannot be kept. */
  #keep(result: unknown): string | undefined {
    const { maxResultBytes, maxTaskBytes, maxBytes } = this.#host.budget.limits
    const bytes = resultBytes(result, maxResultBytes)
    if (bytes > maxResultBytes) return `The result has more than ${maxResultBytes} bytes of JSON.`
    if (this.#bytes + bytes > maxTaskBytes) {
      return `The result has ${bytes} bytes of JSON: with it, the task would hold more than ${maxTaskBytes}.`
    }
    if (!this.#host.budget.take(bytes)) {
      return `The result has ${bytes} bytes of JSON: with it, all tasks would hold more than ${maxBytes}.`
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

  /** Sends an event to the actor. Returns whether it has ended the task. */
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

  /** Skips the remaining commands, and returns the error of the task. */
  #stopCommands(given: CommandFailure, completedAt: number): TaskFailure {
    const error = Object.freeze(given)
    const failed = this.#commands.find(({ status }) => status === 'error')
    this.#commands.forEach(({ status }, index) => {
      if (status === 'pending') this.#change(index, { status: 'skipped' })
      // The error of an aborted command distinguishes it from one that never started.
      if (status !== 'running') return
      this.#change(index, { status: 'skipped', completedAt, error })
      this.#host.onChange(this, index)
    })
    return Object.freeze({ ...(failed && { commandId: failed.id }), ...error })
  }
}

/** The error of a task, with the command that failed. */
type TaskFailure = NonNullable<TaskEnd['error']>

const INTERRUPTED =
  'The server ended while this command was in flight. It may have taken effect. Check this before you submit the remaining commands again.'

/** The name of an instance in error messages. */
const instanceNames = {
  local: 'In-process instance',
  mcp: 'MCP server instance',
  websocket: 'Browser instance',
} as const
