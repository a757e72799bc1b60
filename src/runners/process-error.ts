/** The errors of programs. A message names the program, and ends with the last part of its output. */
import { AgentTasksError } from '../errors.js'
import { nameOf, type RunProcess } from '../engine/token-scan.js'
import { lastChars } from '../data/cut-text.js'
import { preview } from '../data/preview.js'
import { terminalText } from '../data/terminal-text.js'
import type { ProgramEnd, ProgramStop } from './supervision.js'

/** How much of a program's output an error includes, in UTF-16 units. */
const TAIL_CHARS = 2000

const MAX_NAMES = 10

/** How a program failed. */
export interface ProcessFailure {
  /** The path or name of the program. */
  readonly command: string
  /** The exit code. Undefined if the program did not start, or if a signal ended it. */
  readonly exitCode?: number
  /** The signal that ended the program. */
  readonly signal?: NodeJS.Signals
  /** The end of the program's stderr. */
  readonly stderr?: string
}

/**
 * `PROCESS_NOT_STARTED`, `PROCESS_FAILED`: the program did not start, or failed. `PROCESS_OUTPUT`: its output could not be read. `ACP_PROTOCOL`: an agent did not answer as
 * ACP requires. `ACP_AUTH_REQUIRED`: it needs a sign-in. `ACP_REFUSED`, `ACP_FAILED`: it refused the goal, or failed. `AGENT_FAILED`, `RATE_LIMITED`: a coding agent said why it
 * has failed.
 */
type ProcessErrorCode =
  | 'PROCESS_NOT_STARTED'
  | 'PROCESS_FAILED'
  | 'PROCESS_OUTPUT'
  | 'PROCESS_ABORTED'
  | 'ACP_PROTOCOL'
  | 'ACP_AUTH_REQUIRED'
  | 'ACP_REFUSED'
  | 'ACP_FAILED'
  | 'AGENT_FAILED'
  | 'RATE_LIMITED'

/** A program did not start, failed, or printed output that could not be read. */
export class ProcessError extends AgentTasksError implements ProcessFailure {
  override readonly name: string = 'ProcessError'
  /** The path or name of the program. */
  readonly command: string
  readonly exitCode?: number
  readonly signal?: NodeJS.Signals
  readonly stderr: string

  constructor(code: ProcessErrorCode, message: string, failure: ProcessFailure, options?: ErrorOptions) {
    super(code, message, options)
    const { command, exitCode, signal, stderr = '' } = failure
    this.command = command
    if (exitCode !== undefined) this.exitCode = exitCode
    if (signal !== undefined) this.signal = signal
    this.stderr = stderr
  }
}

/** A run that was aborted (`PROCESS_ABORTED`): the error has the `name` of the platform's abort errors, and its `cause` is the reason of the signal. */
export class ProcessAbortError extends ProcessError {
  override readonly name = 'AbortError'

  constructor(message: string, failure: ProcessFailure, options?: ErrorOptions) {
    super('PROCESS_ABORTED', message, failure, options)
  }
}

export interface ProgramRemains {
  readonly command: string
  readonly stdout: string
  readonly stderr: string
}

/** Returns an error that says why the program failed; undefined if it succeeded. */
export function endError(end: ProgramEnd, remains: ProgramRemains): Error | undefined {
  const { exitCode, signal, stop } = end
  if (exitCode === 0 && stop === undefined) return undefined
  const { command, stdout, stderr } = remains
  const failure = { command, stderr, ...(exitCode !== null && { exitCode }), ...(signal !== null && { signal }) }
  if (stop?.by === 'reader') {
    if (stop.reason instanceof Error) return stop.reason
    const message = `The output of command ${preview(command)} could not be read: ${preview(stop.reason)}.`
    return new ProcessError('PROCESS_OUTPUT', message, failure, { cause: stop.reason })
  }
  const tail = describeTail(stderr, stdout)
  if (stop !== undefined) {
    const message = `Command ${preview(command)} was aborted: ${describeStop(stop)}.${tail}`
    return new ProcessAbortError(message, failure, { cause: stop.reason })
  }
  const how = signal === null ? `exited with code ${exitCode ?? 'unknown'}` : `was ended by ${signal}`
  const left =
    end.detached === undefined ? '' : ` Processes that it has detached run on: ${namesOf(end.detached).join(', ')}.`
  return new ProcessError('PROCESS_FAILED', `Command ${preview(command)} ${how}.${left}${tail}`, failure)
}

function describeStop({ wasKilled, killSignal, graceMs }: ProgramStop): string {
  return wasKilled
    ? `it was still running ${graceMs} ms after ${killSignal} and was killed`
    : `it ended after ${killSignal}`
}

export function namesOf(processes: readonly RunProcess[]): readonly string[] {
  const names = processes.slice(0, MAX_NAMES).map(nameOf)
  return processes.length <= MAX_NAMES ? names : [...names, `${processes.length - MAX_NAMES} more`]
}

/** The end of a program's stderr, to append to an error message. If stderr is blank, the end of stdout. */
export function describeTail(stderr: string, stdout: string): string {
  const log = terminalText(stderr).trim()
  const [stream, text] = log === '' ? ['stdout', terminalText(stdout).trim()] : ['stderr', log]
  return text === '' ? '' : ` The end of its ${stream}:\n${lastChars(text, TAIL_CHARS)}`
}
