/** The browser extension in Chromium, against a real server: its options page, whose tabs it acts in, and how the person takes them back. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { EXTENSION_ORIGIN } from '../../src/protocol/browser-extension.js'
import { startTaskServer, type Task, type TaskServer } from '../../src/server/index.js'
import { startExtensionBrowser, waitFor, type ExtensionBrowser } from '../support/extension-browser.js'

const hostile = fileURLToPath(new URL('../support/programs/hostile-extension', import.meta.url))
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const settings = { port: 0, tasks: { wsPort: 0 }, logLevel: 'silent', env: {} } as const
const FOR_EVER = { tool_name: 'browser_evaluate', args: { function: '() => new Promise(() => {})' } }

/** What a page tries. Its title says how that went. */
const HOSTILE = `
  const [extension, server] = ['extension', 'server'].map((name) => new URLSearchParams(location.search).get(name))
  const outcome = (promise) => promise.then(() => 'reached', () => 'refused')
  const loaded = (element, events = ['load', 'error']) => new Promise((resolve, reject) => {
    element['on' + events[0]] = resolve
    element['on' + events[1]] = reject
  })
  const image = Object.assign(new Image(), { src: extension + '/icons/16.png' })
  const socket = new WebSocket(server.replace('http', 'ws') + '/worker')
  const seen = await Promise.all([
    typeof globalThis.chrome?.runtime?.sendMessage,
    outcome(fetch(extension + '/options/options.html')),
    outcome(fetch(extension + '/manifest.json', { mode: 'no-cors' })),
    outcome(loaded(image)),
    outcome(import(extension + '/background.js')),
    outcome(fetch(server + '/register', { method: 'POST', body: '{}' })),
    outcome(loaded(socket, ['open', 'error'])),
  ])
  document.title = 'tried: ' + seen.join(', ')`

let browser: ExtensionBrowser
let hostileId: string
let pages: Awaited<ReturnType<typeof servePages>>

beforeAll(async () => {
  pages = await servePages()
  browser = await startExtensionBrowser({ besides: [hostile] })
  const { targetInfos } = await browser.devtools.send('Target.getTargets')
  hostileId = new URL(targetInfos.find(({ url }) => url.endsWith('/hostile.js'))?.url ?? '').host
})
afterAll(async () => {
  await browser.close()
  await pages.close()
})

