/** The tools that tell what a page logged and asked for. They answer also while a dialog is open. */
import { z } from 'zod'
import type { InstanceTool } from '../../protocol/instance-tools.js'
import { BrowserError } from '../debuggee.js'
import { LEVELS } from './console-log.js'
import type { NetworkRequest } from './network-log.js'
import { pageTool, type Toolkit } from './toolkit.js'

const MAX_BYTES = 128 * 1024

export function logTools(toolkit: Toolkit): readonly InstanceTool[] {
  return [
    pageTool(toolkit, {
      name: 'browser_console_messages',
      description: 'Tells what the scripts of the page logged, and what they threw',
      isForDialogs: true,
      inputSchema: z.strictObject({
        level: z.enum(LEVELS).default('info').describe('The least severe level. Default: info'),
        all: z.boolean().optional().describe('Whether to include the messages of the pages before, in this tab'),
      }),
      run: ({ level, all = false }, { page: { console } }) => {
        const lines = console
          .list(level, all)
          .map(({ level: of, text, source }) => `[${of.toUpperCase()}] ${indented(text)}${source}`)
        const dropped = all && console.dropped > 0 ? [`${console.dropped} earlier messages are no longer kept.`] : []
        return Promise.resolve(
          ['### Console', ...dropped, ...(lines.length === 0 ? ['No messages.'] : lastLines(lines))].join('\n'),
        )
      },
    }),
    pageTool(toolkit, {
      name: 'browser_network_requests',
      description: 'Lists the requests of the page since it began to load',
      isForDialogs: true,
      inputSchema: z.strictObject({
        static: z
          .boolean()
          .optional()
          .describe('Whether to include pictures, fonts, scripts and styles that were loaded'),
        filter: z.string().max(1000).optional().describe('A regular expression for the addresses'),
      }),
      run: ({ static: withStatic = false, filter }, { page: { network } }) => {
        const pattern = patternOf(filter)
        const all = network.requests.map((request, index) => ({ request, number: network.dropped + index + 1 }))
        const wanted = all.filter(({ request }) => pattern?.test(request.url) !== false)
        const shown = wanted.filter(({ request }) => withStatic || !isStatic(request))
        const hidden = wanted.length - shown.length
        const lines = shown.map(({ request: { method, url, outcome }, number }) => {
          return `${number}. [${method}] ${url} => ${outcome ?? 'no answer yet'}`
        })
        return Promise.resolve(
          [
            '### Network',
            ...(network.dropped > 0 ? [`The first ${network.dropped} are no longer kept.`] : []),
            ...(lines.length === 0 ? ['No requests.'] : lastLines(lines)),
            ...(hidden > 0 ? [`${hidden} more with static.`] : []),
          ].join('\n'),
        )
      },
    }),
  ]
}

const FETCHED = ['Document', 'Fetch', 'XHR', 'WebSocket', 'EventSource', 'Ping', 'Preflight', 'CSPViolationReport']

const isStatic = ({ type, isSuccess }: NetworkRequest): boolean => isSuccess && !FETCHED.includes(type)

function patternOf(filter: string | undefined): RegExp | undefined {
  try {
    return filter === undefined ? undefined : new RegExp(filter)
  } catch (error) {
    throw new BrowserError('INVALID_ARGUMENTS', `arguments.filter: ${(error as Error).message}.`)
  }
}

/** What a page logs could look like lines of the result. */
const indented = (text: string): string => text.replace(/[\n\r\u0085\u2028\u2029]+/g, '\n    ')

/** The last lines that fit into a result. */
function lastLines(lines: readonly string[]): readonly string[] {
  const encoder = new TextEncoder()
  let bytes = 0
  let first = lines.length
  while (first > 0) {
    bytes += encoder.encode(lines[first - 1]).length + 1
    if (bytes > MAX_BYTES) break
    first -= 1
  }
  return first === 0 ? lines : [`${first} earlier lines have no room.`, ...lines.slice(first)]
}
