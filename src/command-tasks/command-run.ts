/** Runs one command: starts it through the engine, limits its time, and aborts it if its task ends early (promises S4 and S5). */
import type { CommandFailure } from '../../machines/command-task.js'
import type { TaskProgress } from '../../machines/records.js'
import type { CallContext } from '../isolation/call-context.js'
import { clearLongTimeout, setLongTimeout, type Clock, type LongTimer } from '../system/clock.js'
import type { Engine, Outcome, Run, Work } from '../engine/engine.js'
import { performCommand } from './instances/command-call.js'
import type { InstanceEntry } from './instances/instance-manager.js'
import type { ManagerOutbox } from '../isolation/manager-outbox.js'
import type {
  InstancePauseMessage,
  TaskCommand,
  TaskCompleteMessage,
  TaskProgressMessage,
} from '../protocol/command-tasks.js'
import { suspension } from '../async-tasks/cancel-reason.js'
import type { OperationEnd, Telemetry, TraceContext } from '../protocol/telemetry.js'
import { describeFailure } from '../protocol/outcomes.js'
import type { CommandTask } from './command-task.js'

/** What is delivered after a change: a message for listeners, or the fact that a result came too late. */
export type OutboxItem =
  | TaskProgressMessage
  | TaskCompleteMessage
  | InstancePauseMessage
  | { readonly type: 'late_result'; readonly taskId: string }

/** The settings that all commands of a task manager share. Durations are in ms. */
export interface CommandSettings {
  readonly clock: Clock
  readonly engine: Engine
  readonly outbox: ManagerOutbox<OutboxItem>
  /** Calls `run` when all changes until now are stored; without a store, at once. */
  readonly whenStored: (run: () => void) => void
  readonly telemetry?: Telemetry | undefined
  /** The span in which each task was submitted. Undefined without telemetry. */
  readonly traces?: WeakMap<CommandTask, TraceContext> | undefined
  /** How long the lane waits until an aborted command settles. */
  readonly abortGraceMs: number
  /** The time limit of a command. A command may set a shorter limit. */
  readonly commandTimeout: number
}

/** Receives the end of a command. The methods run inside `outbox.batch`, so events follow after the change. */
export interface CommandRunListener {
  /** The command has settled, or its grace period after an abort has passed. */
  onSettled(): void
  onTimedOut(): void
}

export class CommandRun {
  readonly task: CommandTask
  readonly #context: CallContext
  readonly #index: number
  readonly #command: TaskCommand
  readonly #timeoutMs: number
  readonly #settings: CommandSettings
  readonly #listener: CommandRunListener
  #run: Run | undefined
  #timer: LongTimer | undefined
  #isGivenUp = false
  #isSuspended = false
  #hasSettled = false

  /**
   * Starts the next command of a task. The call begins when the start is stored, and when calls over an earlier connection of the instance have
   * ended.
   * @param context the context in which the task was submitted
   */
  constructor(task: CommandTask, context: CallContext, settings: CommandSettings, listener: CommandRunListener) {
    this.task = task
    this.#context = context
    this.#settings = settings
    this.#listener = listener
    const { index, command } = task.startCommand()
    this.#index = index
    this.#command = command
    this.#timeoutMs = Math.min(settings.commandTimeout, command.timeout ?? Infinity)
    context.runInAsyncScope(() => this.#startWhenFree())
  }

  /** Resolves when the command has settled, or its grace period after an abort has passed. */
  get settled(): Promise<unknown> {
    return this.#run?.settled ?? Promise.resolve()
  }

  /** Fails the command, because its time limit has passed. */
  timeOut(): void {
    this.task.fail(this.#index, {
      code: 'COMMAND_TIMEOUT',
      message: `Command timeout after ${this.#timeoutMs}ms`,
    })
  }

  /** Aborts the command, because its task has ended. A result that arrives later is dropped. */
  giveUp(): void {
    this.#isGivenUp = true
    const run = this.#run
    clearLongTimeout(this.#settings.clock, this.#timer)
    if (run === undefined) queueMicrotask(() => this.#settle({ type: 'skipped' }))
    // Abort listeners are code of the host. They run after the change, where their errors cannot interrupt it.
    else {
      const reason = new DOMException('The command was aborted, because its task has ended.', 'AbortError')
      const abort = (): void => this.#context.runInAsyncScope(() => run.abort(reason))
      this.#settings.outbox.callAfterWrite(abort, 'runner')
    }
  }

  /**
   * Aborts the command, because its process is closed. Only a result is stored then: otherwise the next process finds the command interrupted, as after
   * a crash.
   */
  suspend(): void {
    if (this.#isGivenUp) return
    this.#isSuspended = true
    clearLongTimeout(this.#settings.clock, this.#timer)
    const run = this.#run
    if (run !== undefined) this.#settings.outbox.callLater(() => run.abort(suspension()), 'runner')
  }

  #startWhenFree(): void {
    if (this.#isGivenUp || this.#isSuspended) return
    const { outbox, whenStored } = this.#settings
    const start = (): void => whenStored(() => this.#context.runInAsyncScope(() => this.#start()))
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
    if (this.#isGivenUp || this.#isSuspended || instance === undefined) return
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
      // An engine may start the command later, in another context.
      run: (context) =>
        this.#context.runInAsyncScope(() =>
          operation === undefined ? performCommand(call, context) : operation.run(() => performCommand(call, context)),
        ),
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
      else if (!this.#isSuspended) this.task.fail(this.#index, failureOf(outcome))
      this.#listener.onSettled()
    })
  }

  #endOf(outcome: Outcome): OperationEnd {
    const { error } = this.task.commands[this.#index] ?? {}
    if (error !== undefined) return { errorType: error.code, error: error.message }
    return outcome.type === 'returned' ? { output: outcome.value } : { errorType: 'cancelled' }
  }

  /** Reports a result that arrived after the command was aborted. Errors are not reported, because aborted commands normally throw. */
  #reportLate(outcome: Outcome): void {
    if (outcome.type === 'returned') this.#settings.outbox.push({ type: 'late_result', taskId: this.task.id })
  }
}

/**
 * Returns a promise for the end of all calls over an earlier connection, if there may be such calls. If the instance is implemented by the host and
 * throws here, the command starts at once.
 */
function freedOf(entry: InstanceEntry | undefined): Promise<void> | undefined {
  try {
    return entry?.instance.connection?.freed?.()
  } catch {
    return undefined
  }
}

/** Starts a run. If the engine throws, the command fails with this error, so that the lane continues. */
function startRun(engine: Engine, work: Work): Run {
  try {
    return engine.start(work)
  } catch (reason) {
    return { settled: Promise.resolve({ type: 'threw', reason }), abort: () => undefined }
  }
}

/** The maximum length of the message and of the code of a failed command, in characters. */
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
