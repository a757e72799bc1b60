/** The options of commands that connect to a server, and the client that these commands use. */
import type { Command } from 'commander'
import { systemClock, withTimeLimit } from '../system/clock.js'
import { createTaskClient, type TaskClient } from '../client/task-client.js'
import { CommandEnd } from './failures.js'
import { readInteger } from './numbers.js'
import { EXIT } from './exit-codes.js'
import type { ProgramIO } from './terminal.js'

const DEFAULT_URL = 'http://127.0.0.1:3300'

export interface ClientOptions {
  readonly url?: string
  readonly json?: boolean
  /** Only for commands that follow tasks. */
  readonly reconnect?: string
}

export function addClientOptions(command: Command): Command {
  return command
    .option('--url <url>', `the URL of the server (default: AGENT_TASKS_URL, or ${DEFAULT_URL})`)
    .option('--json', 'print JSON, one value a line')
}

export function addReconnectOption(command: Command): Command {
  return command.option('--reconnect <ms>', 'how long to try to reconnect to a lost server, in ms', '60000')
}

/**
 * Runs a command with a client, and closes the client. The token comes from the variable AGENT_TASKS_TOKEN, because other users of the machine can read
 * a command line.
 */
export async function withClient<T>(
  { url, reconnect }: ClientOptions,
  { env }: ProgramIO,
  use: (client: TaskClient) => Promise<T>,
): Promise<T> {
  const token = env['AGENT_TASKS_TOKEN']
  const client = createTaskClient({
    url: url ?? env['AGENT_TASKS_URL'] ?? DEFAULT_URL,
    ...(token !== undefined && token !== '' && { token }),
    ...(reconnect !== undefined && { reconnect: { giveUpMs: readInteger('--reconnect', reconnect, 0, 86_400_000) } }),
  })
  try {
    return await use(client)
  } finally {
    await client.close()
  }
}

/** How long the command may take to end after Ctrl-C, and how long `onInterrupt` may take after that, in ms. Both are limited, because the server may not answer. */
const INTERRUPT_MS = 2000

/**
 * Runs a command with a signal that aborts at Ctrl-C. A second Ctrl-C exits the process.
 * @param onInterrupt called after Ctrl-C, when the command has ended or did not end in time
 */
export async function interruptible<T>(
  use: (signal: AbortSignal) => Promise<T>,
  onInterrupt: () => Promise<unknown> = () => Promise.resolve(),
): Promise<T> {
  const controller = new AbortController()
  let hearOf: () => void = () => undefined
  const interrupted = new Promise<void>((resolve) => (hearOf = resolve))
  const interrupt = (): void => {
    if (controller.signal.aborted) process.exit(EXIT.interrupted)
    controller.abort()
    hearOf()
  }
  process.on('SIGINT', interrupt)
  try {
    const using = use(controller.signal)
    const late = interrupted
      .then(() => within(INTERRUPT_MS, using))
      .then(() => Promise.reject(new Error('interrupted')))
    return await Promise.race([using, late])
  } catch (error) {
    if (!controller.signal.aborted) throw error
    await within(INTERRUPT_MS, onInterrupt())
    throw new CommandEnd(EXIT.interrupted)
  } finally {
    process.off('SIGINT', interrupt)
  }
}

/** Waits for a promise, but not longer than `ms` milliseconds. */
async function within(ms: number, promise: Promise<unknown>): Promise<void> {
  await withTimeLimit(promise, { clock: systemClock, ms, late: () => undefined })
}
