/**
 * The service worker of the extension. The browser may stop and restart it at any time. So it adds its listeners synchronously, and keeps its state in
 * `chrome.storage`.
 */
import './no-code-from-text.js'
import { createBrowserTools } from './tools/index.js'
import { connectInstance } from '../connect-instance.js'
import { systemClock } from '../../system/clock.js'
import { createAttachments, targetOf } from './attachments.js'
import { badgeOf } from './badge.js'
import { readState, STOPPED, type ConnectionState } from './connection-state.js'
import { createConnector } from './connector.js'
import { createControl } from './control.js'
import { createControlledTabs } from './controlled-tabs.js'
import { refusalOf } from './page-access.js'
import { recall } from './remembered.js'
import { readSettings } from './settings.js'
import { SETTINGS_KEY, STATE_KEY, WAKE_KEY } from './storage-keys.js'
import { countRunning } from './working-tools.js'

const ALARM = 'connect'
const REFUSED_MS = 3000

// Hides the server's token from content scripts.
void chrome.storage.local.setAccessLevel({ accessLevel: 'TRUSTED_CONTEXTS' })

const memory = recall(chrome.storage.session)
const remembered = () => memory
const control = createControl({
  remembered,
  onLost: (tabId, reason) => tabs.lost(tabId, reason),
  onStray: (tabId, isStray) => void showStray(tabId, isStray).catch(() => undefined),
})
const attachments = createAttachments({
  remembered,
  onCancelled: (tabId) => void control.remove(tabId).catch(() => undefined),
  onOpening: () => control.opening(),
})
const tabs = createControlledTabs(control, attachments, remembered)

const refs = { last: 0, keep: async () => (await memory).change({ lastRef: refs.last }) }

let state: ConnectionState = STOPPED
let running = 0

async function show(): Promise<void> {
  const { text, colour, title } = badgeOf(state, running)
  await Promise.all([
    chrome.action.setBadgeText({ text }),
    chrome.action.setBadgeBackgroundColor({ color: colour }),
    chrome.action.setTitle({ title }),
    chrome.storage.session.set({ [STATE_KEY]: state }),
  ])
}

const connector = createConnector({
  connect: connectInstance,
  clock: systemClock,
  tools: countRunning(
    createBrowserTools(tabs, { isMac: navigator.userAgent.includes('Macintosh'), refs }),
    async (count) => {
      running = count
      await Promise.all([show(), (await memory).change({ isWorking: count > 0 })])
    },
  ),
  onState: (next) => {
    state = next
    void show()
  },
  onEnded: (settings) => void chrome.storage.local.set({ [SETTINGS_KEY]: { ...settings, isOn: false } }),
})

/** Resolves when the tabs of the previous run are detached and the connection is being made. All listeners wait for it. */
const started = memory
  .then(({ facts }) => {
    refs.last = facts.lastRef
    return attachments.cleanUp()
  })
  .then(async () => {
    const settings = readSettings((await chrome.storage.local.get(SETTINGS_KEY))[SETTINGS_KEY])
    // If the previous run ended with `stopped`, the person still sees why.
    const { [STATE_KEY]: left } = await chrome.storage.session.get(STATE_KEY)
    const earlier = readState(left)
    state = earlier.phase === 'stopped' ? earlier : STOPPED
    await show()
    connector.apply(settings)
  })

chrome.runtime.onInstalled.addListener(({ reason }) => {
  if (reason === 'install') void chrome.runtime.openOptionsPage()
})
// Without this listener, the browser would not start the service worker when the browser itself starts.
chrome.runtime.onStartup.addListener(() => undefined)
chrome.alarms.onAlarm.addListener(() => void started.then(connector.wake))
void chrome.alarms.get(ALARM).then(async (alarm) => {
  if (alarm === undefined) await chrome.alarms.create(ALARM, { periodInMinutes: 1 })
})

chrome.storage.onChanged.addListener((changes, area) => {
  const { [SETTINGS_KEY]: settings } = changes
  void started.then(() => {
    if (area === 'local' && settings !== undefined) connector.apply(readSettings(settings.newValue))
    if (area === 'session' && WAKE_KEY in changes) connector.wake()
  })
})

chrome.action.onClicked.addListener((tab) => void started.then(() => giveOrTake(tab)))

/** Shows `?` on the icon of a tab that is in a group of the extension but not under control (control.ts). */
async function showStray(tabId: number, isStray: boolean): Promise<void> {
  // Without `text`, the tab shows the badge that all tabs have.
  await chrome.action.setBadgeText({ tabId, ...(isStray && { text: '?' }) })
}

/** Puts a tab under control. Releases a tab that is already under control. */
async function giveOrTake(tab: chrome.tabs.Tab): Promise<void> {
  const { id = chrome.tabs.TAB_ID_NONE } = tab
  if (await control.has(id)) {
    await control.remove(id)
    return
  }
  const refusal = refusalOf((await targetOf(id))?.url ?? '')
  if (refusal === undefined) {
    await control.add(tab)
    await tabs.taken(id)
    return
  }
  await chrome.action.setBadgeText({ text: 'no', tabId: id })
  await chrome.action.setTitle({ title: `agent-tasks: ${refusal.message}`, tabId: id })
  systemClock.setTimeout(() => void chrome.action.setBadgeText({ tabId: id }).catch(() => undefined), REFUSED_MS)
}
