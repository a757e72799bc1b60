/**
 * The transport to Stately's viewer in a browser. `@statelyai/inspect` opens a window and posts messages to it. The package is imported only when it
 * is needed. It keeps the last messages for a viewer that loads late, or is reloaded.
 */
import { InvalidSettingError } from '../../errors.js'
import type { InspectionMessage } from './messages.js'
import type { Transport, TransportEvents } from './transport.js'

/** The number of messages that are kept for a viewer that loads late. */
const REPLAYED = 1000

/** The part of the package's adapter that is used here. */
interface ViewerAdapter {
  send(message: InspectionMessage): void
  stop(): void
}

export interface ViewerOptions extends TransportEvents {
  readonly url: string
}

/** @throws INVALID_SETTING outside a browser window */
export function createViewerTransport({ url, onOpen, onDown }: ViewerOptions): Transport {
  if (!('window' in globalThis)) {
    throw new InvalidSettingError('url', url, 'the ws: or wss: URL of a relay: there is no browser window here')
  }
  let adapter: ViewerAdapter | undefined
  let isClosed = false
  let hasFailed = false

  async function open(): Promise<void> {
    let problem = 'needs @statelyai/inspect, which could not be loaded'
    try {
      const { createBrowserInspector } = await import('@statelyai/inspect')
      if (isClosed) return
      problem = `at ${url} could not be opened in a window`
      const inspector = createBrowserInspector({
        url,
        maxDeferredEvents: REPLAYED,
        serialize: (message) => message,
        window: openingWindow(),
      })
      // The declared types of the package are not those of the messages that it sends: their `id` is null.
      adapter = inspector.adapter as unknown as ViewerAdapter
      onOpen()
    } catch (cause) {
      hasFailed = true
      const text = cause instanceof Error && cause.message !== '' ? ` (${cause.message})` : ''
      if (!isClosed) onDown(new Error(`The viewer ${problem}${text}.`, { cause }))
    }
  }
  void open()

  return {
    get state() {
      if (hasFailed) return 'down'
      return adapter === undefined ? 'opening' : 'open'
    },
    get canTake() {
      return adapter !== undefined
    },
    isDrained: true,
    send: (text) => adapter?.send(JSON.parse(text) as InspectionMessage),
    close: () => {
      isClosed = true
      adapter?.stop()
      adapter = undefined
      return Promise.resolve()
    },
  }
}

/** The part of a window that the package's adapter uses. */
interface OpeningWindow {
  open(url: string, name: string): unknown
  addEventListener(type: string, listener: (event: never) => void): void
}

/** This window. When the browser blocks the pop-up, `open` of the platform returns null; here it throws. */
function openingWindow(): OpeningWindow {
  const { window } = globalThis as unknown as { readonly window: OpeningWindow }
  return {
    open: (url, name) => {
      const opened = window.open(url, name)
      if (opened === null) {
        throw new Error('the browser blocked it: open it from a click, or allow pop-ups for this page')
      }
      return opened
    },
    addEventListener: (type, listener) => window.addEventListener(type, listener),
  }
}
