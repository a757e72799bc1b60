/**
 * The connection to the server: one event stream at a time. The pause between two attempts to connect grows from 250 ms to 4 s.
 *
 * 1. "Live" means that data has arrived within the last 1.8 seconds. The server sends at least a comment each second.
 * 2. A new stream resumes the last stream, with the id of the last event.
 * 3. After the server has refused the token, there are no further attempts, because only another token can help.
 */
import { createStreamParser, type StreamEvent } from './stream-parser.js'

export type Connection =
  | { readonly state: 'connecting' }
  | { readonly state: 'live' }
  | { readonly state: 'lost'; readonly why: string }
  | { readonly state: 'refused'; readonly why: string }

/** The functions of the browser that the connection needs. */
export interface ConnectionPlatform {
  /** Opens a stream. Rejects if the server does not answer. */
  open(lastEventId: string | undefined, signal: AbortSignal): Promise<OpenStream>
  /** Calls `run` after `ms` milliseconds. Returns a function that stops the timer. */
  after(ms: number, run: () => void): () => void
  /** Returns a time in ms. Only differences of two times are used. */
  now(): number
}

export interface OpenStream {
  readonly status: number
  /** Why the server refused the stream; set if `status` is not 200. */
  readonly error?: string
  readonly pieces: AsyncIterable<string>
}

export interface ConnectionOptions {
  readonly platform: ConnectionPlatform
  readonly onEvent: (event: StreamEvent) => void
  readonly onState: (connection: Connection) => void
  /** Called whenever data arrives. */
  readonly onHeard: () => void
}

export interface ConnectionHandle {
  /** Ends the pause before the next attempt, for example when the network is back. */
  retryNow(): void
  close(): void
}

/** A server that has sent nothing for this long counts as lost, in ms. */
export const SILENCE_MS = 1800
const CHECK_MS = 200
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 4000

const LOST = 'The server does not answer.'

export function createConnection({ platform, onEvent, onState, onHeard }: ConnectionOptions): ConnectionHandle {
  let lastEventId: string | undefined
  let pauseMs = FIRST_PAUSE_MS
  let stopWaiting: (() => void) | undefined
  let isClosed = false
  let current: AbortController | undefined

  const connect = async (): Promise<void> => {
    const attempt = new AbortController()
    current = attempt
    stopWaiting = undefined
    const isCurrent = (): boolean => current === attempt && !isClosed
    const heardOf = watchForSilence(platform, () => {
      attempt.abort()
      onLost(attempt, LOST)
    })
    try {
      const stream = await platform.open(lastEventId, attempt.signal)
      if (!isCurrent()) return
      const { status, error = `The server answered with the HTTP status ${status}.` } = stream
      if (status === 401) {
        onState({ state: 'refused', why: error })
        return
      }
      if (status !== 200) {
        onLost(attempt, error)
        return
      }
      const parser = createStreamParser((event) => {
        if (event.id !== '') lastEventId = event.id
        onEvent(event)
      })
      for await (const piece of stream.pieces) {
        if (!isCurrent()) return
        heardOf.again()
        onHeard()
        parser.feed(piece)
        pauseMs = FIRST_PAUSE_MS
      }
      onLost(attempt, 'The server has ended the connection.')
    } catch {
      onLost(attempt, LOST)
    } finally {
      heardOf.stop()
    }
  }

  const onLost = (attempt: AbortController, why: string): void => {
    if (current !== attempt || isClosed) return
    current = undefined
    onState({ state: 'lost', why })
    stopWaiting = platform.after(pauseMs, () => void connect())
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
  }

  onState({ state: 'connecting' })
  void connect()
  return {
    retryNow: () => {
      if (stopWaiting === undefined || isClosed) return
      stopWaiting()
      void connect()
    },
    close: () => {
      isClosed = true
      stopWaiting?.()
      current?.abort()
    },
  }
}

/**
 * Calls `onSilence` when no data has arrived for `SILENCE_MS`. It adds up steps of at most 400 ms, because timers stop while a laptop sleeps: after
 * waking up, the page first has time to read the data that has arrived.
 */
function watchForSilence(platform: ConnectionPlatform, onSilence: () => void): { again(): void; stop(): void } {
  let silentMs = 0
  let lookedAt = platform.now()
  let stopTimer = platform.after(CHECK_MS, look)
  function look(): void {
    const at = platform.now()
    silentMs += Math.min(at - lookedAt, 2 * CHECK_MS)
    lookedAt = at
    if (silentMs >= SILENCE_MS) onSilence()
    else stopTimer = platform.after(CHECK_MS, look)
  }
  return {
    again: () => {
      silentMs = 0
    },
    stop: () => stopTimer(),
  }
}
