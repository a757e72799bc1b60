/**
 * The way to Stately's relay: a WebSocket that is opened again when it is lost, with growing waits, for as long as the inspector
 * lives. What the relay sends is what other programs sent it, and is ignored.
 */
import type { Clock } from '../clock.js'
import { createReconnection } from '../client/reconnection.js'
import { setIdleTimeout } from './idle-timer.js'
import { openRelaySocket, type RelaySocket } from './relay-socket.js'
import type { Transport, TransportEvents } from './transport.js'

/** A relay that does not read holds no more than this in our memory, in bytes. */
const MOST_UNSENT = 1024 * 1024

/** How long the relay may take to answer a close, in ms. */
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
    // It may have been closed while the platform's socket was looked for.
    if (isClosed) destroy(opened)
  }

  function down(cause: unknown): void {
    socket = undefined
    isOpen = false
    if (isClosed) return
    failures += 1
    const text = cause instanceof Error && cause.message !== '' ? ` (${cause.message})` : ''
    // The first attempt that fails is news, the hundredth is not.
    if (failures === 1) {
      onDown(new Error(`No connection to the inspector's relay at ${url}${text}; it is tried again.`, { cause }))
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

/** A browser can only ask for a close; `ws` can do without the relay. */
function destroy(socket: RelaySocket): void {
  if (socket.terminate === undefined) socket.close()
  else socket.terminate()
}
