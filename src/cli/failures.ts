/** What went wrong, in words for the person at the terminal: what, what to do next, and the exit code. */
import { AgentTasksError } from '../errors.js'
import { ConnectionError, TaskExpiredError, TaskServerError } from '../client/client-errors.js'
import { EXIT, type ExitCode } from './exit-codes.js'

export interface Failure {
  readonly message: string
  /** What to do about it. */
  readonly hint?: string
  readonly code?: string
  readonly exitCode: ExitCode
}

/** Ends a command with an exit code of its own, and says nothing more. */
export class CommandEnd extends Error {
  readonly exitCode: ExitCode

  constructor(exitCode: ExitCode) {
    super(`exit ${exitCode}`)
    this.exitCode = exitCode
  }
}

const hints: Readonly<Record<string, string>> = {
  CONNECTION_FAILED: 'Start a server with `agent-tasks serve --demo`, or name one with --url or AGENT_TASKS_URL.',
  CONNECTION_LOST: 'See what became of it with `agent-tasks tasks list`.',
  BAD_ANSWER: 'Something else listens there. Name the server with --url or AGENT_TASKS_URL.',
  UNAUTHORIZED: 'Set AGENT_TASKS_TOKEN to one of the tokens of the server.',
  QUEUE_FULL:
    'Wait until a task has ended (`agent-tasks watch`), or start the server with a larger TASKS_MAX_QUEUE_SIZE.',
  NO_INSTANCE: 'Connect one: `agent-tasks serve --instance name="command args"`.',
  INVALID_INSTANCE: '`agent-tasks instances` lists what is there.',
  NOT_CONNECTED: '`agent-tasks instances` lists what is connected.',
  TASK_NOT_FOUND: '`agent-tasks tasks list` lists the tasks that the server knows.',
  INSTANCE_START_FAILED: 'Run the command by itself to see what it wants.',
}

/** An error of any kind as what is told of it. */
export function describeError(error: unknown): Failure {
  if (!(error instanceof AgentTasksError)) {
    return { message: error instanceof Error ? error.message : String(error), exitCode: EXIT.usage }
  }
  const { message, code } = error
  const hint = hints[code]
  return { message, code, ...(hint !== undefined && { hint }), exitCode: exitCodeOf(error) }
}

function exitCodeOf(error: AgentTasksError): ExitCode {
  if (error instanceof ConnectionError) return EXIT.connection
  if (error instanceof TaskServerError || error instanceof TaskExpiredError) return EXIT.refused
  return EXIT.usage
}
