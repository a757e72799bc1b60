/** The exit codes of `agent-tasks`, which docs/cli.md documents. */
export const EXIT = {
  /** Success; a followed task completed. */
  ok: 0,
  /** A followed task failed. */
  taskFailed: 1,
  /** The command line, a file or a setting is invalid. Nothing was sent. */
  usage: 2,
  /** There is no server, or the connection was lost. */
  connection: 3,
  /** The server refused the request: the queue is full, the token is invalid, or there is no such task. */
  refused: 4,
  /** A followed task was cancelled. */
  taskCancelled: 5,
  /** `doctor` found something missing. */
  unhealthy: 6,
  /** `ask`: the question was declined, or dismissed. */
  declined: 7,
  /** `ask`: there is no answer, because the time limit has passed or the task has ended. */
  unanswered: 8,
  /** Stopped by Ctrl-C (128 + SIGINT). */
  interrupted: 130,
  /** The reader of standard output has gone (128 + SIGPIPE). */
  brokenPipe: 141,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]
