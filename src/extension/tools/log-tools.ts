/** The tools that show a page's console and requests. They also work while a dialog is open. */
import { z } from 'zod'
import type { InstanceTool } from '../../protocol/instance-tools.js'
import { BrowserError, ProtocolRefusal } from '../debuggee.js'
import { LEVELS } from './console-log.js'
import { mainFrameOf, worldOf } from './frames.js'
import { indented } from './kept-text.js'
import type { NetworkRequest } from './network-log.js'
import type { Page } from './page.js'
import { pageTool, type Toolkit } from './toolkit.js'
import { within } from './waiting.js'

const MAX_BYTES = 128 * 1024
/** The time limits for evaluating a regular expression, and for the page to start, in ms. */
const FILTER_MS = 1000
const ANSWER_MS = 5000

export function logTools(toolkit: Toolkit): readonly InstanceTool[] {
  return [
    pageTool(toolkit, {
      name: 'browser_console_messages',
      description: 'Returns the messages and exceptions of the scripts of the page',
      isForDialogs: true,
      inputSchema: z.strictObject({
        level: z.enum(LEVELS).default('info').describe('The least severe level. Default: info'),
        all: z.boolean().optional().describe('Whether to include the messages of the pages before, in this tab'),
      }),
      run: ({ level, all = false }, { page: { console, isFlooding } }) => {
        const lines = console
          .list(level, all)
          .map(({ level: of, text, source }) => `[${of.toUpperCase()}] ${indented(text)}${source}`)
        const dropped = all && console.dropped > 0 ? [`${console.dropped} earlier messages are no longer kept.`] : []
        return Promise.resolve(
          [
            '### Console',
            ...(isFlooding('Runtime') || isFlooding('Log') ? [TOO_MUCH] : []),
            ...dropped,
            ...(lines.length === 0 ? ['No messages.'] : lastLines(lines)),
          ].join('\n'),
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
      run: async ({ static: withStatic = false, filter }, { page, signal }) => {
        const { network } = page
        const all = network.requests.map((request, index) => ({ request, number: network.dropped + index + 1 }))
        const urls = all.map(({ request }) => request.url)
        const isWanted = filter === undefined ? undefined : await matches(page, filter, urls, signal)
        const wanted = all.filter((_one, index) => isWanted?.[index] !== false)
        const shown = wanted.filter(({ request }) => withStatic || !isStatic(request))
        const hidden = wanted.length - shown.length
        const lines = shown.map(({ request: { method, url, outcome }, number }) => {
          return `${number}. [${method}] ${url} => ${outcome ?? 'no answer yet'}`
        })
        return [
          '### Network',
          ...(page.isFlooding('Network') ? [TOO_MANY] : []),
          ...(network.dropped > 0 ? [`The first ${network.dropped} are no longer kept.`] : []),
          ...(lines.length === 0 ? ['No requests.'] : lastLines(lines)),
          ...(hidden > 0 ? [`${hidden} more with static.`] : []),
        ].join('\n')
      },
    }),
  ]
}

const FETCHED = ['Document', 'Fetch', 'XHR', 'WebSocket', 'EventSource', 'Ping', 'Preflight', 'CSPViolationReport']

const isStatic = ({ type, isSuccess }: NetworkRequest): boolean => isSuccess && !FETCHED.includes(type)

/** The note after the browser was asked to stop reporting. */
const TOO_MUCH = 'The page has logged more than can be recorded. The rest is left out until another page is loaded.'
const TOO_MANY =
  'The page has made more requests than can be recorded. The rest is left out until another page is loaded.'

const MATCHES = `(filter, urls) => {
  const pattern = new RegExp(filter)
  return urls.map((url) => pattern.test(url))
}`

/** Which addresses match. The page evaluates the expression, because the browser can stop one that takes forever. */
async function matches(page: Page, filter: string, urls: readonly string[], signal: AbortSignal): Promise<boolean[]> {
  try {
    new RegExp(filter)
  } catch (error) {
    throw new BrowserError('INVALID_ARGUMENTS', `arguments.filter: ${(error as Error).message}.`)
  }
  page.dialogs.assertNone()
  const expression = `(${MATCHES})(${JSON.stringify(filter)}, ${JSON.stringify(urls)})`
  const hangs = (): Error => new BrowserError('PAGE_HANGS', 'The page does not answer. Ask without a filter.')
  return within(ANSWER_MS, hangs, signal, async (limited) => {
    const contextId = await worldOf(page, mainFrameOf(page), limited)
    try {
      const params = { expression, contextId, returnByValue: true, timeout: FILTER_MS }
      const { result } = await page.debuggee.send('Runtime.evaluate', params, { signal: limited })
      return result.value as boolean[]
    } catch (error) {
      if (!(error instanceof ProtocolRefusal) || !/terminated/.test(error.message)) throw error
      throw new BrowserError('INVALID_ARGUMENTS', 'arguments.filter: the expression takes too long. Use a simpler one.')
    }
  })
}

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
