/** Chromium with the built extension. It does what the person does: enters settings, clicks the icon, opens tabs. It can also end the service worker. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { EXTENSION_ORIGIN } from '../../src/protocol/browser-extension.js'
import { chromiumPath } from './chromium.js'
import { connectDevTools, type DevTools } from './devtools.js'

const folder = fileURLToPath(new URL('../../dist/extension', import.meta.url))
const OPTIONS = `${EXTENSION_ORIGIN}/options/options.html`
const WORKER = `${EXTENSION_ORIGIN}/background.js`

/** How long to wait for the browser, in ms. */
const PATIENCE_MS = 45_000

export interface ExtensionBrowser {
  readonly devtools: DevTools
  /** Runs the body of an async function in the service worker, and returns its value. The service worker must be running. */
  inWorker<T>(body: string): Promise<T>
  /** Runs the body of an async function in the script or page whose address has this ending, and returns its value. */
  inTarget<T>(ending: string, body: string): Promise<T>
  /** Runs the body of an async function in the options page. Opens the page first if necessary. */
  inOptions<T>(body: string): Promise<T>
  /** Returns the id of a DevTools session with the options page. */
  optionsSession(): Promise<string>
  /** Enters settings and waits for the phase of the connection. */
  connect(url: string, options?: { readonly token?: string; readonly name?: string }): Promise<void>
  /** Waits until the options page shows this phase of the connection. */
  phase(phase: 'connected' | 'connecting' | 'stopped', isFailing?: boolean): Promise<void>
  /** Opens a tab, as the person does. Returns its id. */
  openTab(url: string): Promise<number>
  /** Clicks the icon of the extension in a tab. */
  clickIcon(tabId: number): Promise<void>
  /** Takes all tabs out of the group, as the person does. */
  takeAllBack(): Promise<void>
  /** Ends the service worker, as the browser does. Its `chrome.storage` stays. */
  suspend(): Promise<void>
  close(): Promise<void>
}

export interface ExtensionBrowserOptions {
  /** The folders of other extensions to load. */
  readonly besides?: readonly string[]
  /** The X display for its window. Default: the browser has no window. */
  readonly display?: string
}

