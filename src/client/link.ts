/**
 * One JSON connection that reconnects. The client, the worker and the inspector use it.
 *
 * - At most one socket is in use. Events of earlier sockets are ignored.
 * - After `close()` no callback runs. When the promise of `close()` resolves, no timer and no socket is left.
 * - The end of every connection, and the failure of every attempt, is reported to `onDown` exactly once, unless `close()` caused it.
 */
import { clearLongTimeout, elapsedMs, setLongTimeout, type Clock, type LongTimer } from '../system/clock.js'
import { ConnectionError } from './client-errors.js'
import type { SocketConstructor, SocketLike } from './platform.js'
import type { Reconnection } from './reconnection.js'

/** The time limit of an attempt to connect, in ms. It ends when the owner of the link calls `ready()`. */
const READY_TIMEOUT_MS = 10_000

/** How long the peer may take to answer a close, in ms. Then the socket is destroyed. */
const CLOSE_TIMEOUT_MS = 1000

/** Describes the end of a connection, or of an attempt to connect. */
export interface LinkEnd {
  readonly error: ConnectionError
  /** The close code of the peer; undefined when the peer did not close the socket. */
  readonly code: number | undefined
  readonly wasReady: boolean
  /** Whether the reconnection policy allows no further attempt. */
  readonly isFinal: boolean
}

export interface LinkOptions {
  readonly url: () => string
  readonly loadSocket: () => Promise<SocketConstructor>
  readonly clock: Clock
  readonly reconnection: Reconnection
  /** Runs at the start of each attempt, before `url` is called. */
  readonly beforeConnect?: () => Promise<void>
  /** Called when the socket is open. The owner of the link does its handshake now, and then calls `ready`. */
  readonly onOpen: () => void
  /** Called with each parsed frame. Frames that are not JSON are dropped. */
  readonly onMessage: (message: unknown) => void
  /** @returns whether to reconnect. The value is ignored when `isFinal` is true */
  readonly onDown: (end: LinkEnd) => boolean
  /** Calls `onSilence` after each `everyMs` in which a ready connection received nothing. */
  readonly heartbeat?: { readonly everyMs: number; readonly onSilence: (silentMs: number) => void }
}

export interface Link {
  readonly isReady: boolean
  /** When the last frame was received, in ms of the monotonic clock `elapsedMs`. */
  readonly heardAt: number
  /** The bytes that were sent and have not left this process; 0 without a socket. */
  readonly bufferedAmount: number
  /** Connects, unless it is connected, connecting or waiting to reconnect. */
  wake(): void
  /** The owner calls this when its handshake is complete. */
  ready(): void
  /**
   * @param frame an object, or JSON text
   * @returns false when there is no open socket
   */
  send(frame: object | string): boolean
  /** Ends the current connection as lost, without a closing handshake. */
  drop(reason: string): void
  /** Closes the link. It cannot connect again. */
  close(): Promise<void>
}

type Stage = 'idle' | 'connecting' | 'open' | 'ready' | 'waiting' | 'closed'

export function createLink(options: LinkOptions): Link {
  const { clock, heartbeat } = options
  let stage: Stage = 'idle'
  let socket: SocketLike | undefined
  /** Counts the sockets. Callbacks of a socket with an older number are ignored. */
  let generation = 0
  let timer: LongTimer | undefined
  let failures = 0
  /** The time of the first failure since the last ready connection. */
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
    setTimer(() => drop(`the server did not complete the handshake within ${READY_TIMEOUT_MS} ms`), READY_TIMEOUT_MS)
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
      // A close event follows. Only the sockets of `ws` say why they failed.
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
    // `onDown` may have closed the link, or started a new connection.
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

/** Ends a socket without waiting for the peer. Only `ws` can do that; a browser can only start the closing handshake. */
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
