/**
 * The inspector: shows a viewer what the actors do, and never gets in their way.
 *
 * N1  What it is told of it takes in with a few assignments; messages are made later, some at a time, between other work.
 * N2  What waits is bounded, whatever the viewer does: the oldest is dropped and counted.
 * N3  Whatever is thrown, by `filter`, `redact` or an event that cannot be read, costs that one message, and is counted.
 * N4  A message whose redaction failed is not sent.
 * N5  A viewer hears of an actor before it hears anything else of it, on every connection; and of its parent before that.
 * N6  It keeps no process alive, except during `close`, which ends after its time limit at the latest.
 */
import type { InspectionEvent } from 'xstate'
import { systemClock, type Clock } from '../clock.js'
import { callIsolated } from '../callbacks/isolated-call.js'
import { InvalidInputError, InvalidSettingError } from '../errors.js'
import { Backlog } from './backlog.js'
import { createCapture, toMessage, type Captured } from './capture.js'
import { setIdleTimeout } from './idle-timer.js'
import type { InspectionMessage } from './messages.js'
import { toRedact, type Redact } from './redaction.js'
import { createRelayTransport } from './relay.js'
import { actorMessage, createSessions, type Session } from './sessions.js'
import type { Transport, TransportEvents } from './transport.js'
import { createViewerTransport } from './viewer-window.js'

/** What went wrong: a callback threw, an event could not be shown, or there is no connection. */
export type InspectorErrorSource = 'filter' | 'redact' | 'connection'

/** Options of `createInspector`. */
export interface InspectorOptions {
  /**
   * Where the viewer is: the `ws:` or `wss:` URL of a relay, or, in a browser, the `http:` or `https:` URL of the viewer itself, which is
   * opened in a window. Default `ws://localhost:8080`, where the relay of `@statelyai/inspect/server` listens.
   */
  readonly url?: string
  /** Whether to send a message. It is given the message as it would be sent, redacted. Default: all are sent. */
  readonly filter?: (message: InspectionMessage) => boolean
  /**
   * What is left out: true for prompts, outputs, the words of errors, and secrets; false for nothing; or a function that is asked about
   * each field (`redactByDefault` is the one behind `true`). Default true.
   */
  readonly redact?: boolean | Redact
  /** How many messages may wait for the viewer; older ones are dropped and counted. Default 5000. */
  readonly maxBuffered?: number
  /** Told of the first failure of each kind; of a lost connection, once each time it is lost. Default: `console.error`. */
  readonly onError?: (error: unknown, source: InspectorErrorSource) => void
  /** Drives its timers and timestamps. Default: the platform's. */
  readonly clock?: Clock
}

/** What became of the messages so far. */
export interface InspectorStats {
  /** Whether the relay is there. */
  readonly isConnected: boolean
  /** Given to the connection. */
  readonly sent: number
  /** Waiting to be sent. */
  readonly buffered: number
  /** Not sent, as too much was waiting already, or because of `close`. */
  readonly dropped: number
  /** Not sent, as `filter` said so. */
  readonly filtered: number
  /** Not sent, as `filter` or `redact` threw, or the event could not be read. */
  readonly failed: number
}

/** Shows a viewer what actors do. Pass it as the option `inspect`, also to XState's own `createActor`. */
export interface Inspector {
  /** Takes one inspection event in. Never throws and never waits. */
  readonly next: (event: InspectionEvent) => void
  /** How it stands now. */
  readonly stats: InspectorStats
  /**
   * Sends what is waiting and ends the connection. Later events are ignored; calling it again waits for the same end.
   * @param options.timeoutMs how long that may take, in ms; then what is left is dropped. Default 1000.
   */
  readonly close: (options?: { readonly timeoutMs?: number }) => Promise<void>
}

/** How many messages are made or sent before other work gets its turn. */
const BATCH = 100

/** How often a connection that can take nothing is looked at again, in ms. */
const FULL_MS = 50

/** How often `close` looks whether all has been sent, in ms. */
const DRAIN_MS = 5

/** The most text that waits, in characters. */
const MOST_CHARS = 8 * 1024 * 1024

interface Waiting {
  readonly session: Session
  readonly text: string
  readonly isActor: boolean
}

/**
 * Connects to a viewer of Stately's; the connection may come later, and may be lost and found again.
 * @returns what to pass as `inspect` to managers, `createAgentTasks` and `startTaskServer`
 * @throws InvalidSettingError, InvalidInputError for options that do not fit
 */
