/** A command in flight: it is started through the engine, has a time limit, and may be aborted (promises S4 and S5). */
import type { CommandFailure } from '../../machines/command-task.js'
import type { TaskProgress } from '../../machines/records.js'
import { clearLongTimeout, setLongTimeout, type Clock, type LongTimer } from '../clock.js'
import type { Engine, Outcome, Run, Work } from '../engine/engine.js'
import { performCommand } from '../instances/command-call.js'
import type { InstanceEntry } from '../instances/instance-manager.js'
import type { ManagerOutbox } from '../kernel/manager-outbox.js'
import type {
  InstancePauseMessage,
  TaskCommand,
  TaskCompleteMessage,
  TaskProgressMessage,
} from '../protocol/command-tasks.js'
import type { OperationEnd, Telemetry, TraceContext } from '../protocol/telemetry.js'
import { describeFailure } from '../protocol/outcomes.js'
import type { CommandTask } from './command-task.js'

/** What follows a change: a message is emitted, or a late result is reported. */
export type OutboxItem =
  | TaskProgressMessage
  | TaskCompleteMessage
  | InstancePauseMessage
  | { readonly type: 'late_result'; readonly taskId: string }

/** The settings that all commands of a task manager share. Durations in ms. */
export interface CommandSettings {
  readonly clock: Clock
  readonly engine: Engine
  readonly outbox: ManagerOutbox<OutboxItem>
  /** Calls `run` when the changes are stored; immediately without a store. Inside a batch. */
  readonly whenStored: (run: () => void) => void
  readonly telemetry?: Telemetry | undefined
  /** The span that submitted each task; with telemetry. */
  readonly traces?: WeakMap<CommandTask, TraceContext> | undefined
  /** How long an aborted command may take to settle. */
  readonly abortGraceMs: number
  /** The time limit of a command. A command may have a shorter one. */
  readonly commandTimeout: number
}

/** Called inside a change of the outbox. */
export interface CommandRunListener {
  /** The command has settled, or was abandoned after its grace period. */
  onSettled(): void
  /** The time limit has passed. */
  onTimedOut(): void
}

export class CommandRun {
  readonly task: CommandTask
  readonly #index: number
  readonly #command: TaskCommand
  readonly #timeoutMs: number
  readonly #settings: CommandSettings
  readonly #listener: CommandRunListener
  #run: Run | undefined
  #timer: LongTimer | undefined
  #isGivenUp = false
  #hasSettled = false

  /** Starts the next command of a task, after its start was stored and its instance has ended the calls of an earlier connection. */
  constructor(task: CommandTask, settings: CommandSettings, listener: CommandRunListener) {
    this.task = task
    this.#settings = settings
    this.#listener = listener
    const { index, command } = task.startCommand()
    this.#index = index
    this.#command = command
    this.#timeoutMs = Math.min(settings.commandTimeout, command.timeout ?? Infinity)
    this.#startWhenFree()
  }

  /** Resolves when the command has settled, or was abandoned after its grace period. */
  get settled(): Promise<unknown> {
    return this.#run?.settled ?? Promise.resolve()
  }

