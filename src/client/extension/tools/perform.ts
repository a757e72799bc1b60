/** Performs an action in a page, waits for the navigation and requests that it starts, and reports the outcome. */
import { BrowserError, type Tab, type Tabs } from '../debuggee.js'
import { dialogText } from './dialogs.js'
import type { Page } from './page.js'
import { pause, until } from './waiting.js'

/** The time limits of an action, in ms. */
export interface Times {
  /** How long an element may take to be ready for the action. */
  readonly actionMs: number
  /** How long to wait for the action to start a navigation. */
  readonly settleMs: number
  /** How long to wait for the requests that the action starts. */
  readonly requestsMs: number
  /** How long to wait for the page that the action opens. The page may load for longer. */
  readonly loadMs: number
  /** How long `browser_navigate` waits for the first answer from an address. */
  readonly navigationMs: number
  /** How long `browser_wait_for` waits for a text. */
  readonly waitMs: number
}

export const TIMES: Times = {
  actionMs: 3000,
  settleMs: 100,
  requestsMs: 2000,
  loadMs: 10_000,
  navigationMs: 60_000,
  waitMs: 30_000,
}

export interface Performance {
  readonly tabs: Tabs
  readonly page: Page
  readonly times: Times
  /** Aborts when the command is cancelled, and when the tab is no longer attached. */
  readonly signal: AbortSignal
}

/**
 * Runs an action in a page, and waits for what the action starts. Returns early if the page opens a dialog.
 * @returns the report for the model, which begins with the action's result
 */
export async function perform(performance: Performance, action: () => Promise<string>): Promise<string> {
  const { tabs, page, signal } = performance
  const before = new Set((await tabs.list(signal)).map(({ id }) => id))
  const begun = { requests: page.network.awaited(), frames: page.loading.frames() }
  page.loading.takeDownloads()
  try {
    const done = await page.dialogs.race(async () => {
      const result = await action()
      await settle(performance, begun)
      return result
    })
    const opened = (await tabs.list(signal)).flatMap((tab, index) => (before.has(tab.id) ? [] : [{ tab, index }]))
    return await report(page, 'value' in done ? done.value : undefined, opened, signal)
  } catch (error) {
    if (signal.aborted && page.loading.isBusy) stopLoading(page)
    throw error
  }
}

/** Stops a navigation that is in progress or about to begin. */
export function stopLoading({ debuggee }: Page): void {
  debuggee.send('Page.stopLoading').catch(() => undefined)
}

/** What was loading before an action. The action does not wait for it. */
interface Begun {
  readonly requests: ReadonlySet<string>
  readonly frames: ReadonlySet<string>
}

async function settle({ page, times, signal }: Performance, begun: Begun): Promise<void> {
  const { network, loading } = page
  const hasLoaded = (): Promise<boolean> => until(() => !loading.isBusy, { ms: times.loadMs, signal })
  const isQuiet = (): boolean => network.awaited(begun.requests).size + loading.frames(begun.frames).size === 0
  await pause(times.settleMs, signal)
  if (!(await hasLoaded())) return
  await until(() => loading.isBusy || isQuiet(), { ms: times.requestsMs, signal })
  await hasLoaded()
}

/** The maximum number of new tabs that a report lists. */
const MAX_OPENED = 20

interface OpenedTab {
  readonly tab: Tab
  readonly index: number
}

async function report(
  page: Page,
  result: string | undefined,
  opened: readonly OpenedTab[],
  signal: AbortSignal,
): Promise<string> {
  const { dialogs, loading } = page
  const dialog = dialogs.open
  const downloads = loading.takeDownloads()
  return [
    ...(result === undefined || result === '' ? [] : ['### Result', result]),
    ...(await pageLines(page, signal)),
    ...(dialog === undefined && loading.isBusy ? ['- The page is still loading.'] : []),
    ...(dialog === undefined
      ? []
      : ['### Modal state', `- ${dialogText(dialog)} Answer it with browser_handle_dialog.`]),
    ...(opened.length === 0 ? [] : ['### New tabs', ...openedLines(opened)]),
    ...(downloads.length === 0 ? [] : ['### Downloads', ...downloads.map((name) => `- ${name}`)]),
  ].join('\n')
}

function openedLines(opened: readonly OpenedTab[]): string[] {
  const lines = opened.slice(0, MAX_OPENED).map(({ tab, index }) => `- ${index}: ${tab.url.slice(0, 500)}`)
  return opened.length > MAX_OPENED ? [...lines, `- and ${opened.length - MAX_OPENED} more`] : lines
}

/** The address and the title of a page. The browser has them even while the page does not respond. */
export async function pageLines({ debuggee }: Page, signal: AbortSignal): Promise<string[]> {
  const { entries, currentIndex } = await debuggee.send('Page.getNavigationHistory', undefined, { signal })
  const { url = '', title = '' } = entries[currentIndex] ?? {}
  return ['### Page', `- Page URL: ${url.slice(0, 2000)}`, `- Page Title: ${title.slice(0, 500)}`]
}

/** Converts a refusal of the browser to `PAGE_NAVIGATED` if it means that the page was replaced. Returns any other error unchanged. */
export function navigatedError(error: unknown): unknown {
  const isGone =
    error instanceof Error &&
    /context|navigated or closed|Promise was collected|node with given id/i.test(error.message)
  if (!isGone || !(error instanceof BrowserError) || error.code !== 'BROWSER_REFUSED') return error
  return new BrowserError(
    'PAGE_NAVIGATED',
    'The page was replaced by another page before it answered. The result is lost.',
  )
}