async function servePages() {
  const server = createServer((request, response) => {
    if (request.url === '/other-server/register') {
      response.writeHead(404).end('Not found')
      return
    }
    response.writeHead(200, { 'content-type': 'text/html' })
    const script = request.url?.startsWith('/hostile') === true ? `<script type="module">${HOSTILE}</script>` : ''
    response.end(
      `<!doctype html><title>${request.url}</title><link rel="icon" href="data:,">${script}<a href="/linked" target="_blank">A link</a>`,
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** A server that the extension is connected to. */
async function connected(options: Parameters<typeof startTaskServer>[0] = {}): Promise<TaskServer> {
  const server = await startTaskServer({ ...settings, ...options })
  onTestFinished(() => server.close({ drainMs: 0 }))
  await browser.connect(server.httpUrl)
  // The page may still show the connection to the server before.
  await waitFor(async () => (server.instances.list().some(({ isConnected }) => isConnected) ? true : undefined), 'it')
  await browser.phase('connected')
  return server
}

type Command = { readonly tool_name: string; readonly args: Record<string, unknown> }
const newTab: Command = { tool_name: 'browser_tabs', args: { action: 'new' } }
const listTabs: Command = { tool_name: 'browser_tabs', args: { action: 'list' } }
const goTo = (url: string): Command => ({ tool_name: 'browser_navigate', args: { url } })
const evaluate = (code: string): Command => ({ tool_name: 'browser_evaluate', args: { function: code } })

function submit(server: TaskServer, commands: readonly Command[], instanceId = 'browser'): string {
  const answer = server.taskManager.submitTask({
    type: 'task_submit',
    task_name: 'Act',
    task_intention: '',
    instanceId,
    commands: commands.map((command) => ({ ...command, intention: '' })),
  })
  if (!('taskId' in answer)) throw new Error(`${answer.code}: ${answer.error}`)
  return answer.taskId
}

const ended = (server: TaskServer, taskId: string): Promise<Task> =>
  waitFor(async () => {
    const task = server.taskManager.getTask(taskId)
    return task?.completedAt === undefined ? undefined : task
  }, `the end of ${taskId}`)

/** Runs commands to their end, and returns how each ended: its text, or its code. */
async function perform(server: TaskServer, ...commands: Command[]): Promise<string[]> {
  const task = await ended(server, submit(server, commands))
  return task.commands.map(outcomeOf)
}

function outcomeOf({ status, result, error }: Task['commands'][number]): string {
  if (status !== 'success') return `${status} ${error?.code}`
  const { content = [] } = Object(result) as { content?: { text?: string }[] }
  return content.map(({ text = '' }) => text).join('\n')
}

/** Waits until a command runs in the page, and not only on its way to it. */
async function running(server: TaskServer, taskId: string): Promise<void> {
  await waitFor(async () => {
    const isRunning = server.taskManager.getTask(taskId)?.commands.some(({ status }) => status === 'running')
    return isRunning === true && (await badge()) === 'busy' && (await isAttached()) ? true : undefined
  }, `a command of ${taskId}`)
}

const badge = (): Promise<string> => browser.inOptions(`return chrome.action.getBadgeText({})`)
const currentTab = (): Promise<number> =>
  browser.inOptions(`return (await chrome.storage.session.get('remembered')).remembered.current`)
const isAttached = (): Promise<boolean> =>
  browser.inOptions(`
    const { current } = (await chrome.storage.session.get('remembered')).remembered
    return (await chrome.debugger.getTargets()).some(({ tabId, attached }) => tabId === current && attached)`)
const statusOf = (one: ExtensionBrowser): Promise<string> =>
  one.inOptions(`return document.getElementById('state').innerText`)

/** Waits until the options page says so. */
async function says(text: RegExp, one = browser): Promise<void> {
  await waitFor(async () => (text.test(await statusOf(one)) ? true : undefined), `the words ${text.source}`)
}

describe('the options page', () => {
  it('says what is wrong with an address, a token, a server, and that it is connected', async () => {
    await browser.connect('http://192.168.0.7:3300', { token: 'two words', name: '' })
    const problems = `return [...document.querySelectorAll('.problem')].map(({ innerText }) => innerText)`
    expect(await browser.inOptions(problems)).toEqual([
      expect.stringContaining('Use https://'),
      expect.stringContaining('without spaces'),
      expect.stringContaining('Enter 1 to 256 letters'),
    ])

    await browser.connect('http://127.0.0.1:1')
    await says(/No server answers at http:\/\/127\.0\.0\.1:1\..*npx agent-tasks serve/s)
    expect(await browser.inOptions(problems)).toEqual(['', '', ''])

    await browser.connect(`${pages.url}/other-server`)
    await says(/not an agent-tasks server/)

    const server = await startTaskServer({ ...settings, auth: { tokens: ['the-right-token'] } })
    onTestFinished(() => server.close({ drainMs: 0 }))
    await browser.connect(server.httpUrl)
    await says(/asks for a token/)
    await browser.connect(server.httpUrl, { token: 'the-wrong-token' })
    await says(/does not accept this token/)
    expect(await badge()).toBe('...')
    await browser.connect(server.httpUrl, { token: 'the-right-token' })
    await browser.phase('connected')
    expect([await statusOf(browser), await badge()]).toEqual([
      expect.stringContaining(`Connected to ${server.httpUrl} as browser`),
      'on',
    ])

    await browser.inOptions(`document.getElementById('stop').click()`)
    await browser.phase('stopped')
    await waitFor(async () => (server.instances.list().length === 0 ? true : undefined), 'the end of the instance')
    expect(await badge()).toBe('off')
    await browser.inOptions(`document.getElementById('again').click()`)
    await browser.phase('connected')
  })

  it('says that another browser has the name, and that the server has ended the connection', async () => {
    const server = await connected()
    const other = await startExtensionBrowser()
    onTestFinished(() => other.close())
    await other.connect(server.httpUrl)
    await says(/The server has another instance with the name browser\./, other)
    await other.connect(server.httpUrl, { name: 'second' })
    await other.phase('connected')

    // Both at once: each command waits for the other browser.
    const meet = (mine: string, theirs: string): Command[] => [
      newTab,
      goTo(`${pages.url}/${mine}`),
      evaluate(`() => document.title + ' without ${theirs}'`),
    ]
    const tasks = [submit(server, meet('one', 'two'), 'browser'), submit(server, meet('two', 'one'), 'second')]
    const ends = await Promise.all(tasks.map((taskId) => ended(server, taskId)))
    expect(ends.map(({ commands }) => commands.at(-1)).map((command) => command && outcomeOf(command))).toEqual([
      expect.stringContaining('/one without two'),
      expect.stringContaining('/two without one'),
    ])

    await server.instances.disconnect('second')
    await other.phase('stopped', true)
    await says(/The server has disconnected this browser\./, other)
  })

  it.each(['light', 'dark'])('has no violation that axe finds (%s)', async (scheme) => {
    const session = await browser.optionsSession()
    const features = [{ name: 'prefers-color-scheme', value: scheme }]
    await browser.devtools.send('Emulation.setEmulatedMedia', { features }, session)
    await browser.connect('http://192.168.0.7:3300', { token: 'two words', name: '' })
    await browser.devtools.send('Runtime.evaluate', { expression: axe }, session)
    const found = await browser.inOptions(`
      const { violations } = await axe.run()
      return violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html))`)
    expect(found).toEqual([])
  })
})

describe('whose tabs it acts in', () => {
  it('E1: those of its own group, and what they open: others are not listed, and cannot be chosen', async () => {
    const server = await connected()
    await browser.takeAllBack()
    const [private_, given] = [
      await browser.openTab(`${pages.url}/private`),
      await browser.openTab(`${pages.url}/given`),
    ]
    onTestFinished(() => browser.inOptions(`await chrome.tabs.remove([${private_}, ${given}])`))
    const [opened, , listed] = await perform(server, newTab, goTo(`${pages.url}/opened`), listTabs)
    expect(opened).not.toContain('error')
    expect(listed).toContain('/opened')
    expect(listed).not.toMatch(/private|given|chrome-extension/)
    expect(
      await browser.inOptions(`return (await chrome.tabGroups.query({})).map(({ title, color }) => [title, color])`),
    ).toEqual([['agent-tasks', 'blue']])

    const lists = (path: string): Promise<string> =>
      waitFor(async () => {
        const [tabs] = await perform(server, listTabs)
        return tabs?.includes(path) === true ? tabs : undefined
      }, `${path} among the tabs`)

    await perform(server, goTo(`${pages.url}/with-link`), { tool_name: 'browser_click', args: { target: 'a' } })
    await lists('/linked')

    await browser.clickIcon(given)
    expect(await lists('/given')).not.toContain('/private')
  })

  it('E1: acts in a tab that the person gives it, and in no page of the browser itself', async () => {
    const server = await connected()
    await browser.takeAllBack()
    expect(await perform(server, evaluate('() => 1'))).toEqual([
      expect.stringMatching(/error (NO_TAB|CONTROL_TAKEN|TAB_CLOSED)/),
    ])
    const tab = await browser.openTab(`${pages.url}/mine`)
    await browser.clickIcon(tab)
    await waitFor(async () => ((await currentTab()) === tab ? true : undefined), 'the tab')
    const outcomes = await perform(server, evaluate('() => document.title'))
    expect(outcomes).toEqual([expect.stringContaining('/mine')])
    for (const url of ['chrome://settings/', 'https://chromewebstore.google.com/', 'file:///etc/passwd']) {
      expect(await perform(server, goTo(url))).toEqual(['error PAGE_NOT_ALLOWED'])
    }
    const own = await browser.openTab('chrome://version/')
    const status = `return (await chrome.tabs.get(${own})).status`
    // The browser takes the badge of a tab away when its page changes.
    await waitFor(async () => ((await browser.inOptions(status)) === 'complete' ? true : undefined), 'its own page')
    await browser.clickIcon(own)
    const refused = `return chrome.action.getBadgeText({ tabId: ${own} })`
    // Before it is refused, the badge is that of all tabs.
    await waitFor(async () => ((await browser.inOptions<string>(refused)) === 'no' ? true : undefined), 'a refusal')
    await browser.inOptions(`await chrome.tabs.remove([${own}, ${tab}])`)
  })

  it('closes the tabs that it is asked to close, and goes on in the next one', async () => {
    const server = await connected()
    await browser.takeAllBack()
    const visit = (path: string): Command => ({
      tool_name: 'browser_tabs',
      args: { action: 'new', url: pages.url + path },
    })
    const close = { tool_name: 'browser_tabs', args: { action: 'close' } }
    const outcomes = await perform(server, visit('/first'), visit('/second'), close, evaluate('() => document.title'))
    expect(outcomes.at(-1)).toContain('/first')
    expect(await perform(server, close, evaluate('() => 1'))).toEqual([expect.any(String) as string, 'error NO_TAB'])
  })

  it('E5: leaves a tab with another debugger alone, and says so', async () => {
    const server = await connected()
    await perform(server, newTab, goTo(`${pages.url}/debugged`))
    await browser.inOptions(`await chrome.tabs.ungroup(${await currentTab()})`)
    const tab = await browser.openTab(`${pages.url}/debugged-by-another`)
    await browser.clickIcon(tab)
    const { targetInfos } = await browser.devtools.send('Target.getTargets')
    const targetId = targetInfos.find(({ url }) => url.endsWith('/debugged-by-another'))?.targetId ?? ''
    const { sessionId } = await browser.devtools.send('Target.attachToTarget', { targetId, flatten: true })
    await selectTab(server, '/debugged-by-another')
    expect(await perform(server, evaluate('() => 1'))).toEqual(['error DEBUGGER_BUSY'])
    await browser.devtools.send('Target.detachFromTarget', { sessionId })
    expect(await perform(server, evaluate('() => 40 + 2'))).toEqual([expect.stringContaining('42')])
    await browser.takeAllBack()
  })
})

/** Makes the tab whose address ends so the current one, as the person would who has given only that. */
async function selectTab(server: TaskServer, ending: string): Promise<void> {
  const [listed = ''] = await perform(server, listTabs)
  const tabs = await browser.inOptions<string[]>(`
    const groups = (await chrome.storage.session.get('remembered')).remembered.groups
    const tabs = (await chrome.tabs.query({})).filter(({ groupId }) => groups.includes(groupId))
    const targets = await chrome.debugger.getTargets()
    return tabs.map(({ id }) => targets.find(({ tabId }) => tabId === id).url)`)
  const index = tabs.findIndex((url) => url.endsWith(ending))
  expect(index, listed).toBeGreaterThanOrEqual(0)
  await perform(server, { tool_name: 'browser_tabs', args: { action: 'select', index } })
}

describe('a tab that the person takes back while a command is at work', () => {
  it.each([
    ['by a click on the icon', (tab: number) => browser.clickIcon(tab)],
    ['by dragging it out of the group', (tab: number) => browser.inOptions(`await chrome.tabs.ungroup(${tab})`)],
    [
      'by cancelling the bar of the browser',
      // What the browser does when the bar is closed.
      (tab: number) =>
        browser.inWorker(`
          await chrome.debugger.detach({ tabId: ${tab} })
          chrome.debugger.onDetach.dispatch({ tabId: ${tab} }, 'canceled_by_user')`),
    ],
  ])('E2: %s: the command fails with CONTROL_TAKEN, and so does the next one', async (_how, takeBack) => {
    const server = await connected()
    await perform(server, newTab, goTo(`${pages.url}/taken`))
    const tab = await currentTab()
    const taskId = submit(server, [FOR_EVER, FOR_EVER])
    await running(server, taskId)
    await takeBack(tab)
    const { commands } = await ended(server, taskId)
    expect(commands.map(outcomeOf)).toEqual(['error CONTROL_TAKEN', expect.stringContaining('skipped')])
    expect(await perform(server, evaluate('() => 1'))).toEqual(['error CONTROL_TAKEN'])
    const state = `
      const { groupId } = await chrome.tabs.get(${tab})
      return [groupId, (await chrome.debugger.getTargets()).find(({ tabId }) => tabId === ${tab}).attached]`
    await waitFor(
      async () => (String(await browser.inOptions(state)) === '-1,false' ? true : undefined),
      'the tab to be free',
    )
    expect(await perform(server, newTab, evaluate('() => 40 + 2'))).toEqual([
      expect.any(String) as string,
      expect.stringContaining('42'),
    ])
    await browser.inOptions(`await chrome.tabs.remove(${tab})`)
  })

  it('E2: a tab that is closed fails its command with TAB_CLOSED', async () => {
    const server = await connected()
    await perform(server, newTab, goTo(`${pages.url}/closed`))
    const taskId = submit(server, [FOR_EVER])
    await running(server, taskId)
    await browser.inOptions(`await chrome.tabs.remove(${await currentTab()})`)
    expect((await ended(server, taskId)).commands.map(outcomeOf)).toEqual(['error TAB_CLOSED'])
  })

  it('a command that is cancelled ends at once', async () => {
    const server = await connected()
    await perform(server, newTab)
    const taskId = submit(server, [FOR_EVER])
    await running(server, taskId)
    server.taskManager.cancelTask(taskId)
    await waitFor(async () => ((await badge()) === 'on' ? true : undefined), 'the end of the call')
  })
})

it('connects again by itself when the server was started anew', async () => {
  const first = await connected()
  const port = Number(new URL(first.httpUrl).port)
  await perform(first, newTab)
  const taskId = submit(first, [FOR_EVER])
  await running(first, taskId)
  await first.close({ drainMs: 0 })
  await browser.phase('connecting', true)
  const second = await startTaskServer({ ...settings, port })
  onTestFinished(() => second.close({ drainMs: 0 }))
  await browser.phase('connected')
  expect(await perform(second, evaluate('() => 40 + 2'))).toEqual([expect.stringContaining('42')])
})

describe('who has no business with it', () => {
  it.each(['under control', 'of the person'])(
    'E4: a page %s cannot load, import or call it, nor use the server',
    async (whose) => {
      const server = await connected()
      const page = `${pages.url}/hostile?extension=${EXTENSION_ORIGIN}&server=${server.httpUrl}`
      if (whose === 'under control') await perform(server, newTab, goTo(page))
      else await browser.openTab(page)
      const title = await waitFor(async () => {
        const { targetInfos } = await browser.devtools.send('Target.getTargets')
        return targetInfos.find((target) => target.title.startsWith('tried: '))?.title
      }, 'the page to have tried')
      expect(title).toBe('tried: undefined, refused, refused, refused, refused, refused, refused')
      await browser.inOptions(`
      const { tabId } = (await chrome.debugger.getTargets()).find(({ title }) => title.startsWith('tried: '))
      await chrome.tabs.remove(tabId)`)
    },
  )

  it('E4: another extension gets no answer, and its origin is refused', async () => {
    const server = await connected()
    const { host } = new URL(EXTENSION_ORIGIN)
    await browser.devtools.send('Target.createTarget', { url: `chrome-extension://${hostileId}/hostile.html` })
    await waitFor(async () => {
      const isLoaded = await browser.inTarget<boolean>('/hostile.html', 'return document.title !== ""')
      return isLoaded ? true : undefined
    }, 'its page')
    const outcome = await browser.inTarget(
      '/hostile.html',
      `const seen = []
       seen.push(await chrome.runtime.sendMessage('${host}', { type: 'settings' }).catch(({ message }) => message))
       seen.push(await new Promise((resolve) => {
         const port = chrome.runtime.connect('${host}')
         port.onMessage.addListener(() => resolve('answered'))
         port.onDisconnect.addListener(() => resolve(chrome.runtime.lastError?.message ?? 'closed'))
       }))
       seen.push(await fetch('${server.httpUrl}/register', { method: 'POST' }).then(({ status }) => status, () => 'refused'))
       return seen`,
    )
    const nobody = 'Could not establish connection. Receiving end does not exist.'
    expect(outcome).toEqual([nobody, nobody, 'refused'])
    expect(server.instances.list().map(({ id }) => id)).toEqual(['browser'])
  })
})
