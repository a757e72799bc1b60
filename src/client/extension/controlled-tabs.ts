/** Implements `Tabs`: the tools see only the tabs under control (control.ts). */
import { systemClock } from '../../system/clock.js'
import { omitUndefined } from '../../data/omit-undefined.js'
import type { Attachments } from './attachments.js'
import { tabClosed, type Control } from './control.js'
import { BrowserError, type Tab, type Tabs } from './debuggee.js'
import { refusalOf } from './page-access.js'
import type { Remembered } from './remembered.js'

/** How long `close` waits for a tab to close, in ms. The page may ask the person whether to leave it. */
const CLOSE_MS = 1000

export interface ControlledTabs extends Tabs {
  /** Call it when a tab is no longer under control. Detaches the tab, so that its commands fail with `reason`. */
  lost(tabId: number, reason: BrowserError): void
  /** Call it when the person has put a tab under control. The tab becomes the current one if there is none. */
  taken(tabId: number): Promise<void>
}

export function createControlledTabs(
  control: Control,
  attachments: Attachments,
  remembered: () => Promise<Remembered>,
): ControlledTabs {
  /** The tabs that the tools have asked to close, each with the tab that becomes the current one afterwards. */
  const closing = new Map<number, number | undefined>()

  async function choose(current: number | undefined): Promise<void> {
    await (await remembered()).change({ current, lost: undefined })
  }

  async function describe(tabs: readonly chrome.tabs.Tab[]): Promise<Tab[]> {
    const { facts } = await remembered()
    const targets = new Map((await chrome.debugger.getTargets()).map((target) => [target.tabId, target]))
    return tabs.map(({ id = chrome.tabs.TAB_ID_NONE }) => {
      const { url = '', title = '' } = targets.get(id) ?? {}
      return { id, url, title, isCurrent: id === facts.current }
    })
  }

  async function find(id: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (!(await control.has(id))) throw tabClosed()
  }

  return {
    refusal: refusalOf,
    list: async () => describe(await control.list()),
    open: async (signal) => {
      signal.throwIfAborted()
      const tab = await openTab(await control.window())
      await control.add(tab)
      await choose(tab.id)
      return { id: tab.id ?? chrome.tabs.TAB_ID_NONE, url: 'about:blank', title: '', isCurrent: true }
    },
    select: async (id, signal) => {
      await find(id, signal)
      await chrome.tabs.update(id, { active: true })
      await choose(id)
    },
    close: async (id, signal) => {
      await find(id, signal)
      const ids = (await control.list()).map((tab) => tab.id)
      const at = ids.indexOf(id)
      closing.set(id, ids[at + 1] ?? ids[at - 1])
      // The page may ask the person whether to leave it, and the answer may take long.
      const later = new Promise<void>((resolve) => void systemClock.setTimeout(resolve, CLOSE_MS))
      await Promise.race([chrome.tabs.remove(id), later])
    },
    current: async (signal) => {
      signal.throwIfAborted()
      const { facts } = await remembered()
      const { current, lost } = facts
      if (lost !== undefined) throw new BrowserError(lost.code, lost.message)
      if (current === undefined || !(await control.has(current))) {
        throw new BrowserError(
          'NO_TAB',
          'No tab is under control. Open a tab with browser_tabs, or ask the person to click the icon of agent-tasks in a tab.',
        )
      }
      return attachments.attach(current)
    },
    lost: (tabId, reason) => {
      attachments.end(tabId, reason)
      const follower = closing.get(tabId)
      const wasAsked = closing.delete(tabId) && reason.code === 'TAB_CLOSED'
      void remembered().then(async ({ facts, change }) => {
        if (facts.current !== tabId) return
        if (wasAsked) await choose(follower)
        else if (reason.code === 'CONTROL_TAKEN' || reason.code === 'TAB_CLOSED') {
          await change({ current: undefined, lost: { code: reason.code, message: reason.message } })
        }
      })
    },
    taken: async (tabId) => {
      const { facts } = await remembered()
      if (facts.current === undefined) await choose(tabId)
    },
  }
}

async function openTab(windowId: number | undefined): Promise<chrome.tabs.Tab> {
  const url = 'about:blank'
  try {
    return await chrome.tabs.create({ url, ...omitUndefined({ windowId }) })
  } catch {
    // The browser runs, but has no window.
    const tab = (await chrome.windows.create({ url }))?.tabs?.[0]
    if (tab === undefined) {
      throw new BrowserError('BROWSER_REFUSED', 'The browser did not open a window for the new tab.')
    }
    return tab
  }
}
