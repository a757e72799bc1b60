/** A tab that the tools act in: its frames, and what it does meanwhile. */
import { BrowserError, type Debuggee, type DebuggeeEvent } from '../debuggee.js'
import { createConsoleLog } from './console-log.js'
import { createDialogs } from './dialogs.js'
import { createLoading } from './loading.js'
import { createNetworkLog } from './network-log.js'
import { createRefs, type RefCounter } from './refs.js'
import { within } from './waiting.js'

/** How long a page may take to answer when the tools begin with it, in ms. */
const ANSWER_MS = 10_000

/** Handles of elements that a command made; they are released after it. */
export const OBJECT_GROUP = 'agent-tasks'

/** Prepares a tab. @throws BrowserError `PAGE_HANGS` when it does not answer */
export async function openPage(id: number, debuggee: Debuggee, counter: RefCounter, signal: AbortSignal) {
  const consoleLog = createConsoleLog()
  const network = createNetworkLog()
  const dialogs = createDialogs()
  const refs = createRefs(counter)
  /** The sessions of frames in other processes, by the id of the frame. */
  const sessions = new Map<string, string>()
  const observe: ((event: DebuggeeEvent) => void)[] = [consoleLog.take, network.take, dialogs.take, takeFrames]
  const stop = debuggee.onEvent((event) => {
    for (const take of observe) take(event)
  })
  debuggee.detached.addEventListener('abort', stop, { once: true })

  let mainFrameId = ''
  let crash = new AbortController()
  function takeFrames({ method, params, sessionId }: DebuggeeEvent): void {
    switch (method) {
      case 'Target.attachedToTarget':
        sessions.set(params.targetInfo.targetId, params.sessionId)
        void enable(params.sessionId, debuggee.detached).catch(() => undefined)
        break
      case 'Target.detachedFromTarget':
        for (const [frameId, id] of sessions) if (id === params.sessionId) sessions.delete(frameId)
        break
      case 'Page.frameNavigated':
        refs.forget(params.frame.id)
        if (sessionId === undefined && params.frame.id === mainFrameId) consoleLog.startPage()
        break
      case 'Inspector.targetCrashed':
        crash.abort(new BrowserError('PAGE_CRASHED', 'The page has crashed. Go to it again with browser_navigate.'))
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

  async function enable(sessionId: string | undefined, signal: AbortSignal): Promise<void> {
    const options = { sessionId, signal }
    // Bodies are not read: the browser need not keep them.
    const noBodies = { maxTotalBufferSize: 0, maxResourceBufferSize: 0 }
    await Promise.all([
      debuggee.send('Page.enable', {}, options),
      debuggee.send('Runtime.enable', undefined, options),
      debuggee.send('Network.enable', noBodies, options),
      debuggee.send('Log.enable', undefined, options),
      debuggee.send('DOM.enable', {}, options),
      debuggee.send('Target.setAutoAttach', AUTO_ATTACH, options),
    ])
  }

  const hangs = (): Error =>
    new BrowserError('PAGE_HANGS', 'The page does not answer. Go to another one with browser_tabs.')
  try {
    return await within(ANSWER_MS, hangs, signal, async (limited) => {
      const { frameTree } = await debuggee.send('Page.getFrameTree', undefined, { signal: limited })
      mainFrameId = frameTree.frame.id
      const loading = createLoading(mainFrameId, frameTree.frame.loaderId)
      observe.push(loading.take)
      network.setMainFrame(mainFrameId)
      await Promise.all([debuggee.send('Inspector.enable', undefined, { signal: limited }), enable(undefined, limited)])
      // A page in a background tab or window acts as if it had the focus, so that it takes keys.
      await debuggee.send('Emulation.setFocusEmulationEnabled', { enabled: true }, { signal: limited })
      return {
        ...{ id, debuggee, mainFrameId, console: consoleLog, network, dialogs, refs, loading },
        /** Aborts when it crashes; another one when it is loaded again. */
        get crashed(): AbortSignal {
          return crash.signal
        },
        /** The sessions of all its processes; undefined is the tab's own. */
        get sessionIds(): readonly (string | undefined)[] {
          return [undefined, ...sessions.values()]
        },
      }
    })
  } catch (error) {
    stop()
    throw error
  }
}

export type Page = Awaited<ReturnType<typeof openPage>>

const AUTO_ATTACH = {
  ...{ autoAttach: true, waitForDebuggerOnStart: false, flatten: true },
  filter: [{ type: 'iframe' }],
}
