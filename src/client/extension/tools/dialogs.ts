/** The dialog of a page. While it is open, the page does not respond. */
import type { Protocol } from 'devtools-protocol'
import { BrowserError, type DebuggeeEvent } from '../debuggee.js'
import { keptText } from './kept-text.js'

export type Dialog = Pick<Protocol.Page.JavascriptDialogOpeningEvent, 'type' | 'message' | 'defaultPrompt'>

const TEXT_CHARS = 2000

export function createDialogs() {
  let open: Dialog | undefined
  const waiting = new Set<(dialog: Dialog) => void>()
  return {
    take: (event: DebuggeeEvent): void => {
      if (event.method === 'Page.javascriptDialogClosed') open = undefined
      if (event.method !== 'Page.javascriptDialogOpening') return
      const { type, message, defaultPrompt = '' } = event.params
      const dialog = {
        type,
        message: keptText(message, TEXT_CHARS),
        defaultPrompt: keptText(defaultPrompt, TEXT_CHARS),
      }
      open = dialog
      for (const resolve of waiting) resolve(dialog)
      waiting.clear()
    },
    get open() {
      return open
    },
    /** Starts the work. Resolves with its result, or with the dialog that the page opens first. The work then continues when the dialog is closed. */
    async race<T>(work: () => Promise<T>): Promise<{ value: T } | { dialog: Dialog }> {
      let opened: (dialog: Dialog) => void = () => undefined
      const dialog = new Promise<Dialog>((resolve) => {
        opened = resolve
        waiting.add(resolve)
      })
      const working = work()
      // If the dialog comes first, nothing awaits `working` any more. This handler keeps a later failure from being an unhandled rejection.
      working.catch(() => undefined)
      try {
        return await Promise.race([working.then((value) => ({ value })), dialog.then((one) => ({ dialog: one }))])
      } finally {
        waiting.delete(opened)
      }
    },
    /** @throws BrowserError `DIALOG_OPEN` if the page shows a dialog */
    assertNone: (): void => {
      if (open !== undefined) throw openError(open)
    },
  }
}

export const openError = (dialog: Dialog): BrowserError =>
  new BrowserError('DIALOG_OPEN', `${dialogText(dialog)} Answer it with browser_handle_dialog first.`)

export function dialogText({ type, message, defaultPrompt }: Dialog): string {
  const said = type === 'beforeunload' ? 'asks whether to leave it' : `shows a dialog (${type}): ${quote(message)}`
  return `The page ${said}.${type === 'prompt' && defaultPrompt ? ` The suggested answer is ${quote(defaultPrompt)}.` : ''}`
}

const quote = (text: string): string => JSON.stringify(text)
