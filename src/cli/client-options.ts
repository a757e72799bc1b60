/** The options of commands that ask a server, and the client that they make. */
import type { Command } from 'commander'
import { createTaskClient, type TaskClient } from '../client/task-client.js'
import { CommandEnd } from './failures.js'
import { EXIT } from './exit-codes.js'
import type { Surroundings } from './terminal.js'

export const DEFAULT_URL = 'http://127.0.0.1:3300'

export interface ClientOptions {
  readonly url?: string
  readonly json?: boolean
}

export function addClientOptions(command: Command): Command {
  return command
    .option('--url <url>', `the server (default: AGENT_TASKS_URL, or ${DEFAULT_URL})`)
    .option('--json', 'print JSON, one value a line')
}

/** A client for the time of one command; it is closed then. The token comes from AGENT_TASKS_TOKEN, never from the command line. */
export async function withClient<T>(
  { url }: ClientOptions,
  { env }: Surroundings,
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
 * Lets Ctrl-C end what a command waits for. The second one ends the process.
 * @param onInterrupt what is to be done before the command ends
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
