/** One command task: its record, its actor (`machines/command-task.ts`) and the messages about it (S1, S2). */
import type { CommandFailure, CommandTaskEvent, CommandTaskRef } from '../../machines/command-task.js'
import type { TaskProgress } from '../../machines/records.js'
import type { InstanceEntry } from '../instances/instance-manager.js'
import type { Task, TaskCommand, TaskCompleteMessage, TaskProgressMessage } from '../protocol/command-tasks.js'
import { resultBytes, type ByteBudget } from './task-bytes.js'
import { completeMessage, progressMessage, type LiveTask, type TaskEnd } from './task-record.js'

/** What a task has from its submission on. */
export type SubmittedTask = Pick<LiveTask, 'id' | 'name' | 'intention' | 'commands' | 'createdAt' | 'metadata'>

/** What a task needs. */
export interface CommandTaskOptions {
  /** Its place in the order of submission, from 1. */
  readonly place: number
  /** The instance that it was submitted to. Another one may have the same id later. */
  readonly instance: InstanceEntry
  readonly ref: CommandTaskRef
  /** What the submission holds; it was taken from the budget. */
  readonly bytes: number
  readonly budget: ByteBudget
  /** The time of day. */
  readonly now: () => number
  /** The time that durations are measured by, in ms. */
  readonly elapsed: () => number
  readonly emit: (message: TaskProgressMessage | TaskCompleteMessage) => void
}

export class CommandTask {
  readonly id: string
  readonly instanceId: string
  readonly place: number
  readonly instance: InstanceEntry
  readonly #submitted: SubmittedTask
  readonly #ref: CommandTaskRef
  readonly #now: () => number
  readonly #elapsed: () => number
  readonly #emit: CommandTaskOptions['emit']
  /** Frozen, and replaced when they change. */
  readonly #commands: TaskCommand[]
  readonly #budget: ByteBudget
  #bytes: number
  #startedAt: number | undefined
  #startedElapsed = 0
  #end: TaskEnd | undefined
  #currentCommandIndex = 0
  #record: Task | undefined

  constructor(
    submitted: SubmittedTask,
    { place, instance, ref, bytes, budget, now, elapsed, emit }: CommandTaskOptions,
  ) {
    this.id = submitted.id
    this.instanceId = instance.id
    this.place = place
    this.instance = instance
    this.#submitted = submitted
    this.#commands = [...submitted.commands]
    this.#ref = ref
    this.#bytes = bytes
    this.#budget = budget
    this.#now = now
    this.#elapsed = elapsed
    this.#emit = emit
  }

  /** The commands as they are now. */
  get commands(): readonly TaskCommand[] {
    return this.#commands
  }

  /** What it holds, in bytes of JSON. */
  get bytes(): number {
    return this.#bytes
  }

  get hasEnded(): boolean {
    return this.#end !== undefined
  }

  /** A frozen snapshot, made when it is first asked for. */
  get record(): Task {
    this.#record ??= Object.freeze({
      ...this.#submitted,
      instanceId: this.instanceId,
      commands: Object.freeze([...this.#commands]) as TaskCommand[],
      currentCommandIndex: this.#currentCommandIndex,
      ...(this.#startedAt !== undefined && { startedAt: this.#startedAt }),
      ...(this.#end ?? { status: this.#startedAt === undefined ? 'queued' : 'running' }),
    } as Task)
    return this.#record
  }

  /** Starts the next command. */
  startCommand(): { readonly index: number; readonly command: TaskCommand } {
    const now = this.#now()
    if (this.#startedAt === undefined) {
      this.#ref.send({ type: 'task.start' })
      this.#startedAt = now
      this.#startedElapsed = this.#elapsed()
    }
    const { index } = this.#ref.getSnapshot().context
    this.#currentCommandIndex = index
    const command = this.#change(index, { status: 'running', startedAt: now })
    this.#emit(progressMessage(this, index, now))
    return { index, command }
  }

  /** Emits the progress of a running command. */
  report(index: number, { progress, total, message }: TaskProgress): void {
    // Field by field: a tool may report anything, and must not overwrite the fields of the message.
    const more = { progress, ...(total !== undefined && { total }), ...(message !== undefined && { message }) }
    this.#emit(progressMessage(this, index, this.#now(), more))
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

  /** Returns false when the task has ended before. */
  cancel(why: string | undefined): boolean {
    const message = why === undefined ? 'Task cancelled' : `Task cancelled: ${why}`
    return this.#send({ type: 'task.cancel', error: { code: 'CANCELLED', message } })
  }

  /** The instance was lost. */
  lose(): void {
    const { kind, instance } = this.instance
    const name = instance.isBrowser === false ? 'Remote worker' : instanceNames[kind]
    const message = `${name} disconnected`
    this.#send({ type: 'instance.lost', error: { code: 'INSTANCE_DISCONNECTED', message } })
  }

  /** Returns why a result cannot be kept. */
  #keep(result: unknown): string | undefined {
    const { maxResultBytes, maxTaskBytes, maxBytes } = this.#budget.limits
    const bytes = resultBytes(result, maxResultBytes)
    if (bytes > maxResultBytes) return `The result has more than ${maxResultBytes} bytes of JSON.`
    if (this.#bytes + bytes > maxTaskBytes) {
      return `The result has ${bytes} bytes of JSON: with it, the task would hold more than ${maxTaskBytes}.`
    }
    if (!this.#budget.take(bytes)) {
      return `The result has ${bytes} bytes of JSON: with it, all tasks would hold more than ${maxBytes}.`
    }
    this.#bytes += bytes
    return undefined
  }

  #endCommand(index: number, change: Partial<TaskCommand>, event: CommandTaskEvent): void {
    const now = this.#now()
    this.#change(index, { completedAt: now, ...change })
    this.#emit(progressMessage(this, index, now))
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
    this.#ref.send(event)
    const end = this.#ref.getSnapshot().output
    if (end === undefined) return false
    const now = this.#now()
    const error = end.status === 'completed' ? undefined : Object.freeze(end.error)
    const failed = this.#commands.find(({ status }) => status === 'error')
    this.#commands.forEach(({ status }, index) => {
      if (status === 'pending') this.#change(index, { status: 'skipped' })
      // Its error tells a command that was given up from one that never started.
      if (status === 'running') this.#change(index, { status: 'skipped', completedAt: now, ...(error && { error }) })
    })
    const duration = this.#startedAt === undefined ? 0 : Math.round(Math.max(0, this.#elapsed() - this.#startedElapsed))
    const ended: TaskEnd =
      end.status === 'completed'
        ? { status: end.status, completedAt: now, duration }
        : {
            status: end.status,
            completedAt: now,
            duration,
            error: Object.freeze({ ...(failed && { commandId: failed.id }), ...end.error }),
          }
    this.#end = ended
    this.#record = undefined
    const { id, instanceId, commands } = this
    this.#emit(completeMessage({ id, instanceId, commands, ...ended }))
    return true
  }
}

/** How an error message names an instance. */
const instanceNames = {
  local: 'In-process instance',
  mcp: 'MCP server instance',
  websocket: 'Browser instance',
} as const
