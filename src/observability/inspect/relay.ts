/**
 * The transport to Stately's relay: a WebSocket that reconnects with exponential back-off until the inspector is closed. Messages that come from the
 * relay are ignored, because other programs sent them.
 */
import type { Clock } from '../../system/clock.js'
import { createLink } from '../../client/link.js'
import { findSocketConstructor, type SocketConstructor } from '../../client/platform.js'
import { createReconnection } from '../../client/reconnection.js'
import { idleClock } from './idle-clock.js'
import type { Transport, TransportEvents } from './transport.js'

/** How much unsent data may be held in memory for a relay that does not read, in bytes. */
const MOST_UNSENT = 1024 * 1024

export interface RelayOptions extends TransportEvents {
  readonly url: string
  readonly clock: Clock
}

export function createRelayTransport({ url, clock, onOpen, onDown }: RelayOptions): Transport {
  const idle = idleClock(clock)
  let isDown = false
  let isClosing = false
  const link = createLink({
    url: () => url,
    loadSocket,
    // The clock of the process is used only during `close`: its timers keep the process alive until the relay has answered.
    clock: { ...idle, setTimeout: (run, ms) => (isClosing ? clock : idle).setTimeout(run, ms) },
    reconnection: createReconnection({ initialMs: 250, maxMs: 15_000 }),
    onOpen: () => {
      isDown = false
      link.ready()
      onOpen()
    },
    onMessage: () => undefined,
    onDown: ({ error }) => {
      // Only the first failed attempt is reported. The next report follows after a connection was lost again.
      if (!isDown) onDown(new Error(`Inspector: ${error.message} Retrying in the background.`, { cause: error.cause }))
      isDown = true
      return true
    },
  })
  link.wake()

  return {
    get state() {
      if (link.isReady) return 'open'
      return isDown ? 'down' : 'opening'
    },
    get canTake() {
      return link.isReady && link.bufferedAmount < MOST_UNSENT
    },
    get isDrained() {
      return link.bufferedAmount === 0
    },
    send: (text) => void link.send(text),
    close: () => {
      isClosing = true
      return link.close()
    },
  }
}

/** Node's own WebSocket would keep the process alive. So in Node the class of `ws` is used, and its socket is unreferenced. */
async function loadSocket(): Promise<SocketConstructor> {
  const { process } = globalThis as { process?: { readonly versions?: { readonly node?: string } } }
  if (process?.versions?.node === undefined) return findSocketConstructor(undefined)
  const { WebSocket } = await import('ws')
  return class extends WebSocket {
    constructor(url: string) {
      super(url, {
        perMessageDeflate: false,
        finishRequest: (request) => {
          request.once('socket', (socket) => socket.unref())
          request.end()
        },
      })
    }
  }
}
