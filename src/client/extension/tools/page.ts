/** The state of a tab that the tools use: its frames, logs and dialogs, from the events of the debugger. */
import { BrowserError, type Debuggee, type DebuggeeEvent, type Tabs } from '../debuggee.js'
import { createConsoleLog } from './console-log.js'
import { createDialogs } from './dialogs.js'
import { createFloods, type DispensableDomain } from './floods.js'
import { createLoading } from './loading.js'
import { createNetworkLog } from './network-log.js'
import { createRefs, type RefCounter } from './refs.js'
import { within } from './waiting.js'

/** How long a page may take to answer the first commands, in ms. */
const ANSWER_MS = 10_000

/** The group of the handles that a command makes. They are released when the command ends. */
export const OBJECT_GROUP = 'agent-tasks'

export interface PageOptions {
  /** Counts the refs, which name elements in snapshots. */
  readonly counter: RefCounter
  /** Returns why commands may not use a frame with this address; undefined if they may. */
  readonly refusal: Tabs['refusal']
  /** The ids of tabs whose pages logged too much. When such a tab is attached again, its logs stay off. */
  readonly flooding: Set<number>
}

/**
 * Prepares a tab for the tools.
 * @throws BrowserError `PAGE_HANGS` when the page does not answer within `ANSWER_MS`
 */
export async function openPage(
  id: number,
  debuggee: Debuggee,
  { counter, refusal, flooding }: PageOptions,
  signal: AbortSignal,
) {
  const consoleLog = createConsoleLog()
  const network = createNetworkLog()
  const dialogs = createDialogs()
  const refs = createRefs(counter)
  /** The domains of the DevTools protocol that were disabled because of a flood of events, by session. */
  const disabled = new Map<string | undefined, Set<DispensableDomain>>()
  const floods = createFloods({
    onFlood: (domain, sessionId) => {
      if (domain !== 'Network') flooding.add(id)
      disabled.set(sessionId, new Set(disabled.get(sessionId)).add(domain))
      debuggee.send(`${domain}.disable`, undefined, { sessionId }).catch(() => undefined)
    },
    onEndless: () => debuggee.end(floodError()),
  })
  const observe: ((event: DebuggeeEvent) => void)[] = [consoleLog.take, network.take, dialogs.take, takeFrames]
  const stop = debuggee.onEvent((event) => {
    if (floods.take(event)) return
    for (const take of observe) take(event)
  })
  debuggee.detached.addEventListener('abort', stop, { once: true })

  let mainFrameId = ''
  let crash = new AbortController()
  function takeFrames({ method, params, sessionId }: DebuggeeEvent): void {
    switch (method) {
      case 'Target.attachedToTarget':
        void enable(params.sessionId, debuggee.detached).catch(() => undefined)
        break
      case 'Page.frameNavigated':
        refs.forget(params.frame.id)
        if (sessionId !== undefined || params.frame.id !== mainFrameId) break
        consoleLog.startPage()
        startLogs()
        break
      case 'Inspector.targetCrashed':
        crash.abort(new BrowserError('PAGE_CRASHED', 'The page has crashed. Load it again with browser_navigate.'))
        break
      case 'Inspector.targetReloadedAfterCrash':
        crash = new AbortController()
        break
      case 'Page.frameDetached':
        refs.forget(params.frameId)
        break
      default:
    }
  }

  /** Starts recording again, because the tab shows another page. */
  function startLogs(): void {
    for (const [sessionId, domains] of disabled) {
      floods.forget(sessionId)
      for (const domain of domains) debuggee.send(`${domain}.enable`, {}, { sessionId }).catch(() => undefined)
    }
    disabled.clear()
    flooding.delete(id)
  }

  async function enable(sessionId: string | undefined, signal: AbortSignal): Promise<void> {
    const options = { sessionId, signal }
    // The tools read no bodies of responses, so the browser does not have to keep them.
    const noBodies = { maxTotalBufferSize: 0, maxResourceBufferSize: 0 }
    const isHeard = !flooding.has(id)
    if (!isHeard) disabled.set(sessionId, new Set<DispensableDomain>(['Runtime', 'Log']))
    await Promise.all([
      ...(isHeard
        ? [debuggee.send('Runtime.enable', undefined, options), debuggee.send('Log.enable', undefined, options)]
        : []),
      debuggee.send('Page.enable', {}, options),
      debuggee.send('Network.enable', noBodies, options),
      debuggee.send('DOM.enable', {}, options),
      debuggee.send('Target.setAutoAttach', AUTO_ATTACH, options),
    ])
  }

  const hangs = (): Error =>
    new BrowserError('PAGE_HANGS', 'The page does not answer. Select or open another tab with browser_tabs.')
  try {
    return await within(ANSWER_MS, hangs, signal, async (limited) => {
      const { frameTree } = await debuggee.send('Page.getFrameTree', undefined, { signal: limited })
      mainFrameId = frameTree.frame.id
      const loading = createLoading(mainFrameId, frameTree.frame.loaderId)
      observe.push(loading.take)
      network.setMainFrame(mainFrameId)
      await Promise.all([debuggee.send('Inspector.enable', undefined, { signal: limited }), enable(undefined, limited)])
      // Makes a page in a background tab or window behave as if it had the focus, so that it accepts keys.
      await debuggee.send('Emulation.setFocusEmulationEnabled', { enabled: true }, { signal: limited })
      return {
        id,
        debuggee,
        refusal,
        mainFrameId,
        console: consoleLog,
        network,
        dialogs,
        refs,
        loading,
        /** Whether a domain is disabled because the page produced more of its events than can be handled. */
        isFlooding: (domain: DispensableDomain): boolean =>
          [...disabled.values()].some((domains) => domains.has(domain)),
        /** Aborts when the page crashes. There is a new signal when the page is loaded again. */
        get crashed(): AbortSignal {
          return crash.signal
        },
      }
    })
  } catch (error) {
    stop()
    throw error
  }
}

export type Page = Awaited<ReturnType<typeof openPage>>

const floodError = (): BrowserError =>
  new BrowserError(
    'PAGE_HANGS',
    'The page produces more events than can be handled, such as console messages, so its tab was detached. Try again, or use another tab.',
  )

const AUTO_ATTACH = {
  autoAttach: true,
  waitForDebuggerOnStart: false,
  flatten: true,
  filter: [{ type: 'iframe' }],
}
