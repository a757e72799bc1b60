/** Converts errors to what the command line prints: a message, and a hint. Also determines the exit code. */
import { omitUndefined } from '../data/omit-undefined.js'
import { AgentTasksError } from '../errors.js'
import { ConnectionError, TaskExpiredError, TaskServerError } from '../client/client-errors.js'
import { EXIT, type ExitCode } from './exit-codes.js'
import { PageConnectionError } from './tasks/page-connection.js'

export interface Failure {
  readonly message: string
  readonly hint?: string
  readonly code?: string
  readonly exitCode: ExitCode
}

/** Thrown to end a command with an exit code, without printing an error. */
export class CommandEnd extends Error {
  readonly exitCode: ExitCode

  constructor(exitCode: ExitCode) {
    super(`exit ${exitCode}`)
    this.exitCode = exitCode
  }
}

const hints: Readonly<Record<string, string>> = {
  CONNECTION_FAILED:
    'Start a server with `agent-tasks serve --demo`, or set the URL of one with --url or AGENT_TASKS_URL.',
  CONNECTION_LOST: '`agent-tasks tasks list` lists the tasks.',
  BAD_ANSWER: 'Another program listens there. Set the URL of the server with --url or AGENT_TASKS_URL.',
  PAGE_UNAUTHORIZED: 'Use the link that the host printed when it started: each start has a token of its own.',
  QUEUE_FULL:
    'Wait until a task has ended (`agent-tasks tasks watch`), or set a larger TASKS_MAX_QUEUE_SIZE for the server.',
  NO_INSTANCE: 'Connect one: `agent-tasks serve --instance name="command args"`.',
  INVALID_INSTANCE: '`agent-tasks instances` lists the instances.',
  NOT_CONNECTED: '`agent-tasks instances` lists the connected instances.',
  TASK_NOT_FOUND: '`agent-tasks tasks list` lists the tasks.',
  INSTANCE_START_FAILED: 'Run the command on its own to see its error.',
}

const PAGE_HINT = 'Start the host with its page again, and use its new link (AGENT_TASKS_PAGE).'

/** Converts any thrown value to a message, a hint and an exit code. */
export function describeError(error: unknown): Failure {
  if (!(error instanceof AgentTasksError)) {
    return { message: error instanceof Error ? error.message : String(error), exitCode: EXIT.usage }
  }
  const { message, code } = error
  const hint = error instanceof PageConnectionError ? PAGE_HINT : hints[code]
  return { message, code, ...omitUndefined({ hint }), exitCode: exitCodeOf(error) }
}

function exitCodeOf(error: AgentTasksError): ExitCode {
  if (error instanceof ConnectionError) return EXIT.connection
  if (error instanceof TaskServerError || error instanceof TaskExpiredError) return EXIT.refused
  return EXIT.usage
}