export async function startExtensionBrowser({
  besides = [],
  display,
}: ExtensionBrowserOptions = {}): Promise<ExtensionBrowser> {
  if (!existsSync(join(folder, 'manifest.json'))) throw new Error(`There is no ${folder}. Run npm run build first.`)
  const profile = await mkdtemp(join(tmpdir(), 'agent-tasks-extension-'))
  const chromium = spawn(
    chromiumPath(),
    [
      ...(display === undefined ? ['--headless=new'] : ['--window-size=1100,640', '--window-position=0,0']),
      ...['--no-sandbox', '--no-first-run', '--remote-debugging-port=0'],
      ...[`--user-data-dir=${profile}`, `--load-extension=${[folder, ...besides].join(',')}`],
      '--disable-features=DisableLoadExtensionCommandLineSwitch',
      'about:blank',
    ],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
      ...(display !== undefined && { env: { ...process.env, DISPLAY: display } }),
    },
  )
  const exited = once(chromium, 'exit')
  const devtools = await connectDevTools(await socketUrlOf(chromium.stderr))
  const sessions = new Map<string, string>()

  const targets = async () => (await devtools.send('Target.getTargets')).targetInfos
  const find = (ending: string) =>
    waitFor(async () => (await targets()).find((target) => target.url.endsWith(ending)), `a target with ${ending}`)

  async function sessionOf(url: string): Promise<string> {
    const { targetId } = await find(url)
    const known = sessions.get(targetId)
    if (known !== undefined) return known
    const { sessionId } = await devtools.send('Target.attachToTarget', { targetId, flatten: true })
    sessions.set(targetId, sessionId)
    return sessionId
  }

  async function run<T>(sessionId: string, body: string): Promise<T> {
    const expression = `(async () => { ${body} })()`
    const parameters = { expression, awaitPromise: true, returnByValue: true }
    const { result, exceptionDetails } = await devtools.send('Runtime.evaluate', parameters, sessionId)
    if (exceptionDetails === undefined) return result.value as T
    throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text)
  }

  async function inTarget<T>(ending: string, body: string): Promise<T> {
    const { targetId } = await find(ending)
    const { sessionId } = await devtools.send('Target.attachToTarget', { targetId, flatten: true })
    try {
      return await run<T>(sessionId, body)
    } finally {
      // Closes the session. While a session is open, the browser does not end a service worker, and a tab counts as debugged.
      await devtools.send('Target.detachFromTarget', { sessionId }).catch(() => undefined)
    }
  }

  // The options page does not have to be opened, because it opens by itself when the extension is installed.
  const optionsSession = (): Promise<string> => sessionOf(OPTIONS)
  const inOptions = async <T>(body: string): Promise<T> => run<T>(await optionsSession(), body)

  const browser: ExtensionBrowser = {
    devtools,
    inTarget,
    inOptions,
    optionsSession,
    inWorker: (body) => inTarget(WORKER, body),
    connect: async (url, { token = '', name = 'browser' } = {}) => {
      const fields = Object.entries({ url, token, name })
      await inOptions(`
        for (const [id, value] of ${JSON.stringify(fields)}) document.getElementById(id).value = value
        document.getElementById('form').requestSubmit()`)
    },
    phase: async (phase, isFailing = false) => {
      const wanted = `${phase} ${isFailing}`
      await waitFor(async () => {
        const seen = await inOptions<string>(
          `const { phase, problem } = document.getElementById('state').dataset; return phase + ' ' + problem`,
        )
        return seen === wanted ? true : undefined
      }, `the phase ${wanted}`)
    },
    openTab: async (url) => inOptions(`return (await chrome.tabs.create({ url: ${JSON.stringify(url)} })).id`),
    clickIcon: (tabId) => inTarget(WORKER, `chrome.action.onClicked.dispatch(await chrome.tabs.get(${tabId}))`),
    takeAllBack: () =>
      inOptions(`
        const { groups } = (await chrome.storage.session.get('remembered')).remembered
        const tabs = (await chrome.tabs.query({})).filter(({ groupId }) => groups.includes(groupId))
        if (tabs.length > 0) await chrome.tabs.ungroup(tabs.map(({ id }) => id))`),
    suspend: async () => {
      const { targetId } = await find(WORKER)
      const { sessionId } = await devtools.send('Target.attachToTarget', { targetId, flatten: true })
      await devtools.send('Target.closeTarget', { targetId })
      await devtools.send('Target.detachFromTarget', { sessionId }).catch(() => undefined)
    },
    close: async () => {
      devtools.close()
      chromium.kill('SIGKILL')
      await exited
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
  // The browser loads extensions only after it listens.
  await waitFor(async () => {
    const phase = await inOptions(`return document.getElementById('state')?.dataset.phase`)
    return phase === undefined || phase === 'unknown' ? undefined : true
  }, 'the options page')
  return browser
}

/** Returns the URL that a browser prints when it listens. */
export async function socketUrlOf(stderr: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface({ input: stderr })) {
    const [, url] = /^DevTools listening on (ws:\S+)/.exec(line) ?? []
    if (url !== undefined) {
      stderr.resume()
      return url
    }
  }
  throw new Error('The browser has ended.')
}

/** Calls `ask` again and again until it returns a value. */
export async function waitFor<T>(ask: () => Promise<T | undefined>, what: string): Promise<T> {
  const until = Date.now() + PATIENCE_MS
  while (Date.now() < until) {
    const value = await ask()
    if (value !== undefined) return value
    await pause(50)
  }
  throw new Error(`Waited ${PATIENCE_MS} ms for ${what}.`)
}
