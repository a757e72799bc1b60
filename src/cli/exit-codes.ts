import { outcomeOf, type TerminalStatus } from '../../machines/task-status.js'

/** The exit codes of `agent-tasks`, which docs/cli.md documents. */
export const EXIT = {
  /** The command succeeded. If it followed a task, the task completed. */
  ok: 0,
  /** The followed task failed. */
  taskFailed: 1,
  /** The command line, a file or a setting is invalid. Nothing was sent. */
  usage: 2,
  /** No server was found, or the connection was lost. */
  connection: 3,
  /** The server refused the request, for example because its queue is full, the token is invalid, or there is no such task. */
  refused: 4,
  /** The followed task was cancelled. */
  taskCancelled: 5,
  /** `doctor` found that something is missing. */
  unhealthy: 6,
  /** `ask`: the owner of the task declined or dismissed the question. */
  declined: 7,
  /** `ask`: no answer came before the time limit or the end of the task. */
  unanswered: 8,
  /** The command was stopped by Ctrl-C (128 + SIGINT). */
  interrupted: 130,
  /** The reader of standard output has closed the pipe (128 + SIGPIPE). */
  brokenPipe: 141,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

const END_CODES = { succeeded: EXIT.ok, failed: EXIT.taskFailed, stopped: EXIT.taskCancelled } as const

/** The exit code of a command that has followed a task to its end. */
export const endCode = (status: TerminalStatus): ExitCode => END_CODES[outcomeOf(status)]
