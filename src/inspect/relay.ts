/**
 * The transport to Stately's relay: a WebSocket that is reopened with exponential back-off until the inspector is closed. Messages
 * from the relay are those of other programs, and are ignored.
 */
import type { Clock } from '../clock.js'
import { createReconnection } from '../client/reconnection.js'
import { setIdleTimeout } from './idle-timer.js'
import { openRelaySocket, type RelaySocket } from './relay-socket.js'
import type { Transport, TransportEvents } from './transport.js'

/** The most bytes that a relay which does not read may keep in our memory. */
const MOST_UNSENT = 1024 * 1024

/** The time limit for the relay to answer a close, in ms. */
const GOODBYE_MS = 1000

export interface RelayOptions extends TransportEvents {
  readonly url: string
  readonly clock: Clock
}

export function createRelayTransport({ url, clock, onOpen, onDown }: RelayOptions): Transport {
  const waitMs = createReconnection({ initialMs: 250, maxMs: 15_000 })
  let socket: RelaySocket | undefined
  let isOpen = false
  let isClosed = false
  let failures = 0
  let cancelWait = (): void => undefined

  async function connect(): Promise<void> {
    let opened: RelaySocket
    try {
      opened = await openRelaySocket(url)
    } catch (error) {
      down(error)
      return
    }
    let cause: unknown
    opened.onerror = ({ error }: { error?: unknown }) => {
      cause = error
    }
    opened.onclose = () => down(cause)
    opened.onopen = () => {
      isOpen = true
      failures = 0
      onOpen()
    }
    socket = opened
    // `close` may have been called while `ws` was loaded.
    if (isClosed) destroy(opened)
  }

  function down(cause: unknown): void {
    socket = undefined
    isOpen = false
    if (isClosed) return
    failures += 1
    const text = cause instanceof Error && cause.message !== '' ? ` (${cause.message})` : ''
    // Only the first failed attempt is reported.
    if (failures === 1) {
      onDown(
        new Error(`Cannot connect to the inspector's relay at ${url}${text}. Retrying in the background.`, { cause }),
      )
    }
    cancelWait = setIdleTimeout(clock, () => void connect(), waitMs(failures) ?? 0)
  }

  void connect()

  return {
    get state() {
      if (isOpen) return 'open'
      return failures === 0 ? 'opening' : 'down'
    },
    get canTake() {
      return isOpen && socket !== undefined && socket.bufferedAmount < MOST_UNSENT
    },
    get isDrained() {
      return socket === undefined || socket.bufferedAmount === 0
    },
    send: (text) => socket?.send(text),
    close: async () => {
      isClosed = true
      cancelWait()
      const closing = socket
      const wasOpen = isOpen
      isOpen = false
      socket = undefined
      if (closing === undefined) return
      if (wasOpen) await closeSocket(closing, clock)
      else destroy(closing)
    },
  }
}

function closeSocket(socket: RelaySocket, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const giveUp = clock.setTimeout(() => {
      destroy(socket)
      resolve()
    }, GOODBYE_MS)
    socket.onclose = () => {
      clock.clearTimeout(giveUp)
      resolve()
    }
    socket.close()
  })
}

/** `ws` can end a socket without waiting for the relay; a browser can only start the closing handshake. */
function destroy(socket: RelaySocket): void {
  if (socket.terminate === undefined) socket.close()
  else socket.terminate()
}
