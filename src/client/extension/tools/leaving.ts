/**
 * Dismisses the dialogs of a page that a command closes or leaves. A page can open one dialog after another without end, and so keep a command waiting.
 */
import { dialogText } from './dialogs.js'
import type { Page } from './page.js'
import { until } from './waiting.js'

/** How long a page may keep opening dialogs, in ms. After that it is closed or left without being asked. */
const ANSWER_MS = 2000

type ShownPage = Pick<Page, 'dialogs' | 'debuggee'>

/**
 * Dismisses the page's dialog and those that follow, until the page responds. The page can then be asked whether to leave it. If a page does not stop
 * opening dialogs, its last dialog stays open, because the browser asks no page that shows a dialog.
 * @returns lines about the first dialog, for the result of the tool
 * @throws BrowserError `DIALOG_OPEN` if the dialog asks whether to leave the page, so that the caller answers it
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
 * Dismisses each dialog until `isDone` returns true, or `limits.ms` have passed. Stops at a dialog that asks whether to leave the page, because the
 * caller answers it.
 * @param page undefined if the tab is not attached, so that its dialogs are unknown
 * @returns lines about the first dismissed dialog, for the result of the tool
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
      // The dialog may have been closed meanwhile, for example by the person.
      await page.debuggee.send('Page.handleJavaScriptDialog', { accept: false }, { signal }).catch(() => undefined)
    }
    return isDone()
  }, limits)
  return said
}
