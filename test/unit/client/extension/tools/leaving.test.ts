/** How a page that shows dialogs is closed and left. */
import { describe, expect, it } from 'vitest'
import type { DebuggeeEvent, Tabs } from '../../../../../src/client/extension/debuggee.js'
import { createDialogs } from '../../../../../src/client/extension/tools/dialogs.js'
import { createLoading } from '../../../../../src/client/extension/tools/loading.js'
import { createNetworkLog } from '../../../../../src/client/extension/tools/network-log.js'
import type { Page } from '../../../../../src/client/extension/tools/page.js'
import { TIMES } from '../../../../../src/client/extension/tools/perform.js'
import { tabTools } from '../../../../../src/client/extension/tools/tab-tools.js'
import type { Toolkit } from '../../../../../src/client/extension/tools/toolkit.js'

const EMPTY = 'about:blank'
const ADDRESS = 'http://127.0.0.1/left'
const WAS_DISMISSED = 'The page shows a dialog (alert): "again". It was dismissed.'
const ASKS = 'The page asks whether to leave it. Answer it with browser_handle_dialog.'

interface Shown {
  /** How many dialogs its script shows, one after another. */
  readonly dialogs: number
  /** How many it shows while it is being closed or left, which goes on when they are answered. */
  readonly later?: number
  readonly asks?: boolean
  readonly refusesToClose?: boolean
}

/** A tab whose page shows dialogs, and does nothing else while one is open. */
function tabWith({ dialogs: count, later = 0, refusesToClose = false, ...shown }: Shown) {
  const dialogs = createDialogs()
  const loading = createLoading('main', 'shown')
  const seen: string[] = []
  let [left, isOpen, url] = [count, true, 'http://127.0.0.1/shown']
  let asks = shown.asks === true
  let onIdle: (() => void)[] = []
  let stay: () => void = () => undefined

  const tell = (method: string, params: object = {}): void => {
    const event = { method, params, sessionId: undefined } as unknown as DebuggeeEvent
    dialogs.take(event)
    loading.take(event)
  }
  const open = (type: string): void =>
    tell('Page.javascriptDialogOpening', { type, message: type === 'alert' ? 'again' : '' })
  const goOn = (): void => {
    if (left > 0) {
      left -= 1
      open('alert')
      return
    }
    const waiting = onIdle
    onIdle = []
    for (const resolve of waiting) resolve()
  }
  const idle = (): Promise<void> =>
    new Promise((resolve) => {
      onIdle.push(resolve)
      if (dialogs.open === undefined) setTimeout(goOn, 5)
    })
  /** What the browser does to close or leave a page: it asks none that shows a dialog. Returns whether it is left. */
  const leave = async (): Promise<boolean> => {
    const isAsked = dialogs.open === undefined
    seen.push(isAsked ? 'asked' : 'not asked')
    if (isAsked) {
      left += later
      await idle()
      if (asks) {
        open('beforeunload')
        await new Promise<void>((resolve) => (stay = resolve))
        return false
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 60))
    left = 0
    asks = false
    return true
  }
  const answers: Record<string, (params: { url: string; accept: boolean }) => unknown> = {
    'Runtime.evaluate': idle,
    'Page.handleJavaScriptDialog': ({ accept }) => {
      seen.push(`${accept ? 'accepted' : 'dismissed'} ${String(dialogs.open?.type)}`)
      tell('Page.javascriptDialogClosed')
      stay()
      setTimeout(goOn, 5)
    },
    'Page.navigate': async (params) => {
      seen.push(`to ${params.url}`)
      if (!(await leave())) return { frameId: 'main', errorText: 'net::ERR_ABORTED' }
      tell('Page.frameStartedLoading', { frameId: 'main' })
      tell('Page.frameNavigated', { frame: { id: 'main', loaderId: params.url } })
      tell('Page.javascriptDialogClosed')
      tell('Page.domContentEventFired')
      tell('Page.frameStoppedLoading', { frameId: 'main' })
      url = params.url
      return { frameId: 'main', loaderId: url }
    },
    'Page.getNavigationHistory': () => ({ entries: [{ url, title: 'Title' }], currentIndex: 0 }),
  }
  const debuggee = {
    send: async (method: string, params: never) => answers[method]?.(params),
    detached: new AbortController().signal,
  }
  const tabs: Partial<Tabs> = {
    list: async () => (isOpen ? [{ id: 1, url, title: 'Title', isCurrent: true }] : []),
    close: async () => {
      void leave().then((isLeft) => (isOpen = !isLeft || refusesToClose))
    },
    refusal: () => undefined,
  }
  const page = { id: 1, debuggee, dialogs, loading, network: createNetworkLog() } as unknown as Page
  const times = { ...TIMES, actionMs: 300, settleMs: 10, loadMs: 500 }
  const toolkit = { tabs, times, openCurrent: async () => page } as unknown as Toolkit
  goOn()

  async function use(name: string, input: object): Promise<string> {
    const tool = tabTools(toolkit).find((one) => one.name === name)
    const context = { signal: new AbortController().signal, progress: () => undefined }
    return (await tool?.execute(input, context)) as string
  }
  return {
    seen,
    close: () => use('browser_tabs', { action: 'close' }),
    navigate: () => use('browser_navigate', { url: ADDRESS }),
    ask: () => open('beforeunload'),
    /** Ends what waits for the answer. */
    stay: () => stay(),
  }
}

