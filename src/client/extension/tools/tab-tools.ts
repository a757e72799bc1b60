/** The tools that open and close tabs, and that go to other pages. */
import { z } from 'zod'
import { instanceTool, type InstanceTool } from '../../../protocol/instance-tools.js'
import { BrowserError, type Tabs } from '../debuggee.js'
import { addressOf } from './addresses.js'
import { dialogText } from './dialogs.js'
import { dismissDialogs, endDialogs } from './leaving.js'
import type { Page } from './page.js'
import { perform, stopLoading, type Performance } from './perform.js'
import { pageTool, whileAttached, type Toolkit } from './toolkit.js'
import { pause, until, within } from './waiting.js'

const MAX_LISTED = 200
const URL_FIELD = z.string().min(1).max(10_000)

export function tabTools(toolkit: Toolkit): readonly InstanceTool[] {
  return [
    instanceTool({
      name: 'browser_tabs',
      description: 'Lists, opens, selects or closes tabs. The other tools act in the selected tab',
      inputSchema: z.strictObject({
        action: z.enum(['list', 'new', 'select', 'close']).describe('What to do'),
        index: z
          .int()
          .min(0)
          .optional()
          .describe('The number of the tab to select or close, as listed. Default for close: the current tab'),
        url: URL_FIELD.optional().describe('The address for the new tab'),
      }),
      execute: (input, { signal }) => runTabs(toolkit, input, signal),
    }),
    instanceTool({
      name: 'browser_navigate',
      description: 'Goes to an address',
      inputSchema: z.strictObject({ url: URL_FIELD.describe('The address') }),
      async execute({ url }, { signal }) {
        const address = addressOf(url, toolkit.tabs)
        const hasTab = (await toolkit.tabs.list(signal)).some(({ isCurrent }) => isCurrent)
        if (!hasTab) await toolkit.tabs.open(signal)
        return navigate(toolkit, address, signal)
      },
    }),
    pageTool(toolkit, {
      name: 'browser_navigate_back',
      description: 'Goes back to the previous page in the history of the tab',
      inputSchema: z.strictObject({}),
      run: (_input, call) => call.perform(() => goBack(call)),
    }),
  ]
}

interface TabsInput {
  readonly action: 'list' | 'new' | 'select' | 'close'
  readonly index?: number | undefined
  readonly url?: string | undefined
}

async function runTabs(toolkit: Toolkit, { action, index, url }: TabsInput, signal: AbortSignal): Promise<string> {
  const { tabs } = toolkit
  if (action === 'select' && index === undefined) {
    throw new BrowserError('INVALID_ARGUMENTS', 'arguments.index: got undefined, expected the number of a tab.')
  }
  if (url !== undefined && action !== 'new') {
    throw new BrowserError('INVALID_ARGUMENTS', `arguments.url: got an address, expected none for ${action}.`)
  }
  const before: string[] = []
  if (action === 'new') {
    const address = url === undefined ? undefined : addressOf(url, tabs)
    await tabs.open(signal)
    if (address !== undefined) before.push(await navigate(toolkit, address, signal))
  } else if (action !== 'list') {
    const id = await idOf(tabs, index, signal)
    if (action === 'select') await tabs.select(id, signal)
    else before.push(...(await closeTab(toolkit, id, signal)))
  }
  return [...before, await listTabs(tabs, signal)].join('\n')
}

async function idOf(tabs: Tabs, index: number | undefined, signal: AbortSignal): Promise<number> {
  const all = await tabs.list(signal)
  const tab = index === undefined ? all.find(({ isCurrent }) => isCurrent) : all[index]
  if (tab !== undefined) return tab.id
  if (index === undefined) throw new BrowserError('NO_TAB', 'There is no current tab. Open a tab with browser_tabs.')
  throw new BrowserError('TAB_CLOSED', `There is no tab ${index}. There are ${all.length} tabs, numbered from 0.`)
}

async function listTabs(tabs: Tabs, signal: AbortSignal): Promise<string> {
  const all = await tabs.list(signal)
  const more = all.length > MAX_LISTED ? [`${all.length - MAX_LISTED} more tabs are not listed.`] : []
  const lines = all.slice(0, MAX_LISTED).map(({ title, url, isCurrent }, index) => {
    return `- ${index}: ${isCurrent ? '(current) ' : ''}[${title.slice(0, 200)}](${url.slice(0, 500)})`
  })
  return [
    '### Open tabs',
    ...(all.length === 0 ? ['There are no tabs. Open a tab with action "new".'] : [...lines, ...more]),
  ].join('\n')
}

