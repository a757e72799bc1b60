/**
 * One JSON connection that reconnects. The client, the worker and the inspector's relay build their protocols on it.
 *
 * K1  At most one socket is in use; events of earlier ones are ignored.
 * K2  After `close()` no callback runs; when its promise resolves, no timer and no socket is left.
 * K3  Every connection or attempt that the owner did not close is reported to `onDown` exactly once.
 */
import { clearLongTimeout, elapsedMs, setLongTimeout, type Clock, type LongTimer } from '../clock.js'
import { ConnectionError } from './client-errors.js'
import type { SocketConstructor, SocketLike } from './platform.js'
import type { Reconnection } from './reconnection.js'

/** The time limit of an attempt, until `ready()`, in ms. */
const READY_TIMEOUT_MS = 10_000

/** The time limit for the peer to answer a close, in ms; then the socket is destroyed. */
const CLOSE_TIMEOUT_MS = 1000

/** The end of a connection or an attempt. */
export interface LinkEnd {
  readonly error: ConnectionError
  /** The close code; undefined when the socket was not closed by the peer. */
  readonly code: number | undefined
  /** Whether the handshake was complete. */
  readonly wasReady: boolean
  /** Whether the reconnection policy allows no further attempt. */
  readonly isFinal: boolean
}

export interface LinkOptions {
  readonly url: () => string
  /** Loads the WebSocket class at each attempt. */
  readonly loadSocket: () => Promise<SocketConstructor>
  readonly clock: Clock
  readonly reconnection: Reconnection
  /** Runs at the start of each attempt, before `url` is called. */
  readonly beforeConnect?: () => Promise<void>
  /** Called when the socket is open. Do the handshake, then call `ready`. */
  readonly onOpen: () => void
  /** Called with each parsed frame. Frames that are not JSON are dropped. */
  readonly onMessage: (message: unknown) => void
  /** @returns whether to reconnect; ignored when the end is final */
  readonly onDown: (end: LinkEnd) => boolean
  /** Called after each `everyMs` in which a ready connection received nothing. */
  readonly heartbeat?: { readonly everyMs: number; readonly onSilence: (silentMs: number) => void }
}

export interface Link {
  /** Whether the handshake is complete. */
  readonly isReady: boolean
  /** When the last frame was received, in ms on the clock of `elapsedMs`. */
  readonly heardAt: number
  /** Bytes that were sent and have not left this process; 0 without a socket. */
  readonly bufferedAmount: number
  /** Connects, unless it is connected, connecting or waiting to reconnect. */
  wake(): void
  /** The handshake is complete. */
  ready(): void
  /** @param frame an object, or JSON text. @returns false when there is no open socket */
  send(frame: object | string): boolean
  /** Ends the current connection as lost, without waiting for the peer. */
  drop(reason: string): void
  /** Closes the link for good. */
  close(): Promise<void>
}

type Stage = 'idle' | 'connecting' | 'open' | 'ready' | 'waiting' | 'closed'