describe('a tab that is closed', () => {
  it('is gone afterwards', async () => {
    expect(await tabWith({ dialogs: 0 }).close()).toMatch(/^### Open tabs\nThere are no tabs/)
  })

  it('shows a few dialogs: each is dismissed before it is asked to close', async () => {
    const tab = tabWith({ dialogs: 3 })
    const text = await tab.close()
    expect(text).toContain(WAS_DISMISSED)
    expect(text).toContain('There are no tabs.')
    expect(tab.seen).toEqual([...Array<string>(3).fill('dismissed alert'), 'asked'])
  })

  it('shows dialogs without end: it shows one when it is closed, so that the browser does not ask it', async () => {
    const tab = tabWith({ dialogs: Infinity, asks: true })
    const text = await tab.close()
    expect(text).toContain(WAS_DISMISSED)
    expect(text).toContain('There are no tabs.')
    expect(tab.seen).toContain('not asked')
  })

  it('shows dialogs while it closes: each is dismissed', async () => {
    const tab = tabWith({ dialogs: 0, later: 2 })
    const text = await tab.close()
    expect(text).toContain(WAS_DISMISSED)
    expect(text).toContain('There are no tabs.')
    expect(tab.seen).toEqual(['asked', 'dismissed alert', 'dismissed alert'])
  })

  it('asks after its dialog: the caller is to answer', async () => {
    const tab = tabWith({ dialogs: 1, asks: true })
    const text = await tab.close()
    expect(text).toContain(WAS_DISMISSED)
    expect(text).toContain(ASKS)
    expect(tab.seen).toEqual(['dismissed alert', 'asked'])
    await expect(tab.close()).rejects.toMatchObject({ code: 'DIALOG_OPEN' })
    expect(tab.seen).toEqual(['dismissed alert', 'asked'])
    tab.stay()
  })

  it('does not close', async () => {
    await expect(tabWith({ dialogs: 1, refusesToClose: true }).close()).rejects.toMatchObject({ code: 'PAGE_HANGS' })
  })
})

describe('a page that is left', () => {
  it('shows dialogs without end: it is left for an empty page first, without being asked', async () => {
    const tab = tabWith({ dialogs: Infinity, asks: true })
    const text = await tab.navigate()
    expect(text).toContain(WAS_DISMISSED)
    expect(text).toContain(`Page URL: ${ADDRESS}`)
    const from = tab.seen.indexOf(`to ${EMPTY}`)
    expect(tab.seen.slice(0, from)).toEqual(Array<string>(from).fill('dismissed alert'))
    expect(from).toBeGreaterThan(1)
    expect(tab.seen[from + 1]).toBe('not asked')
    expect(tab.seen.indexOf(`to ${ADDRESS}`)).toBeGreaterThan(from)
  })

  it('has one dialog', async () => {
    const tab = tabWith({ dialogs: 1 })
    expect(await tab.navigate()).toBe(`### Modal state\n- ${WAS_DISMISSED}\n### Page\n- Page URL: ${ADDRESS}\n- Page Title: Title`) // prettier-ignore
    expect(tab.seen).toEqual(['dismissed alert', `to ${EMPTY}`, 'asked', `to ${ADDRESS}`, 'asked'])
  })

  it('asks after its dialog: the caller is to answer, on the way to the address', async () => {
    const tab = tabWith({ dialogs: 1, asks: true })
    expect(await tab.navigate()).toContain(ASKS)
    expect(tab.seen.slice(-3)).toEqual(['dismissed beforeunload', `to ${ADDRESS}`, 'asked'])
    await expect(tab.navigate()).rejects.toMatchObject({ code: 'DIALOG_OPEN' })
    tab.stay()
  })

  it('asks already', async () => {
    const tab = tabWith({ dialogs: 0 })
    tab.ask()
    await expect(tab.navigate()).rejects.toMatchObject({ code: 'DIALOG_OPEN' })
    expect(tab.seen).toEqual([])
  })
})