  /** Fails the command because its time limit has passed. */
  timeOut(): void {
    this.task.fail(this.#index, {
      code: 'COMMAND_TIMEOUT',
      message: `Command timeout after ${this.#timeoutMs}ms`,
    })
  }

  /** Aborts the command, because its task has ended and its result is not used. */
  giveUp(): void {
    this.#isGivenUp = true
    const run = this.#run
    clearLongTimeout(this.#settings.clock, this.#timer)
    if (run === undefined) queueMicrotask(() => this.#settle({ type: 'skipped' }))
    // Abort listeners are code of the host, so they run isolated.
    else {
      const abort = (): void => run.abort(new DOMException('The command was given up.', 'AbortError'))
      this.#settings.outbox.callAfterWrite(abort, 'runner')
    }
  }

  #startWhenFree(): void {
    if (this.#isGivenUp) return
    const { outbox, whenStored } = this.#settings
    const start = (): void => whenStored(() => this.#start())
    const freed = freedOf(this.task.instance)
    if (freed === undefined) start()
    else {
      freed.then(
        () => outbox.batch(() => this.#startWhenFree()),
        () => outbox.batch(start),
      )
    }
  }

  #start(): void {
    const { id: taskId, instance } = this.task
    if (this.#isGivenUp || instance === undefined) return
    const { clock, outbox, engine, abortGraceMs, telemetry, traces } = this.#settings
    const command = this.#command
    this.#timer = setLongTimeout(clock, () => outbox.batch(() => this.#listener.onTimedOut()), this.#timeoutMs, {
      name: `deadline of ${command.tool_name} in ${taskId}`,
      kind: 'deadline',
    })
    const operation = telemetry?.start({
      type: 'execute_tool',
      name: command.tool_name,
      callId: command.id,
      taskId,
      parent: traces?.get(this.task),
      input: command.args,
    })
    const trace = operation?.trace
    this.task.trace ??= trace
    const call = { instance, taskId, command, trace, onProgress: (progress: TaskProgress) => this.#report(progress) }
    this.#run = startRun(engine, {
      id: `${taskId}_${command.id}`,
      graceMs: abortGraceMs,
      run: (context) =>
        operation === undefined ? performCommand(call, context) : operation.run(() => performCommand(call, context)),
      onLate: (outcome) => outbox.batch(() => this.#reportLate(outcome)),
    })
    const settle = (outcome: Outcome): void => {
      this.#settle(outcome)
      operation?.end(this.#endOf(outcome))
    }
    this.#run.settled.then(settle, (reason: unknown) => settle({ type: 'threw', reason }))
  }

  #report(progress: TaskProgress): void {
    if (this.#hasSettled || this.task.hasEnded) return
    this.#settings.outbox.batch(() => this.task.report(this.#index, progress))
  }

  #settle(outcome: Outcome): void {
    const { clock, outbox } = this.#settings
    outbox.batch(() => {
      this.#hasSettled = true
      clearLongTimeout(clock, this.#timer)
      if (this.#isGivenUp) this.#reportLate(outcome)
      else if (outcome.type === 'returned') this.task.succeed(this.#index, outcome.value)
      else this.task.fail(this.#index, failureOf(outcome))
      this.#listener.onSettled()
    })
  }

  #endOf(outcome: Outcome): OperationEnd {
    const { error } = this.task.commands[this.#index] ?? {}
    if (error !== undefined) return { errorType: error.code, error: error.message }
    return outcome.type === 'returned' ? { output: outcome.value } : { errorType: 'cancelled' }
  }

  /** An error of an aborted command is expected. */
  #reportLate(outcome: Outcome): void {
    if (outcome.type === 'returned') this.#settings.outbox.push({ type: 'late_result', taskId: this.task.id })
  }
}

/** An instance of the host without this method must not block the lane. */
function freedOf(entry: InstanceEntry | undefined): Promise<void> | undefined {
  try {
    return entry?.instance.connection?.freed?.()
  } catch {
    return undefined
  }
}

/** An engine that refuses work must not block the lane. */
function startRun(engine: Engine, work: Work): Run {
  try {
    return engine.start(work)
  } catch (reason) {
    return { settled: Promise.resolve({ type: 'threw', reason }), abort: () => undefined }
  }
}

/** The maximum length of a failed command's message, and of its code, in characters. */
const MAX_MESSAGE = 10_000
const MAX_CODE = 256

function failureOf(outcome: Exclude<Outcome, { type: 'returned' }>): CommandFailure {
  if (outcome.type !== 'threw') return { code: 'EXECUTION_ERROR', message: 'The command did not run.' }
  const { reason } = outcome
  const code: unknown = reason instanceof Error && 'code' in reason ? reason.code : undefined
  const message = describeFailure(reason)
  return {
    code: typeof code === 'string' && code !== '' ? code.slice(0, MAX_CODE) : 'EXECUTION_ERROR',
    message:
      message.length <= MAX_MESSAGE
        ? message
        : `${message.slice(0, MAX_MESSAGE)} [cut: the first ${MAX_MESSAGE} of ${message.length} characters]`,
  }
}
