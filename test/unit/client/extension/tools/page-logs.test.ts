/** What is kept of a page: its console, its requests, its dialog, its loading, and the names of its elements. */
import { describe, expect, it } from 'vitest'
import type { DebuggeeEvent } from '../../../../../src/client/extension/debuggee.js'
import { createConsoleLog, exceptionText } from '../../../../../src/client/extension/tools/console-log.js'
import { createDialogs, dialogText } from '../../../../../src/client/extension/tools/dialogs.js'
import { createLoading } from '../../../../../src/client/extension/tools/loading.js'
import { createNetworkLog } from '../../../../../src/client/extension/tools/network-log.js'
import { createRecent } from '../../../../../src/client/extension/tools/recent.js'
import { createRefs } from '../../../../../src/client/extension/tools/refs.js'
import { waitFor } from '../../../../support/wait-for.js'

const event = (method: string, params: object = {}): DebuggeeEvent =>
  ({ method, params, sessionId: undefined }) as never

describe('the last entries of a log', () => {
  it('are bounded in number and in bytes', () => {
    const recent = createRecent<string>({ count: 3, bytes: 10 }, (entry) => entry.length)
    for (const entry of ['a', 'b', 'c', 'd']) recent.add(entry)
    expect(recent.entries).toEqual(['b', 'c', 'd'])
    recent.add('123456789')
    expect(recent.entries).toEqual(['d', '123456789'])
    recent.add('x'.repeat(11))
    expect(recent.entries).toEqual([])
    expect(recent.dropped).toBe(6)
  })
})

describe('the console', () => {
  it('writes what was logged', () => {
    const log = createConsoleLog()
    const args = [
      { type: 'string', value: 'text' },
      { type: 'number', value: 1 },
      { type: 'bigint', unserializableValue: '1n' },
      { type: 'undefined' },
      { type: 'object', subtype: 'null', value: null },
      { type: 'function', description: '() => 1' },
      { type: 'object', preview: { subtype: 'error', description: 'Error: x', properties: [], overflow: false } },
      { type: 'object', preview: { overflow: true, properties: [{ name: 'a', type: 'string', value: 'b' }, { name: 'f', type: 'function' }] } }, // prettier-ignore
    ]
    log.take(event('Runtime.consoleAPICalled', { type: 'assert', args }))
    expect(log.list('error', false).map(({ text }) => text)).toEqual(['text 1 1n undefined null () => 1 Error: x {a: "b", f: function, ...}']) // prettier-ignore
    log.take(event('Log.entryAdded', { entry: { level: 'verbose', text: 'net', url: 'http://x/', lineNumber: 3 } }))
    expect(log.list('info', false)).toHaveLength(1)
    expect(log.list('debug', false).at(-1)).toMatchObject({ level: 'debug', text: 'net', source: ' @ http://x/:3' })
    log.startPage()
    expect(log.list('debug', false)).toEqual([])
    expect(log.list('debug', true)).toHaveLength(2)
  })

  it('writes what was thrown', () => {
    expect(exceptionText({ text: 'Uncaught' } as never)).toBe('Uncaught')
    expect(exceptionText({ text: 'Uncaught', exception: { type: 'number', value: 7 } } as never)).toBe('Thrown: 7')
  })
})

describe('the requests', () => {
  const sent = (requestId: string, more: object = {}) =>
    event('Network.requestWillBeSent', { requestId, loaderId: 'l', request: { method: 'GET', url: `http://x/${requestId}` }, type: 'Fetch', frameId: 'f', ...more }) // prettier-ignore
  const outcomes = (log: ReturnType<typeof createNetworkLog>) => log.requests.map(({ outcome }) => outcome)

  it('have outcomes, also those that are redirected, blocked or cancelled', () => {
    const log = createNetworkLog()
    log.take(sent('1'))
    log.take(sent('1', { redirectResponse: { status: 302 } }))
    log.take(event('Network.responseReceived', { requestId: '1', response: { status: 200, statusText: '' } }))
    log.take(event('Network.loadingFinished', { requestId: '1' }))
    log.take(sent('2'))
    log.take(event('Network.loadingFailed', { requestId: '2', errorText: 'net::ERR', blockedReason: 'csp' }))
    log.take(sent('3'))
    log.take(event('Network.loadingFailed', { requestId: '3', errorText: 'net::ERR', canceled: true }))
    log.take(event('Network.loadingFinished', { requestId: 'unknown' }))
    log.take(event('Network.responseReceived', { requestId: 'unknown' }))
    expect(outcomes(log)).toEqual(['[302] redirected', '[200]', '[failed] csp', '[cancelled]'])
    expect(log.awaited().size).toBe(0)
  })

  it('begin anew with each page, and count those in flight', () => {
    const log = createNetworkLog()
    log.setMainFrame('f')
    log.take(sent('1'))
    log.take(sent('l', { type: 'Document' }))
    log.take(sent('2'))
    const before = log.awaited()
    log.take(sent('3', { type: 'XHR' }))
    log.take(sent('4', { type: 'Image' }))
    expect(log.requests).toHaveLength(4)
    expect([...log.awaited(before)]).toEqual(['3'])
  })

  it('are bounded, those in flight as well', () => {
    const log = createNetworkLog()
    for (let index = 0; index < 1500; index += 1) log.take(sent(String(index)))
    expect(log.requests.length).toBeLessThanOrEqual(1000)
    expect(log.awaited().size).toBe(1000)
  })
})

