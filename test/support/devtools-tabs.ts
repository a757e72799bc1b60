/** A Chromium without the extension. The tools use its tabs over the raw DevTools protocol. All tabs are under control. */
import { spawn } from 'node:child_process'
import { once, setMaxListeners } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  BrowserError,
  ProtocolRefusal,
  type Debuggee,
  type DebuggeeEvent,
  type Tab,
  type Tabs,
} from '../../src/client/extension/debuggee.js'
import { createFrameSessions } from '../../src/client/extension/frame-sessions.js'
import { refusalOf } from '../../src/client/extension/page-access.js'
import { chromiumPath } from './chromium.js'
import { connectDevTools, type DevTools } from './devtools.js'
import { socketUrlOf } from './extension-browser.js'

/** Starts a Chromium without a window. Each site runs in a process of its own. */
export async function startChromium(flags: readonly string[] = []) {
  const profile = await mkdtemp(join(tmpdir(), 'agent-tasks-chromium-'))
  const chromium = spawn(
    chromiumPath(),
    [
      ...['--headless=new', '--no-sandbox', '--no-first-run', '--remote-debugging-port=0', '--site-per-process'],
      ...[`--user-data-dir=${profile}`, ...flags, 'about:blank'],
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  const exited = once(chromium, 'exit')
  const devtools = await connectDevTools(await socketUrlOf(chromium.stderr))
  const close = async (): Promise<void> => {
    devtools.close()
    chromium.kill('SIGKILL')
    await exited
    await rm(profile, { recursive: true, force: true, maxRetries: 5 })
  }
  return { devtools, close }
}

interface Target {
  readonly targetId: string
  readonly type: string
  readonly url: string
  readonly title: string
}

/** The tabs of the browser, which a test can take back. */
export interface DevtoolsTabs extends Tabs {
  /** Takes the current tab back, as the person would. */
  takeBack(): Promise<void>
}

export async function devtoolsTabs(devtools: DevTools): Promise<DevtoolsTabs> {
  const targets = new Map<string, Target>()
  const ids = new Map<string, number>()
  const debuggees = new Map<string, AttachedDebuggee>()
  let currentId: string | undefined
  let lastId = 0

  devtools.onEvent(({ method, params }) => {
    if (method === 'Target.targetDestroyed') {
      const { targetId } = params as unknown as Target
      targets.delete(targetId)
      debuggees.get(targetId)?.detach(new BrowserError('TAB_CLOSED', 'The tab was closed.'))
      debuggees.delete(targetId)
      if (currentId === targetId) currentId = [...targets.keys()][0]
    }
    if (method !== 'Target.targetCreated' && method !== 'Target.targetInfoChanged') return
    const { targetInfo } = params as unknown as { targetInfo: Target }
    if (targetInfo.type !== 'page') return
    targets.set(targetInfo.targetId, targetInfo)
    if (!ids.has(targetInfo.targetId)) ids.set(targetInfo.targetId, ++lastId)
    currentId ??= targetInfo.targetId
  })
  await devtools.send('Target.setDiscoverTargets', { discover: true })

  const tabOf = ({ targetId, url, title }: Target): Tab => ({
    id: ids.get(targetId) ?? 0,
    url,
    title,
    isCurrent: targetId === currentId,
  })
  const targetOf = (id: number): string => {
    const [targetId] = [...targets.keys()].filter((one) => ids.get(one) === id)
    if (targetId === undefined) throw new BrowserError('TAB_CLOSED', 'There is no such tab.')
    return targetId
  }

  return {
    list: async () => {
      // The title is read here, because its change may be reported late.
      const { targetInfos } = await devtools.send('Target.getTargets')
      return [...targets.keys()].flatMap((id) => targetInfos.filter(({ targetId }) => targetId === id)).map(tabOf)
    },
    open: async () => {
      const { targetId } = await devtools.send('Target.createTarget', { url: 'about:blank' })
      currentId = targetId
      const target = targets.get(targetId) ?? { targetId, type: 'page', url: 'about:blank', title: '' }
      return tabOf(target)
    },
    select: async (id) => {
      currentId = targetOf(id)
      await devtools.send('Target.activateTarget', { targetId: currentId })
    },
    close: async (id) => {
      const targetId = targetOf(id)
      const asked = debuggees.get(targetId)
      if (asked === undefined) await devtools.send('Target.closeTarget', { targetId })
      else void asked.send('Page.close').catch(() => undefined)
    },
    current: async () => {
      if (currentId === undefined) throw new BrowserError('NO_TAB', 'There is no tab.')
      let debuggee = debuggees.get(currentId)
      if (debuggee === undefined) {
        debuggee = await attach(devtools, currentId)
        debuggees.set(currentId, debuggee)
      }
      return { id: ids.get(currentId) ?? 0, debuggee }
    },
    refusal: refusalOf,
    takeBack: async () => {
      const debuggee = debuggees.get(currentId ?? '')
      debuggees.delete(currentId ?? '')
      debuggee?.detach(new BrowserError('CONTROL_TAKEN', 'The person took the tab back.'))
      await debuggee?.left
    },
  }
}

type AttachedDebuggee = Debuggee & { detach(reason: BrowserError): void; readonly left: Promise<unknown> }

async function attach(devtools: DevTools, targetId: string): Promise<AttachedDebuggee> {
  const { sessionId: own } = await devtools.send('Target.attachToTarget', { targetId, flatten: true })
  const sessions = new Set([own])
  const listeners = new Set<(event: DebuggeeEvent) => void>()
  const leaving = new AbortController()
  // Each command in flight adds a listener, so there is no limit.
  setMaxListeners(0, leaving.signal)
  const allowed = createFrameSessions(refusalOf)
  let left: Promise<unknown> = Promise.resolve()
  const stop = devtools.onEvent(({ method, params, sessionId }) => {
    if (sessionId === undefined || !sessions.has(sessionId)) return
    if (method === 'Target.attachedToTarget') sessions.add(params['sessionId'] as string)
    const event = { method, params, sessionId: sessionId === own ? undefined : sessionId } as DebuggeeEvent
    allowed.take(event)
    for (const listener of [...listeners]) listener(event)
  })
  const detach = (reason: BrowserError): void => {
    stop()
    leaving.abort(reason)
    left = devtools.send('Target.detachFromTarget', { sessionId: own }).catch(() => undefined)
  }
  return {
    send: async (method, params, { sessionId = own, signal } = {}) => {
      signal?.throwIfAborted()
      leaving.signal.throwIfAborted()
      const refusal = allowed.refusalIn(sessionId === own ? undefined : sessionId)
      if (refusal !== undefined) throw refusal
      const answer = devtools.send(method, params, sessionId).catch((error: unknown) => {
        throw new ProtocolRefusal(method, (error as Error).message)
      })
      return orAborted(answer, [leaving.signal, ...(signal === undefined ? [] : [signal])])
    },
    onEvent: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    detached: leaving.signal,
    sessions: allowed,
    end: detach,
    detach,
    get left() {
      return left
    },
  }
}

async function orAborted<T>(promise: Promise<T>, signals: readonly AbortSignal[]): Promise<T> {
  const settled = new AbortController()
  promise.catch(() => undefined)
  const aborted = new Promise<never>((_resolve, reject) => {
    for (const signal of signals) {
      const options = { once: true, signal: settled.signal }
      signal.addEventListener('abort', () => reject(signal.reason as Error), options)
    }
  })
  try {
    return await Promise.race([promise, aborted])
  } finally {
    settled.abort()
  }
}
