/** What the exit code of `agent-tasks` means. Documented in docs/cli.md; scripts rely on it. */
export const EXIT = {
  /** It was done; a task that was waited for has completed. */
  ok: 0,
  /** A task that was waited for has failed. */
  taskFailed: 1,
  /** The command line, a file or a setting is wrong. Nothing was sent. */
  usage: 2,
  /** No server answers, or the connection was lost. */
  connection: 3,
  /** The server refused: the queue is full, the token is wrong, the task is not known. */
  refused: 4,
  /** A task that was waited for was cancelled. */
  taskCancelled: 5,
  /** Something is missing that `doctor` looked for. */
  unhealthy: 6,
  /** Stopped by Ctrl-C (128 + SIGINT). */
  interrupted: 130,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]