/** Closes a tab. If its page asks whether to leave it, the result says so and the tab stays open. */
async function closeTab(toolkit: Toolkit, id: number, signal: AbortSignal): Promise<readonly string[]> {
  const { tabs, times } = toolkit
  const isClosed = async (): Promise<boolean> => (await tabs.list(signal)).every((tab) => tab.id !== id)
  const current = (await tabs.list(signal)).find(({ isCurrent }) => isCurrent)
  const page = current?.id === id ? await toolkit.openCurrent(signal) : undefined
  const ended = page === undefined ? [] : await endDialogs(page, signal)
  await tabs.close(id, signal)
  const others = await dismissDialogs(page, isClosed, { ms: times.actionMs, signal })
  const dismissed = ended.length > 0 ? ended : others
  if (await isClosed()) return dismissed
  const dialog = page?.dialogs.open
  if (dialog?.type === 'beforeunload') {
    return [...dismissed, '### Modal state', `- ${dialogText(dialog)} Answer it with browser_handle_dialog.`]
  }
  throw new BrowserError(
    'PAGE_HANGS',
    'The tab is still open, because its page does not answer or asks whether to leave it. Ask the person to close the tab.',
  )
}

async function navigate(toolkit: Toolkit, url: string, signal: AbortSignal): Promise<string> {
  const page = await toolkit.openCurrent(signal)
  const call: Performance = { ...toolkit, page, signal: whileAttached(page, signal) }
  try {
    const ended = await leaveDialogs(call)
    return [...ended, await perform(call, () => goTo(call, url))].join('\n')
  } catch (error) {
    if (signal.aborted) stopLoading(page)
    throw error
  }
}

/**
 * Replaces a page that shows dialogs by an empty one in another process. The process of a page that opens dialogs without end loads no other page.
 *
 * If the page asks whether to leave it, it stays. It asks again when the tab goes to the address.
 */
async function leaveDialogs({ page, times, signal }: Performance): Promise<readonly string[]> {
  const { debuggee, dialogs, loading } = page
  const ended = await endDialogs(page, signal)
  if (ended.length === 0) return []
  const shown = loading.page
  debuggee.send('Page.navigate', { url: 'about:blank' }, { signal }).catch(() => undefined)
  const isLeft = (): boolean => loading.page !== shown && !loading.isBusy
  await dismissDialogs(page, isLeft, { ms: times.navigationMs, signal })
  if (dialogs.open?.type === 'beforeunload') {
    // The person may have answered the question meanwhile.
    await debuggee.send('Page.handleJavaScriptDialog', { accept: false }, { signal }).catch(() => undefined)
  }
  return ended
}

async function goTo({ page, times, signal }: Performance, url: string): Promise<string> {
  const late = (): Error =>
    new BrowserError('NAVIGATION_FAILED', `${url} did not answer within ${times.navigationMs / 1000} s.`)
  try {
    const { errorText, loaderId } = await within(times.navigationMs, late, signal, (limited) =>
      page.debuggee.send('Page.navigate', { url }, { signal: limited }),
    )
    if (errorText !== undefined) return await failedNavigation(page, url, errorText, times.settleMs, signal)
    // The tab has a new document, whose page may load for long. This waits only until its HTML is parsed.
    if (loaderId !== undefined) {
      await until(() => page.loading.page.loaderId !== loaderId || page.loading.page.isReady, {
        ms: times.loadMs,
        signal,
      })
    }
    return ''
  } catch (error) {
    stopLoading(page)
    throw error
  }
}

/**
 * Handles a navigation that the browser aborted. If it became a download, that is no error.
 * @returns a text about the download
 * @throws BrowserError `NAVIGATION_FAILED` otherwise
 */
async function failedNavigation(
  page: Page,
  url: string,
  errorText: string,
  settleMs: number,
  signal: AbortSignal,
): Promise<string> {
  await pause(settleMs, signal)
  if (page.loading.hasDownloads) {
    return 'The address is a file, which the browser downloads. The tab still shows the same page.'
  }
  const why = /^data:/i.test(url) ? ' The browser lets no extension go to a data: address.' : ''
  throw new BrowserError('NAVIGATION_FAILED', `${url.slice(0, 500)}: ${errorText}.${why}`)
}

async function goBack({ page, tabs, signal }: Performance): Promise<string> {
  const { entries, currentIndex } = await page.debuggee.send('Page.getNavigationHistory', undefined, { signal })
  const entry = entries[currentIndex - 1]
  if (entry === undefined) {
    throw new BrowserError(
      'NAVIGATION_FAILED',
      'The tab shows the first page of its history, so there is no page to go back to.',
    )
  }
  const refusal = tabs.refusal(entry.url)
  if (refusal !== undefined) throw refusal
  await page.debuggee.send('Page.navigateToHistoryEntry', { entryId: entry.id }, { signal })
  return ''
}
