/** What pages and models try against the browser extension, in Chromium, against a real server. */
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { WebSocketServer } from 'ws'
import { EXTENSION_ORIGIN } from '../../src/protocol/browser-extension.js'
import { startTaskServer, type TaskServer } from '../../src/server/index.js'
import { startExtensionBrowser, waitFor, type ExtensionBrowser } from '../support/extension-browser.js'
import { refIn } from '../support/tool-pages.js'

const TOKEN = 'not-for-pages-'.repeat(3)
const OPTIONS = `${EXTENSION_ORIGIN}/options/options.html`

let browser: ExtensionBrowser
let server: TaskServer
const pages = createServer((request, response) => {
  const to = new URL(request.url ?? '', 'http://x').searchParams.get('to')
  response.writeHead(to === null ? 200 : 302, { 'content-type': 'text/html', ...(to !== null && { location: to }) })
  response.end(
    `<!doctype html><title>${request.url?.slice(0, 20)}</title><link rel="icon" href="data:,"><button>One</button>`,
  )
}).listen(0, '127.0.0.1')
let site: string

beforeAll(async () => {
  if (!pages.listening) await once(pages, 'listening')
  site = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`
  browser = await startExtensionBrowser()
  server = await startTaskServer({
    port: 0,
    tasks: { wsPort: 0 },
    logLevel: 'silent',
    env: {},
    auth: { tokens: [TOKEN] },
  })
  await browser.connect(server.httpUrl, { token: TOKEN })
  await browser.phase('connected')
})
afterAll(async () => {
  await browser.close()
  await server.close({ drainMs: 0 })
  pages.closeAllConnections()
  await new Promise((resolve) => pages.close(resolve))
})

/** Runs a command to its end. Returns its text, or its code and message. */
async function use(tool_name: string, args: Record<string, unknown> = {}): Promise<string> {
  const answer = await waitFor(async () => {
    const submitted = server.taskManager.submitTask({
      type: 'task_submit',
      task_name: 'Attack',
      task_intention: '',
      instanceId: 'browser',
      commands: [{ tool_name, args, intention: '' }],
    })
    return 'taskId' in submitted ? submitted : undefined
  }, 'the connection')
  const task = await waitFor(async () => {
    const now = server.taskManager.getTask(answer.taskId)
    return now?.completedAt === undefined ? undefined : now
  }, tool_name)
  const [command] = task.commands
  if (command?.status !== 'success') return `${command?.error?.code} ${command?.error?.message}`
  const { content = [] } = Object(command.result) as { content?: { text?: string }[] }
  return content.map(({ text = '' }) => text).join('\n')
}

const evaluate = (code: string): Promise<string> => use('browser_evaluate', { function: code })
const STORED = `() => chrome.storage.local.get().then((all) => JSON.stringify(all))`

/** Gives a tab to the extension, and makes it the current one. */
async function give(tabId: number, ending: string): Promise<void> {
  await browser.clickIcon(tabId)
  const index = await waitFor(async () => {
    const line = (await use('browser_tabs', { action: 'list' })).split('\n').find((one) => one.endsWith(`${ending})`))
    return /^- (\d+):/.exec(line ?? '')?.[1]
  }, ending)
  await use('browser_tabs', { action: 'select', index: Number(index) })
}

it('E1: a tab that goes back to the options page does not show it the token', async () => {
  const tab = await browser.openTab(`${OPTIONS}?mine`)
  // A page that is left before it is loaded has no place in the history.
  await waitFor(async () => {
    const status = await browser.inOptions<string>(`return (await chrome.tabs.get(${tab})).status`)
    return status === 'complete' ? true : undefined
  }, 'the options page')
  await browser.inOptions(`await chrome.tabs.update(${tab}, { url: '${site}/later' })`)
  await waitFor(async () => {
    const { targetInfos } = await browser.devtools.send('Target.getTargets')
    return targetInfos.some(({ url }) => url === `${site}/later`) ? true : undefined
  }, 'the page')
  await give(tab, '/later')
  expect(await use('browser_navigate_back')).toMatch(/^PAGE_NOT_ALLOWED/)
  await evaluate('() => { history.back(); return new Promise(() => undefined) }')
  for (const [name, args] of [
    ['browser_evaluate', { function: STORED }],
    ['browser_snapshot', {}],
    ['browser_take_screenshot', {}],
    ['browser_type', { target: '#url', text: 'http://127.0.0.1:1' }],
  ] as const) {
    const text = await use(name, args)
    expect(text).not.toContain(TOKEN)
    expect(text).toMatch(/^PAGE_NOT_ALLOWED/)
  }
  await browser.inOptions(`await chrome.tabs.remove(${tab})`)
})

it('E1: a tab in which the person opens the options page is left alone', async () => {
  await use('browser_tabs', { action: 'new' })
  await evaluate('() => 1')
  const tab = await browser.inOptions<number>(
    `return (await chrome.storage.session.get('remembered')).remembered.current`,
  )
  await browser.inOptions(`await chrome.tabs.update(${tab}, { url: '${OPTIONS}?overwritten' })`)
  await waitFor(async () => {
    const text = await use('browser_evaluate', { function: '() => location.href' })
    expect(text).not.toContain(OPTIONS)
    return text.startsWith('PAGE_NOT_ALLOWED') ? true : undefined
  }, 'the refusal')
  await browser.inOptions(`await chrome.tabs.remove(${tab})`)
})

it('bounds what an action reports of tabs with endless addresses', async () => {
  await use('browser_tabs', { action: 'new', url: `${site}/opener` })
  const text = await evaluate(`() => { for (let i = 0; i < 3; i++) open('/popup?' + 'x'.repeat(1_000_000)) }`)
  expect(text).toContain('### New tabs')
  expect(text.length).toBeLessThan(10_000)
  await browser.takeAllBack()
})

it('gives no ref of an earlier life of the service worker to another element', async () => {
  await use('browser_tabs', { action: 'new', url: `${site}/before` })
  const before = refIn(await use('browser_snapshot'), 'button')
  await browser.suspend()
  await browser.inOptions(`await chrome.storage.session.set({ wake: crypto.randomUUID() })`)
  await browser.phase('connected')
  const after = refIn(await use('browser_snapshot'), 'button')
  expect(Number(after.slice(1))).toBeGreaterThan(Number(before.slice(1)))
  expect(await use('browser_click', { target: before })).toMatch(/^REF_GONE/)
})

it('E1: a page under control leads to no page of this extension: not by its location, a window or a redirect', async () => {
  await use('browser_tabs', { action: 'new', url: `${site}/start` })
  for (const address of [OPTIONS, 'chrome://version/', 'file:///etc/passwd', 'https://chromewebstore.google.com/']) {
    await evaluate(`() => { location = ${JSON.stringify(address)} }`)
    await evaluate(`() => { open(${JSON.stringify(address)}) }`)
    expect(await use('browser_navigate', { url: `${site}/redirect?to=${encodeURIComponent(address)}` })).not.toContain(
      'settings',
    )
    const seen = await evaluate(STORED)
    expect(seen).not.toContain(TOKEN)
  }
  await browser.takeAllBack()
})

it('E1: a window that a page under control opens is not under control', async () => {
  await use('browser_tabs', { action: 'new', url: `${site}/start` })
  await evaluate(`() => { open('/elsewhere', '_blank', 'popup,width=300,height=200') }`)
  expect(await use('browser_tabs', { action: 'list' })).not.toContain('/elsewhere')
  await browser.takeAllBack()
})

it('says that it can go to no data: address', async () => {
  await use('browser_tabs', { action: 'new' })
  expect(await use('browser_navigate', { url: 'data:text/html,x' })).toMatch(/ERR_ABORTED\. The browser lets no/)
  await browser.takeAllBack()
})

it('does not let a page that logs without end hold up the person or other tabs', async () => {
  await use('browser_tabs', { action: 'new', url: `${site}/quiet` })
  await use('browser_tabs', { action: 'new', url: `${site}/loud` })
  const tab = await browser.inOptions<number>(
    `return (await chrome.storage.session.get('remembered')).remembered.current`,
  )
  await evaluate(`() => {
    setInterval(() => { for (let i = 0; i < 800; i++) console.log('flood', i) }, 100)
  }`)
  const logged = await waitFor(async () => {
    const text = await use('browser_console_messages')
    return text.startsWith('### Console') && !/logged more/.test(text) ? undefined : text
  }, 'the end of the flood')
  expect(logged).toMatch(/The page has logged more than can be recorded|^PAGE_HANGS/)
  // Another page of the tab is heard again.
  await use('browser_navigate', { url: `${site}/after` })
  await evaluate(`() => console.log('heard')`)
  expect(await use('browser_console_messages')).toMatch(/^### Console\n\[INFO\] heard/)
  await use('browser_tabs', { action: 'select', index: 0 })
  expect(await evaluate('() => location.pathname')).toContain('/quiet')
  await browser.clickIcon(tab)
  await waitFor(async () => {
    const attached = await browser.inOptions<boolean>(
      `return (await chrome.debugger.getTargets()).some(({ tabId, attached }) => tabId === ${tab} && attached)`,
    )
    return attached ? undefined : true
  }, 'the end of the debugger')
  await browser.inOptions(`await chrome.tabs.remove(${tab})`)
  await browser.takeAllBack()
}, 180_000)

it('closes and leaves a page that shows dialogs without end', async () => {
  for (const [tool, args] of [
    ['browser_navigate', { url: `${site}/left` }],
    ['browser_tabs', { action: 'close' }],
  ] as const) {
    await use('browser_tabs', { action: 'new', url: `${site}/endless` })
    await evaluate(`() => void setTimeout(() => { for (;;) alert('again') }, 100)`)
    await waitFor(async () => (await use('browser_snapshot')).startsWith('DIALOG_OPEN') || undefined, 'a dialog')
    const left = await use(tool, args)
    expect(left).toContain('(alert): "again". It was dismissed')
    expect(left).not.toContain('/endless')
  }
}, 120_000)

it('gives its token to no other host that a server names', async () => {
  const seen: string[] = []
  const elsewhere = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  elsewhere.on('connection', (socket) => socket.on('message', (data: Buffer) => seen.push(data.toString())))
  await once(elsewhere, 'listening')
  const { port } = elsewhere.address() as AddressInfo
  const lying = createServer((_request, response) => {
    const websocketUrl = `ws://elsewhere.localhost:${port}/worker`
    response.writeHead(201, { 'content-type': 'application/json', 'access-control-allow-origin': '*' })
    response.end(JSON.stringify({ instanceId: 'browser', secret: 'secret', websocketUrl }))
  }).listen(0, '127.0.0.1')
  await once(lying, 'listening')
  await browser.connect(`http://127.0.0.1:${(lying.address() as AddressInfo).port}`, { token: TOKEN })
  await browser.phase('connecting', true)
  expect(seen).toEqual([])
  await browser.connect(server.httpUrl, { token: TOKEN })
  await browser.phase('connected')
  elsewhere.close()
  lying.closeAllConnections()
  await new Promise((resolve) => lying.close(resolve))
})