export function createLink(options: LinkOptions): Link {
  const { clock, heartbeat } = options
  let stage: Stage = 'idle'
  let socket: SocketLike | undefined
  /** Identifies the socket in use. */
  let generation = 0
  let timer: LongTimer | undefined
  let failures = 0
  /** When the first of the failures in a row happened. */
  let downSince = 0
  let heardAt = 0

  function setTimer(run: () => void, ms: number): void {
    clearLongTimeout(clock, timer)
    timer = setLongTimeout(clock, run, ms)
  }

  async function connect(): Promise<void> {
    generation += 1
    const mine = generation
    const isMine = (): boolean => generation === mine
    stage = 'connecting'
    setTimer(() => drop(`not ready within ${READY_TIMEOUT_MS} ms`), READY_TIMEOUT_MS)
    try {
      await options.beforeConnect?.()
      const Socket = await options.loadSocket()
      if (!isMine()) return
      const opened = new Socket(options.url())
      socket = opened
      let cause: unknown
      opened.onopen = () => {
        if (!isMine()) return
        stage = 'open'
        heardAt = elapsedMs(clock)
        options.onOpen()
      }
      opened.onmessage = ({ data }: { data: unknown }) => {
        if (!isMine()) return
        heardAt = elapsedMs(clock)
        const message = parseFrame(data)
        if (message !== undefined) options.onMessage(message)
      }
      opened.onclose = ({ code, reason }: { code: number; reason: string }) => {
        if (isMine()) down(messageOf(cause) ?? `${code}${reason === '' ? '' : `: ${reason}`}`, code, cause)
      }
      // A close event follows. Only `ws` gives the reason.
      opened.onerror = ({ error }: { error?: unknown }) => {
        cause = error
      }
    } catch (error) {
      if (isMine()) down(messageOf(error) ?? String(error), undefined, error)
    }
  }

  function down(why: string, code: number | undefined, cause?: unknown): void {
    const wasReady = stage === 'ready'
    generation += 1
    socket = undefined
    stage = 'idle'
    clearLongTimeout(clock, timer)
    if (failures === 0) downSince = elapsedMs(clock)
    failures += 1
    const waitMs = options.reconnection(failures, elapsedMs(clock) - downSince)
    const error = new ConnectionError(
      wasReady ? 'CONNECTION_LOST' : 'CONNECTION_FAILED',
      wasReady
        ? `The connection to ${options.url()} was lost (${why}).`
        : `Cannot connect to ${options.url()} (${why}).`,
      { cause },
    )
    const isWanted = options.onDown({ error, code, wasReady, isFinal: waitMs === undefined })
    // `onDown` may have closed or woken the link.
    if (stage !== ('idle' as Stage)) return
    if (waitMs === undefined || !isWanted) {
      failures = 0
      return
    }
    stage = 'waiting'
    setTimer(() => void connect(), waitMs)
  }

  function drop(reason: string): void {
    const dropped = socket
    if (stage !== 'connecting' && stage !== 'open' && stage !== 'ready') return
    down(reason, undefined)
    if (dropped !== undefined) destroy(dropped)
  }

  function watchSilence(): void {
    if (heartbeat === undefined) return
    const { everyMs, onSilence } = heartbeat
    const silentMs = elapsedMs(clock) - heardAt
    if (silentMs >= everyMs) onSilence(silentMs)
    if (stage === 'ready') setTimer(watchSilence, silentMs < everyMs ? everyMs - silentMs : everyMs)
  }

  return {
    get isReady() {
      return stage === 'ready'
    },
    get heardAt() {
      return heardAt
    },
    get bufferedAmount() {
      return socket?.bufferedAmount ?? 0
    },
    wake: () => {
      if (stage === 'idle') void connect()
    },
    ready: () => {
      if (stage !== 'open') return
      stage = 'ready'
      failures = 0
      clearLongTimeout(clock, timer)
      watchSilence()
    },
    send: (frame) => {
      if (socket === undefined || (stage !== 'open' && stage !== 'ready')) return false
      socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
      return true
    },
    drop,
    close: async () => {
      const closing = socket
      generation += 1
      socket = undefined
      stage = 'closed'
      clearLongTimeout(clock, timer)
      if (closing !== undefined) await closeSocket(closing, clock)
    },
  }
}

function closeSocket(socket: SocketLike, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearLongTimeout(clock, timeout)
      resolve()
    }
    socket.onclose = end
    const timeout = setLongTimeout(
      clock,
      () => {
        destroy(socket)
        end()
      },
      CLOSE_TIMEOUT_MS,
    )
    socket.close(1000)
  })
}

/** `ws` can end a socket without waiting for the peer; a browser can only start the closing handshake. */
function destroy(socket: SocketLike): void {
  const { terminate } = socket as { terminate?: unknown }
  if (typeof terminate === 'function') terminate.call(socket)
  else socket.close()
}

function messageOf(error: unknown): string | undefined {
  return error instanceof Error && error.message !== '' ? error.message : undefined
}

function parseFrame(data: unknown): unknown {
  if (typeof data !== 'string') return undefined
  try {
    return JSON.parse(data)
  } catch {
    return undefined
  }
}
