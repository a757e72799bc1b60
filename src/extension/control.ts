/**
 * The tabs under control: those of the groups that the extension has opened. The person sees them by the name and colour of the group, and
 * gives and takes tabs by moving them into it and out of it, or with a click on the icon of the extension, which does the same.
 */
import { BrowserError } from './debuggee.js'
import type { Remembered } from './remembered.js'

const GROUP = { title: 'agent-tasks', color: 'blue' } as const

export interface Control {
  /** In the order of the browser. */
  list(): Promise<readonly chrome.tabs.Tab[]>
  has(tabId: number): Promise<boolean>
  /** Puts a tab into the group of its window, which is opened if there is none. */
  add(tab: Pick<chrome.tabs.Tab, 'id' | 'windowId'>): Promise<void>
  /** Takes a tab out of its group. */
  remove(tabId: number): Promise<void>
  /** The window of the newest group. */
  window(): Promise<number | undefined>
}

/** @param onLost called with each tab that is under control no longer, and with some that never were */
export function createControl(
  remembered: () => Promise<Remembered>,
  onLost: (tabId: number, reason: BrowserError) => void,
): Control {
  chrome.tabs.onUpdated.addListener((tabId, { groupId }) => {
    if (groupId === undefined) return
    void remembered().then(async ({ facts }) => {
      if (facts.groups.includes(groupId)) return
      // A tab that closes leaves its group first.
      const isOpen = await chrome.tabs.get(tabId).then(
        () => true,
        () => false,
      )
      onLost(tabId, isOpen ? controlTaken() : tabClosed())
    })
  })
  chrome.tabs.onRemoved.addListener((tabId) => onLost(tabId, tabClosed()))
  chrome.tabGroups.onRemoved.addListener(({ id }) => {
    void remembered().then(({ facts, change }) => change({ groups: facts.groups.filter((group) => group !== id) }))
  })

  async function groups(): Promise<chrome.tabGroups.TabGroup[]> {
    const { facts } = await remembered()
    const all = await chrome.tabGroups.query({})
    return all.filter(({ id }) => facts.groups.includes(id))
  }

  return {
    list: async () => {
      const tabs = await Promise.all((await groups()).map(({ id }) => chrome.tabs.query({ groupId: id })))
      return tabs.flat()
    },
    has: async (tabId) => {
      const { facts } = await remembered()
      const tab = await chrome.tabs.get(tabId).catch(() => undefined)
      return tab !== undefined && facts.groups.includes(tab.groupId)
    },
    add: async ({ id: tabId = chrome.tabs.TAB_ID_NONE, windowId }) => {
      const there = (await groups()).find((group) => group.windowId === windowId)
      if (there !== undefined) {
        await chrome.tabs.group({ tabIds: tabId, groupId: there.id })
        return
      }
      const opened = await chrome.tabs.group({ tabIds: tabId, createProperties: { windowId } })
      const { facts, change } = await remembered()
      await change({ groups: [...facts.groups, opened] })
      await chrome.tabGroups.update(opened, GROUP)
    },
    remove: async (tabId) => {
      await chrome.tabs.ungroup(tabId)
    },
    window: async () => (await groups()).at(-1)?.windowId,
  }
}

export const controlTaken = (): BrowserError =>
  new BrowserError(
    'CONTROL_TAKEN',
    'The person has taken this tab back. Do not go on in it: choose another one with browser_tabs, or ask the person.',
  )

export const tabClosed = (): BrowserError =>
  new BrowserError('TAB_CLOSED', 'The tab was closed. Choose another one with browser_tabs, or open one.')
