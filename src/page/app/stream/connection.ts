/**
 * The connection to the server: one stream at a time, tried again with growing pauses.
 *
 * 1. What is called live was heard of within the last `SILENCE_MS`; the server sends at least a comment each second.
 * 2. A new connection begins where the last one ended, by the id of its last event.
 * 3. A refused token ends the attempts: only another token can help.
 */
import { createStreamParser, type StreamEvent } from './stream-parser.js'

/** How the page and its server stand. */
export type Connection =
  | { readonly state: 'connecting' }
  | { readonly state: 'live' }
  | { readonly state: 'lost'; readonly why: string }
  | { readonly state: 'refused'; readonly why: string }

/** What the connection needs of its surroundings. */
export interface ConnectionPlatform {
  /** Opens the stream; rejects when there is no server. */
  open(lastEventId: string | undefined, signal: AbortSignal): Promise<OpenStream>
  /** Calls back after a time in ms; returns what stops it. */
  after(ms: number, run: () => void): () => void
  /** In ms, of any epoch. */
  now(): number
}

export interface OpenStream {
  readonly status: number
  /** Why it was refused, when `status` is not 200. */
  readonly error?: string
  readonly pieces: AsyncIterable<string>
}

export interface ConnectionOptions {
  readonly platform: ConnectionPlatform
  readonly onEvent: (event: StreamEvent) => void
  readonly onState: (connection: Connection) => void
  /** Whenever the server was heard of. */
  readonly onHeard: () => void
}

export interface ConnectionHandle {
  /** Tries at once, as when the network is back. */
  retryNow(): void
  close(): void
}

/** After this long without data a server counts as lost, in ms. */
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
      const { status, error = `The server answers ${status}.` } = stream
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

/** Looks often and sums up small steps: a page whose timers stood still, as in a sleeping laptop, first gets the time to read what has come. */
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