export function createInspector(options: InspectorOptions = {}): Inspector {
  const { url = 'ws://localhost:8080', filter, maxBuffered = 5000, clock = systemClock } = options
  const { onError = reportToConsole } = options
  const redact = toRedact(options.redact ?? true)
  if (filter !== undefined && typeof filter !== 'function') {
    throw new InvalidInputError('options.filter', filter, 'a function')
  }
  if (!Number.isInteger(maxBuffered) || maxBuffered < 1) {
    throw new InvalidSettingError('maxBuffered', maxBuffered, 'an integer >= 1')
  }
  const capture = createCapture(() => clock.now())
  const sessions = createSessions(redact)
  const captured = new Backlog<Captured>(maxBuffered, Infinity, () => 0)
  const waiting = new Backlog<Waiting>(maxBuffered, MOST_CHARS, ({ text }) => text.length)
  const reported = new Set<InspectorErrorSource>()
  let connection = 0
  let untold: Session[] = []
  let sent = 0
  let failed = 0
  let filtered = 0
  let abandoned = 0
  let cancelPump: (() => void) | undefined
  let closing: Promise<void> | undefined
  let isClosed = false

  const report = (error: unknown, source: InspectorErrorSource): void => {
    // Reporting is the last resort.
    callIsolated(
      (): unknown => onError(error, source),
      () => undefined,
    )
  }
  const reportFirst = (error: unknown, source: InspectorErrorSource): void => {
    failed += 1
    if (reported.has(source)) return
    reported.add(source)
    report(error, source)
  }
  const transport = openTransport(url, clock, {
    onOpen: () => {
      connection += 1
      untold = [...sessions.live()]
      pumpSoon(0)
    },
    onDown: (error) => report(error, 'connection'),
  })

  /** The text of a message, unless it is not to be sent. */
  function encode(message: InspectionMessage): string | undefined {
    try {
      if (filter === undefined || filter(message)) return JSON.stringify(message)
      filtered += 1
    } catch (error) {
      reportFirst(error, 'filter')
    }
    return undefined
  }

  function makeMessage(event: Captured): void {
    try {
      const { message, session } = toMessage(event, sessions, redact)
      const text = encode(message)
      if (text !== undefined) waiting.add({ session, text, isActor: message.type === '@xstate.actor' })
    } catch (error) {
      reportFirst(error, 'redact')
    }
  }

  function send(text: string): void {
    transport.send(text)
    sent += 1
  }

  /** Tells of an actor, and of those above it, unless this connection has been told. */
  function tell(session: Session): void {
    if (session.toldOn === connection) return
    if (session.parent !== undefined) tell(session.parent)
    session.toldOn = connection
    const text = encode(actorMessage(session))
    if (text !== undefined) send(text)
  }

  function sendWaiting({ session, text, isActor }: Waiting): void {
    if (isActor && session.parent !== undefined) tell(session.parent)
    if (isActor) session.toldOn = connection
    else tell(session)
    send(text)
  }

  /** Does some of what there is to do; returns whether there is more that can be done now. */
  function pump(): boolean {
    for (let count = 0; count < BATCH; count += 1) {
      const event = captured.take()
      if (event === undefined) break
      makeMessage(event)
    }
    for (let count = 0; count < BATCH && transport.canTake; count += 1) {
      const next = waiting.take()
      if (next !== undefined) sendWaiting(next)
      // Actors that have nothing new to tell are part of the tree all the same.
      else if (untold.length > 0) tell(untold.shift() as Session)
      else break
    }
    return captured.size > 0 || (hasUnsent() && transport.canTake)
  }

  const hasUnsent = (): boolean => waiting.size > 0 || (untold.length > 0 && connection > 0)

  function pumpSoon(ms: number): void {
    if (isClosed) return
    cancelPump ??= setIdleTimeout(
      clock,
      () => {
        cancelPump = undefined
        const hasMore = pump()
        // Without a connection nothing can be sent; when there is one, it says so.
        if (hasMore) pumpSoon(0)
        else if (hasUnsent() && connection > 0) pumpSoon(FULL_MS)
      },
      ms,
    )
  }

  async function end(timeoutMs: number): Promise<void> {
    const deadline = clock.now() + timeoutMs
    const isOver = (): boolean => captured.size === 0 && !hasUnsent() && transport.isDrained
    for (;;) {
      const hasMore = pump()
      // Nobody waits for a relay that is not there.
      if (isOver() || transport.state === 'down' || clock.now() >= deadline) break
      await new Promise<void>((resolve) => clock.setTimeout(resolve, hasMore ? 0 : DRAIN_MS))
    }
    isClosed = true
    cancelPump?.()
    abandoned = captured.size + waiting.size
    captured.clear()
    waiting.clear()
    await transport.close()
  }

  return {
    next: (event) => {
      if (closing !== undefined) return
      try {
        const taken = capture(event)
        if (taken === undefined) return
        captured.add(taken)
        pumpSoon(0)
      } catch (error) {
        // Whatever was passed in was no inspection event.
        reportFirst(error, 'redact')
      }
    },
    get stats() {
      return {
        isConnected: transport.state === 'open',
        sent,
        buffered: captured.size + waiting.size,
        dropped: captured.dropped + waiting.dropped + abandoned,
        filtered,
        failed,
      }
    },
    close: ({ timeoutMs = 1000 } = {}) => (closing ??= end(timeoutMs)),
  }
}

/** @throws InvalidSettingError for what is no URL, or one of another kind */
function openTransport(url: string, clock: Clock, events: TransportEvents): Transport {
  switch (URL.canParse(url) ? new URL(url).protocol : undefined) {
    case 'ws:':
    case 'wss:':
      return createRelayTransport({ url, clock, ...events })
    case 'http:':
    case 'https:':
      return createViewerTransport({ url, ...events })
    default:
      throw new InvalidSettingError(
        'url',
        url,
        'the ws: or wss: URL of a relay, or the http: or https: URL of a viewer to open',
      )
  }
}

function reportToConsole(error: unknown, source: InspectorErrorSource): void {
  console.error(`[agent-tasks] inspector, ${source}:`, error)
}
