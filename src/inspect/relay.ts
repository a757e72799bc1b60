/**
 * The transport to Stately's relay: a WebSocket that is reopened with exponential back-off until the inspector is closed. Messages
 * from the relay are those of other programs, and are ignored.
 */
import type { Clock } from '../clock.js'
import { createLink } from '../client/link.js'
import { findSocketConstructor, type SocketConstructor } from '../client/platform.js'
import { createReconnection } from '../client/reconnection.js'
import { idleClock } from './idle-clock.js'
import type { Transport, TransportEvents } from './transport.js'

/** The most bytes that a relay which does not read may keep in our memory. */
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
    // Only `close` keeps the process alive, until the relay has answered it.
    clock: { ...idle, setTimeout: (run, ms) => (isClosing ? clock : idle).setTimeout(run, ms) },
    reconnection: createReconnection({ initialMs: 250, maxMs: 15_000 }),
    onOpen: () => {
      isDown = false
      link.ready()
      onOpen()
    },
    onMessage: () => undefined,
    onDown: ({ error }) => {
      // Only the first failed attempt is reported.
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

/** Node's own WebSocket keeps the process alive: there it is that of `ws`, without a reference to its socket. */
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
