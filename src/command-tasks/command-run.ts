/** One command in flight: it is started through the engine, has a time limit, and may be given up (S4, S5). */
import type { CommandFailure } from '../../machines/command-task.js'
import type { TaskProgress } from '../../machines/records.js'
import type { ErrorSource } from '../callbacks/error-report.js'
import type { Outbox } from '../callbacks/outbox.js'
import { clearLongTimeout, setLongTimeout, type Clock, type LongTimer } from '../clock.js'
import type { Engine, Outcome, Run, Work } from '../engine/engine.js'
import { performCommand } from '../instances/command-call.js'
import type { TaskCompleteMessage, TaskProgressMessage } from '../protocol/command-tasks.js'
import { describeFailure } from '../protocol/outcomes.js'
import type { CommandTask } from './command-task.js'

/** What happens after a change: a message is emitted, a result that came too late is reported, code of the host is called. */
export type OutboxItem =
  | TaskProgressMessage
  | TaskCompleteMessage
  | { readonly type: 'late_result'; readonly taskId: string }
  | { readonly type: 'callback'; readonly run: () => unknown; readonly source: ErrorSource['source'] }

/** What all commands of a task manager share. Durations in ms. */
export interface CommandSettings {
  readonly clock: Clock
  readonly engine: Engine
  readonly outbox: Outbox<OutboxItem>
  /** How long an aborted command may take to settle. */
  readonly abortGraceMs: number
  /** How long a command may take. A command may have a shorter limit. */
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
  readonly #timeoutMs: number
  readonly #settings: CommandSettings
  readonly #listener: CommandRunListener
  readonly #run: Run
  readonly #timer: LongTimer
  #isGivenUp = false
  #hasSettled = false

  /** Starts the next command of a task. */
  constructor(task: CommandTask, settings: CommandSettings, listener: CommandRunListener) {
    const { clock, outbox } = settings
    this.task = task
    this.#settings = settings
    this.#listener = listener
    const { index, command } = task.startCommand()
    this.#index = index
    this.#timeoutMs = Math.min(settings.commandTimeout, command.timeout ?? Infinity)
    this.#timer = setLongTimeout(clock, () => outbox.batch(() => listener.onTimedOut()), this.#timeoutMs)
    const { id: taskId, instance } = task
    const call = { instance, taskId, command, onProgress: (progress: TaskProgress) => this.#report(progress) }
    this.#run = startRun(settings.engine, {
      id: `${taskId}_${command.id}`,
      graceMs: settings.abortGraceMs,
      run: (context) => performCommand(call, context),
      onLate: (outcome) => outbox.batch(() => this.#reportLate(outcome)),
    })
    this.#run.settled.then(
      (outcome) => this.#settle(outcome),
      (reason: unknown) => this.#settle({ type: 'threw', reason }),
    )
  }

  /** Resolves when the command has settled, or was abandoned after its grace period. */
  get settled(): Promise<unknown> {
    return this.#run.settled
  }

  /** Fails the command because its time limit has passed. */
  timeOut(): void {
    this.task.fail(this.#index, {
      code: 'COMMAND_TIMEOUT',
      message: `Command timeout after ${this.#timeoutMs}ms`,
    })
  }

  /** Aborts the command: its task has ended, and its result is not used. */
  giveUp(): void {
    this.#isGivenUp = true
    const { clock, outbox } = this.#settings
    clearLongTimeout(clock, this.#timer)
    // Abort listeners are the host's code: they run after the change.
    const run = (): void => this.#run.abort(new DOMException('The command was given up.', 'AbortError'))
    outbox.push({ type: 'callback', run, source: 'runner' })
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

  /** An error of a command that was given up is what an abort leads to. */
  #reportLate(outcome: Outcome): void {
    if (outcome.type === 'returned') this.#settings.outbox.push({ type: 'late_result', taskId: this.task.id })
  }
}

/** An engine that refuses work must not stop the lane. */
function startRun(engine: Engine, work: Work): Run {
  try {
    return engine.start(work)
  } catch (reason) {
    return { settled: Promise.resolve({ type: 'threw', reason }), abort: () => undefined }
  }
}

/** The longest message of a failed command, in characters, and the longest code. */
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
