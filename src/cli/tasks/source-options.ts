/** The options that say where tasks are found (their source). */
import type { Command } from 'commander'
import { InvalidInputError } from '../../errors.js'
import { withClient, type ClientOptions } from '../client-options.js'
import type { TaskClient } from '../../client/task-client.js'
import { STORE_NAMES, STORE_URLS } from '../../store/locations/store-url.js'
import type { ProgramIO } from '../terminal.js'
import { pageSource } from './page-source.js'
import { serverSource } from './server-source.js'
import { storeSource } from './store-source.js'
import type { TaskSource } from './task-source.js'

export interface SourceOptions extends ClientOptions {
  readonly page?: string
  readonly store?: string
}

export function addSourceOptions(command: Command): Command {
  return command
    .option('--url <url>', 'a server: its command tasks (default: AGENT_TASKS_URL, or http://127.0.0.1:3300)')
    .option('--page <link>', 'the page of a running host: its tasks of both kinds (default: AGENT_TASKS_PAGE)')
    .option('--store <store>', `a store, a folder of sessions, or ${STORE_URLS}: read only, and no host need run`)
    .option('--json', 'print JSON, one value a line')
}

export const SOURCES_HELP = `
Where the tasks are:
  --url    a server (\`agent-tasks serve\`). It has command tasks, which it lists, shows, cancels and watches.
  --page   the link of the page that \`agent-tasks serve\`, \`agent-tasks mcp --page\` or createTaskPage prints. It has the async tasks and the
           command tasks of its host, and can do the same with both. The link contains a token, so prefer AGENT_TASKS_PAGE if others use the machine.
  --store  the file of a store, the folder of \`agent-tasks mcp --store\`, or a ${STORE_NAMES}. Its tasks are listed, shown and watched; they cannot be
           cancelled, because only a running host can do that.
Without any of them, AGENT_TASKS_URL comes before AGENT_TASKS_PAGE.
`

/**
 * Opens the source that the options name, runs the command, and closes the source.
 * @throws INVALID_INPUT when more than one source is given
 */
export async function withSource<T>(
  options: SourceOptions,
  io: ProgramIO,
  use: (source: TaskSource, server: TaskClient | undefined) => Promise<T>,
): Promise<T> {
  const { url, page, store } = options
  const given = Object.entries({ url, page, store }).filter(([, value]) => value !== undefined)
  const [, second] = given
  if (second !== undefined) {
    throw new InvalidInputError(`--${second[0]}`, second[1], `only one of --url, --page and --store`)
  }
  if (store !== undefined) return use(storeSource(store), undefined)
  if (page !== undefined) return use(pageSource('--page', page), undefined)
  const { AGENT_TASKS_URL: server = '', AGENT_TASKS_PAGE: link = '' } = io.env
  if (url === undefined && server === '' && link !== '') return use(pageSource('AGENT_TASKS_PAGE', link), undefined)
  return withClient(options, io, (client) => use(serverSource(client), client))
}
