/**
 * One JSON connection that comes back: it opens a socket, hands over what arrives, and opens another when that one is lost.
 * The client and the worker put their handshakes on top of it.
 *
 * K1  At most one socket is in use; what an earlier one still says or does is ignored.
 * K2  After `close()` nothing is handed over, and no timer and no socket is left when its promise resolves.
 * K3  Every connection that was opened, or tried, and not closed by the owner is reported down exactly once.
 */
import { clearLongTimeout, setLongTimeout, type Clock, type LongTimer } from '../clock.js'
import { ConnectionError } from './client-errors.js'
import { findSocketConstructor, type SocketConstructor, type SocketLike } from './platform.js'
import type { Reconnection } from './reconnection.js'

/** How long an attempt may take until it is ready, in ms. */
const READY_TIMEOUT_MS = 10_000

/** How long a peer may take to answer a close, in ms, before the socket is dropped. */
const CLOSE_TIMEOUT_MS = 1000

/** How a connection, or an attempt, ended. */
export interface LinkEnd {
  readonly error: ConnectionError
  /** The close code, when the socket was closed properly. */
  readonly code: number | undefined
  /** The handshake had been done. */
  readonly wasReady: boolean
  /** No more attempt is left: it ends here, whatever the owner wants. */
  readonly isFinal: boolean
}

export interface LinkOptions {
  readonly url: () => string
  readonly WebSocket: SocketConstructor | undefined
  readonly clock: Clock
  readonly reconnection: Reconnection
  /** Part of every attempt: what must be done before the URL is asked for. */
  readonly beforeConnect?: () => Promise<void>
  /** The socket is open: shake hands, then call `ready`. */
  readonly onOpen: () => void
  /** A frame, parsed. Frames that are no JSON are dropped. */
  readonly onMessage: (message: unknown) => void
  /** @returns whether to connect again, which the link does unless the end is final */
  readonly onDown: (end: LinkEnd) => boolean
}

export interface Link {
  /** Whether the handshake is done. */
  readonly isReady: boolean
  /** Milliseconds since the epoch: when the peer was last heard. */
  readonly heardAt: number
  /** Connects, unless it is connected or is going to. */
  wake(): void
  /** The handshake is done. */
  ready(): void
  /** False when there is no open socket. */
  send(message: object): boolean
  /** Gives the present connection up: it is down now, whatever its peer does. */
  drop(reason: string): void
  /** Ends the connection for good. */
  close(): Promise<void>
}

type Stage = 'idle' | 'connecting' | 'open' | 'ready' | 'waiting' | 'closed'

export function createLink(options: LinkOptions): Link {
  const { clock } = options
  let stage: Stage = 'idle'
  let socket: SocketLike | undefined
  /** Names the socket in use. */
  let generation = 0
  let timer: LongTimer | undefined
  let failures = 0
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
    setTimer(() => drop(`It was not ready within ${READY_TIMEOUT_MS} ms.`), READY_TIMEOUT_MS)
    try {
      await options.beforeConnect?.()
      const Socket = await findSocketConstructor(options.WebSocket)
      if (!isMine()) return
      const opened = new Socket(options.url())
      socket = opened
      opened.onopen = () => {
        if (!isMine()) return
        stage = 'open'
        heardAt = clock.now()
        options.onOpen()
      }
      opened.onmessage = ({ data }: { data: unknown }) => {
        if (!isMine()) return
        heardAt = clock.now()
        const message = parseFrame(data)
        if (message !== undefined) options.onMessage(message)
      }
      opened.onclose = ({ code, reason }: { code: number; reason: string }) => {
        if (isMine()) down(`${code}${reason === '' ? '' : `: ${reason}`}`, code)
      }
      // What it says is no more than the close that follows.
      opened.onerror = () => undefined
    } catch (error) {
      if (isMine()) down(error instanceof Error ? error.message : String(error), undefined, error)
    }
  }

  function down(why: string, code: number | undefined, cause?: unknown): void {
    const wasReady = stage === 'ready'
    generation += 1
    socket = undefined
    stage = 'idle'
    clearLongTimeout(clock, timer)
    failures += 1
    const waitMs = options.reconnection(failures)
    const error = new ConnectionError(
      wasReady ? 'CONNECTION_LOST' : 'CONNECTION_FAILED',
      wasReady
        ? `The connection to ${options.url()} was lost (${why}).`
        : `Cannot connect to ${options.url()} (${why}).`,
      { cause },
    )
    const isWanted = options.onDown({ error, code, wasReady, isFinal: waitMs === undefined })
    // The owner may have closed the link, or woken it, when it was told.
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

  return {
    get isReady() {
      return stage === 'ready'
    },
    get heardAt() {
      return heardAt
    },
    wake: () => {
      if (stage === 'idle') void connect()
    },
    ready: () => {
      if (stage !== 'open') return
      stage = 'ready'
      failures = 0
      clearLongTimeout(clock, timer)
    },
    send: (message) => {
      if (socket === undefined || (stage !== 'open' && stage !== 'ready')) return false
      socket.send(JSON.stringify(message))
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

/** A browser can only ask for a close; `ws` can do without the peer. */
function destroy(socket: SocketLike): void {
  const { terminate } = socket as { terminate?: unknown }
  if (typeof terminate === 'function') terminate.call(socket)
  else socket.close()
}

function parseFrame(data: unknown): unknown {
  if (typeof data !== 'string') return undefined
  try {
    return JSON.parse(data)
  } catch {
    return undefined
  }
}
