/** The tools that show a page's console and requests. They also work while a dialog is open. */
import { z } from 'zod'
import type { InstanceTool } from '../../../protocol/instance-tools.js'
import { BrowserError, ProtocolRefusal } from '../debuggee.js'
import { LEVELS } from './console-log.js'
import { mainFrameOf, worldOf } from './frames.js'
import { indented } from './kept-text.js'
import type { NetworkRequest } from './network-log.js'
import type { Page } from './page.js'
import { pageTool, type Toolkit } from './toolkit.js'
import { within } from './waiting.js'

const MAX_BYTES = 128 * 1024
/** How long a regular expression may run (`FILTER_MS`), and how long the page may take to answer (`ANSWER_MS`), in ms. */
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
        all: z.boolean().optional().describe('Whether to include the messages of earlier pages of this tab'),
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
          ...(network.dropped > 0 ? [`The first ${network.dropped} request(s) are no longer kept.`] : []),
          ...(lines.length > 0
            ? lastLines(lines)
            : hidden > 0
              ? []
              : [filter === undefined ? 'No requests.' : 'No request matches the filter.']),
          ...(hidden > 0 ? [`${hidden} request(s) for static files are hidden. Pass static: true to see them.`] : []),
        ].join('\n')
      },
    }),
  ]
}

const FETCHED = ['Document', 'Fetch', 'XHR', 'WebSocket', 'EventSource', 'Ping', 'Preflight', 'CSPViolationReport']

const isStatic = ({ type, isSuccess }: NetworkRequest): boolean => isSuccess && !FETCHED.includes(type)

/** Shown after a flood of events (floods.ts), because the browser no longer reports them. */
const TOO_MUCH = 'The page has logged more than can be recorded. The rest is left out until another page is loaded.'
const TOO_MANY =
  'The page has made more requests than can be recorded. The rest is left out until another page is loaded.'

const MATCHES = `(filter, urls) => {
  const pattern = new RegExp(filter)
  return urls.map((url) => pattern.test(url))
}`

/**
 * Returns for each address whether it matches. The page evaluates the regular expression, because there the browser can stop it when it takes too long.
 */
async function matches(page: Page, filter: string, urls: readonly string[], signal: AbortSignal): Promise<boolean[]> {
  try {
    new RegExp(filter)
  } catch (error) {
    throw new BrowserError('INVALID_ARGUMENTS', `arguments.filter: ${(error as Error).message}.`)
  }
  page.dialogs.assertNone()
  const expression = `(${MATCHES})(${JSON.stringify(filter)}, ${JSON.stringify(urls)})`
  const hangs = (): Error =>
    new BrowserError(
      'PAGE_HANGS',
      'The page, which applies the filter, does not answer. Call the tool without a filter.',
    )
  return within(ANSWER_MS, hangs, signal, async (limited) => {
    const contextId = await worldOf(page, mainFrameOf(page), limited)
    try {
      const params = { expression, contextId, returnByValue: true, timeout: FILTER_MS }
      const { result } = await page.debuggee.send('Runtime.evaluate', params, { signal: limited })
      return result.value as boolean[]
    } catch (error) {
      if (!(error instanceof ProtocolRefusal) || !/terminated/.test(error.message)) throw error
      throw new BrowserError(
        'INVALID_ARGUMENTS',
        `arguments.filter: the regular expression takes more than ${FILTER_MS} ms. Use a simpler one.`,
      )
    }
  })
}

function lastLines(lines: readonly string[]): readonly string[] {
  const encoder = new TextEncoder()
  let bytes = 0
  let first = lines.length
  while (first > 0) {
    bytes += encoder.encode(lines[first - 1]).length + 1
    if (bytes > MAX_BYTES) break
    first -= 1
  }
  return first === 0 ? lines : [`${first} earlier lines do not fit into this result.`, ...lines.slice(first)]
}
