/** Dismisses the dialogs of a page that is being closed or left, because a page can open one after another without end. */
import { dialogText } from './dialogs.js'
import type { Page } from './page.js'
import { until } from './waiting.js'

/** How long a page may keep opening dialogs before it is closed or left without its answer, in ms. */
const ANSWER_MS = 2000

type ShownPage = Pick<Page, 'dialogs' | 'debuggee'>

/**
 * Dismisses the page's dialog and those that follow, until the page responds and can ask whether to leave it. If a page keeps opening dialogs, one is
 * left open: the browser does not ask such a page, while it would wait for the answer of any other page.
 * @returns a text about the first dialog
 * @throws BrowserError `DIALOG_OPEN` for the question whether to leave the page, which answers a request to leave it
 */
export async function endDialogs(page: ShownPage, signal: AbortSignal): Promise<readonly string[]> {
  const { dialogs, debuggee } = page
  if (dialogs.open === undefined) return []
  if (dialogs.open.type === 'beforeunload') dialogs.assertNone()
  let isAnswered = false
  debuggee
    .send('Runtime.evaluate', { expression: '0' }, { signal })
    .then(() => (isAnswered = true))
    .catch(() => undefined)
  const limits = { ms: ANSWER_MS, signal }
  const said = await dismissDialogs(page, () => isAnswered && dialogs.open === undefined, limits)
  await until(() => isAnswered || dialogs.open !== undefined, limits)
  return said
}

/**
 * Dismisses each dialog until the work is done, for at most `ms`, or until the page asks whether to leave it, which is for the caller to answer.
 * @param page undefined when it is not attached, and has no known dialog
 * @returns a text about the first dismissed dialog
 */
export async function dismissDialogs(
  page: ShownPage | undefined,
  isDone: () => boolean | Promise<boolean>,
  limits: { ms: number; signal: AbortSignal },
): Promise<readonly string[]> {
  const { signal } = limits
  const said: string[] = []
  await until(async () => {
    const dialog = page?.dialogs.open
    if (dialog?.type === 'beforeunload') return true
    if (page !== undefined && dialog !== undefined) {
      if (said.length === 0) said.push('### Modal state', `- ${dialogText(dialog)} It was dismissed.`)
      // The dialog may have been closed meanwhile.
      await page.debuggee.send('Page.handleJavaScriptDialog', { accept: false }, { signal }).catch(() => undefined)
    }
    return isDone()
  }, limits)
  return said
}
