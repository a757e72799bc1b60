/** Ends the dialogs of a page that is about to be closed or left: a page can show one after another for ever. */
import { dialogText } from './dialogs.js'
import type { Page } from './page.js'
import { until } from './waiting.js'

/** How long the dialogs may take to end, in ms. */
const CLOSED_MS = 10_000
/** How many looks in a row find no dialog when the scripts have ended. */
const LOOKS = 8

/**
 * Dismisses the dialog that the page shows, and stops its scripts, which could show the next one.
 * @returns what to say of it
 * @throws BrowserError `DIALOG_OPEN` for the question whether to leave the page, which is the answer to leaving it
 */
export async function endDialogs(page: Page, signal: AbortSignal): Promise<readonly string[]> {
  const { dialogs, debuggee } = page
  const dialog = dialogs.open
  if (dialog === undefined) return []
  if (dialog.type === 'beforeunload') dialogs.assertNone()
  const toAll = (send: (sessionId: string | undefined) => Promise<unknown>): Promise<unknown> =>
    Promise.allSettled(debuggee.sessions.allowed.map(send))
  // The page answers when the script that shows the dialogs has ended.
  let isStopped = false
  void toAll((sessionId) =>
    debuggee.send('Emulation.setScriptExecutionDisabled', { value: true }, { sessionId, signal }),
  ).then(() => (isStopped = true))
  let looksWithout = 0
  await until(
    async () => {
      if (dialogs.open === undefined) return isStopped && (looksWithout += 1) === LOOKS
      looksWithout = 0
      // A script is ended where it shows a dialog: the request has to be there before the dialog is dismissed.
      void toAll((sessionId) => debuggee.send('Runtime.terminateExecution', undefined, { sessionId, signal }))
      // It may have been closed meanwhile.
      await debuggee.send('Page.handleJavaScriptDialog', { accept: false }, { signal }).catch(() => undefined)
      return false
    },
    { ms: CLOSED_MS, signal },
  )
  return ['### Modal state', `- ${dialogText(dialog)} It was dismissed, and the scripts of the page were stopped.`]
}

/** Lets the scripts of the tab run again. */
export async function startScripts({ debuggee }: Page, signal: AbortSignal): Promise<void> {
  for (const sessionId of debuggee.sessions.allowed) {
    await debuggee.send('Emulation.setScriptExecutionDisabled', { value: false }, { sessionId, signal })
  }
}