describe('a dialog', () => {
  const opening = event('Page.javascriptDialogOpening', { type: 'alert', message: 'Hi' })

  it('is the result of work that opens it', async () => {
    const dialogs = createDialogs()
    const never = new Promise<never>(() => undefined)
    const racing = dialogs.race(() => never)
    dialogs.take(opening)
    expect(await racing).toMatchObject({ dialog: { message: 'Hi' } })
    expect(() => dialogs.assertNone()).toThrow(expect.objectContaining({ code: 'DIALOG_OPEN' }))
    dialogs.take(event('Page.javascriptDialogClosed'))
    expect(() => dialogs.assertNone()).not.toThrow()
    expect(await dialogs.race(() => Promise.resolve(1))).toEqual({ value: 1 })
  })

  it('leaves nothing unhandled when its work fails later', async () => {
    const dialogs = createDialogs()
    let fail: (error: Error) => void = () => undefined
    const racing = dialogs.race(() => new Promise((_resolve, reject) => (fail = reject)))
    dialogs.take(opening)
    await racing
    fail(new Error('late'))
    await waitFor(() => expect(dialogs.open).toBeDefined())
  })

  it('is told in words', () => {
    const dialog = { url: '', frameId: '', hasBrowserHandler: false, message: 'Name?', defaultPrompt: 'Ann' }
    expect(dialogText({ ...dialog, type: 'prompt' })).toBe(
      'The page shows a dialog (prompt): "Name?". The suggested answer is "Ann".',
    )
    expect(dialogText({ ...dialog, type: 'beforeunload' })).toBe('The page asks whether to leave it.')
  })
})

describe('loading', () => {
  it('is busy from the request of a page until it is there, or is a file', () => {
    const loading = createLoading('main', 'l1')
    const steps = [
      ['Page.frameRequestedNavigation', { frameId: 'other', disposition: 'currentTab' }, false],
      ['Page.frameRequestedNavigation', { frameId: 'main', disposition: 'newTab' }, false],
      ['Page.frameRequestedNavigation', { frameId: 'main', disposition: 'currentTab' }, true],
      ['Page.frameStartedLoading', { frameId: 'main' }, true],
      ['Page.frameStoppedLoading', { frameId: 'other' }, true],
      ['Page.frameStoppedLoading', { frameId: 'main' }, false],
      ['Page.frameRequestedNavigation', { frameId: 'main', disposition: 'currentTab' }, true],
      ['Page.downloadWillBegin', { suggestedFilename: 'a.csv' }, false],
    ] as const
    for (const [method, params, isBusy] of steps) {
      loading.take(event(method, params))
      expect(loading.isBusy, method).toBe(isBusy)
    }
    expect(loading.hasDownloads).toBe(true)
    expect(loading.takeDownloads()).toEqual(['a.csv'])
    expect(loading.takeDownloads()).toEqual([])
  })

  it('knows the frames that load, but for those that move to another process', () => {
    const loading = createLoading('main', 'l1')
    for (const frameId of ['main', 'a', 'b', 'c']) loading.take(event('Page.frameStartedLoading', { frameId }))
    const before = loading.frames()
    expect([...before]).toEqual(['a', 'b', 'c'])
    loading.take(event('Page.frameStoppedLoading', { frameId: 'a' }))
    loading.take(event('Target.attachedToTarget', { targetInfo: { targetId: 'b' } }))
    loading.take(event('Page.frameStartedLoading', { frameId: 'd' }))
    expect([...loading.frames()]).toEqual(['c', 'd'])
    expect([...loading.frames(before)]).toEqual(['d'])
    loading.take(event('Page.frameDetached', { frameId: 'd' }))
    expect([...loading.frames(before)]).toEqual([])
  })

  it('knows the page, and whether it can be read', () => {
    const loading = createLoading('main', 'l1')
    loading.take(event('Page.frameNavigated', { frame: { id: 'inner', loaderId: 'x' } }))
    expect(loading.page).toEqual({ loaderId: 'l1', isReady: true })
    loading.take(event('Page.frameNavigated', { frame: { id: 'main', loaderId: 'l2' } }))
    expect(loading.page).toEqual({ loaderId: 'l2', isReady: false })
    loading.take(event('Page.domContentEventFired'))
    expect(loading.page.isReady).toBe(true)
    loading.take({ ...event('Page.frameStartedLoading', { frameId: 'main' }), sessionId: 's' })
    expect(loading.isBusy).toBe(false)
  })
})

describe('the names of elements', () => {
  it('stay, are given once in all tabs, and go with their frame', () => {
    const counter = { last: 0 }
    const [one, two] = [createRefs(counter), createRefs(counter)]
    const element = { frameId: 'f', backendNodeId: 7 }
    expect(one.refOf(element)).toBe('e1')
    expect(two.refOf(element)).toBe('e2')
    expect(one.refOf({ ...element })).toBe('e1')
    expect(one.elementOf('e1')).toEqual(element)
    expect(() => one.elementOf('e2')).toThrow(expect.objectContaining({ code: 'REF_GONE' }))
    expect(() => one.elementOf('e3')).toThrow(expect.objectContaining({ code: 'ELEMENT_NOT_FOUND' }))
    one.refOf({ frameId: 'g', backendNodeId: 7 })
    one.forget('f')
    expect(() => one.elementOf('e1')).toThrow(expect.objectContaining({ code: 'REF_GONE' }))
    expect(one.elementOf('e3')).toEqual({ frameId: 'g', backendNodeId: 7 })
    expect(one.refOf(element)).toBe('e4')
  })

  it('are bounded', () => {
    const refs = createRefs({ last: 0 })
    for (let backendNodeId = 0; backendNodeId <= 50_000; backendNodeId += 1) refs.refOf({ frameId: 'f', backendNodeId })
    expect(() => refs.elementOf('e1')).toThrow(expect.objectContaining({ code: 'REF_GONE' }))
    expect(refs.elementOf('e50001')).toMatchObject({ backendNodeId: 50_000 })
  })
})
