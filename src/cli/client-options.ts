/** The options of commands that connect to a server, and their client. */
import type { Command } from 'commander'
import { createTaskClient, type TaskClient } from '../client/task-client.js'
import { CommandEnd } from './failures.js'
import { EXIT } from './exit-codes.js'
import type { ProgramIO } from './terminal.js'

const DEFAULT_URL = 'http://127.0.0.1:3300'

export interface ClientOptions {
  readonly url?: string
  readonly json?: boolean
}

export function addClientOptions(command: Command): Command {
  return command
    .option('--url <url>', `the URL of the server (default: AGENT_TASKS_URL, or ${DEFAULT_URL})`)
    .option('--json', 'print JSON, one value a line')
}

/** Runs a command with a client, and closes it. The token comes from AGENT_TASKS_TOKEN: other users can read a command line. */
export async function withClient<T>(
  { url }: ClientOptions,
  { env }: ProgramIO,
  use: (client: TaskClient) => Promise<T>,
): Promise<T> {
  const token = env['AGENT_TASKS_TOKEN']
  const client = createTaskClient({
    url: url ?? env['AGENT_TASKS_URL'] ?? DEFAULT_URL,
    ...(token !== undefined && token !== '' && { token }),
  })
  try {
    return await use(client)
  } finally {
    await client.close()
  }
}

/**
 * Aborts the signal at Ctrl-C; a second one exits the process.
 * @param onInterrupt runs before the command ends
 */
export async function interruptible<T>(
  use: (signal: AbortSignal) => Promise<T>,
  onInterrupt: () => Promise<unknown> = () => Promise.resolve(),
): Promise<T> {
  const controller = new AbortController()
  const interrupt = (): void => {
    if (controller.signal.aborted) process.exit(EXIT.interrupted)
    controller.abort()
  }
  process.on('SIGINT', interrupt)
  try {
    return await use(controller.signal)
  } catch (error) {
    if (!controller.signal.aborted) throw error
    await onInterrupt()
    throw new CommandEnd(EXIT.interrupted)
  } finally {
    process.off('SIGINT', interrupt)
  }
}
