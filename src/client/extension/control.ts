/**
 * The tabs under control, in which commands may act. The extension puts a tab under control if the extension itself or a page under control opened it,
 * or if the person clicked the icon in it. The tab must also stay in a tab group of the extension.
 *
 * Being in such a group is not enough: another extension can move a tab into it, and the browser puts a new tab into the group of the tab beside it.
 * Such a tab is not under control until the person clicks the icon in it.
 */
import { BrowserError } from './debuggee.js'
import { createOpenedTabs } from './opened-tabs.js'
import type { Remembered } from './remembered.js'

const GROUP = { title: 'agent-tasks', color: 'blue' } as const

export interface Control {
  /** Returns the tabs under control, in the order in which the browser shows them. */
  list(): Promise<readonly chrome.tabs.Tab[]>
  has(tabId: number): Promise<boolean>
  /** Puts a tab under control and into the extension's group of its window. Creates the group if the window has none. */
  add(tab: Pick<chrome.tabs.Tab, 'id' | 'windowId'>): Promise<void>
  /** Ends the control of a tab, and removes the tab from its group. */
  remove(tabId: number): Promise<void>
  /** Announces that a page under control is about to open a tab, so that the new tab comes under control, too. */
  opening(): void
  /** Returns the id of the window with the newest group; undefined if there is no group. */
  window(): Promise<number | undefined>
}

export interface ControlOptions {
  readonly remembered: () => Promise<Remembered>
  /** Called with each tab that is no longer under control. It is also called with some tabs that never were. */
  readonly onLost: (tabId: number, reason: BrowserError) => void
  /** Called with `true` for a tab that is in a group but not under control, and with `false` when that ends. */
  readonly onStray: (tabId: number, isStray: boolean) => void
}

export function createControl({ remembered, onLost, onStray }: ControlOptions): Control {
  const opened = createOpenedTabs()

  chrome.tabs.onCreated.addListener(({ id, groupId, openerTabId }) => {
    // A tab that an extension creates has no opener. `add` puts the tabs of this extension under control.
    if (id === undefined || openerTabId === undefined) return
    const isOurs = opened.isAnnounced()
    void remembered().then(async ({ facts }) => {
      // A page may also open a window. The tab in it is in no group, and does not come under control.
      if (!facts.groups.includes(groupId)) return
      if (isOurs) await give(id)
      else onStray(id, true)
    })
  })
  chrome.tabs.onUpdated.addListener((tabId, { groupId, status }, tab) => {
    if (groupId === undefined && status === undefined) return
    void remembered().then(async ({ facts }) => {
      if (groupId === undefined) {
        // The browser removes the badge of a tab that loads another page, so the badge is set again.
        if (facts.groups.includes(tab.groupId) && !facts.given.includes(tabId)) onStray(tabId, true)
        return
      }
      if (facts.groups.includes(groupId)) {
        if (!facts.given.includes(tabId)) onStray(tabId, true)
        return
      }
      await take(tabId)
      // A tab that is being closed leaves its group first. In that case the person has not taken the tab back.
      const isOpen = await chrome.tabs.get(tabId).then(
        () => true,
        () => false,
      )
      if (isOpen) onStray(tabId, false)
      onLost(tabId, isOpen ? controlTaken() : tabClosed())
    })
  })
  chrome.tabs.onRemoved.addListener((tabId) => {
    void take(tabId)
    onLost(tabId, tabClosed())
  })
  chrome.tabGroups.onRemoved.addListener(({ id }) => {
    void remembered().then(({ facts, change }) => change({ groups: facts.groups.filter((group) => group !== id) }))
  })

  async function give(tabId: number): Promise<void> {
    const { facts, change } = await remembered()
    if (!facts.given.includes(tabId)) await change({ given: [...facts.given, tabId] })
  }

  async function take(tabId: number): Promise<void> {
    const { facts, change } = await remembered()
    if (facts.given.includes(tabId)) await change({ given: facts.given.filter((id) => id !== tabId) })
  }

  async function groups(): Promise<chrome.tabGroups.TabGroup[]> {
    const { facts } = await remembered()
    const all = await chrome.tabGroups.query({})
    return all.filter(({ id }) => facts.groups.includes(id))
  }

  async function group(tabId: number, windowId: number): Promise<void> {
    const there = (await groups()).find((one) => one.windowId === windowId)
    if (there !== undefined) {
      await chrome.tabs.group({ tabIds: tabId, groupId: there.id })
      return
    }
    const created = await chrome.tabs.group({ tabIds: tabId, createProperties: { windowId } })
    const { facts, change } = await remembered()
    await change({ groups: [...facts.groups, created] })
    await chrome.tabGroups.update(created, GROUP)
  }

  return {
    list: async () => {
      const { facts } = await remembered()
      const tabs = await Promise.all((await groups()).map(({ id }) => chrome.tabs.query({ groupId: id })))
      return tabs.flat().filter(({ id = chrome.tabs.TAB_ID_NONE }) => facts.given.includes(id))
    },
    has: async (tabId) => {
      const { facts } = await remembered()
      const tab = await chrome.tabs.get(tabId).catch(() => undefined)
      return tab !== undefined && facts.given.includes(tabId) && facts.groups.includes(tab.groupId)
    },
    add: async ({ id: tabId = chrome.tabs.TAB_ID_NONE, windowId }) => {
      await group(tabId, windowId)
      await give(tabId)
      onStray(tabId, false)
    },
    remove: async (tabId) => {
      await take(tabId)
      await chrome.tabs.ungroup(tabId)
    },
    opening: opened.announce,
    window: async () => (await groups()).at(-1)?.windowId,
  }
}

export const controlTaken = (): BrowserError =>
  new BrowserError(
    'CONTROL_TAKEN',
    'The person has taken this tab back. Do not use it: select another tab with browser_tabs, or ask the person.',
  )

export const tabClosed = (): BrowserError =>
  new BrowserError('TAB_CLOSED', 'The tab was closed. Select another tab with browser_tabs, or open a new one.')
