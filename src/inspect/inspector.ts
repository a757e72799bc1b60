/**
 * The inspector: shows a viewer what the actors do, without slowing them down or failing them.
 *
 * N1  Recording an event takes a few assignments; messages are built later, in batches, between other work.
 * N2  The backlog is bounded, whatever the viewer does: the oldest message is dropped and counted.
 * N3  An exception of `filter` or `redact`, or an event that cannot be read, costs one message, and is counted.
 * N4  A message whose redaction failed is not sent.
 * N5  On every connection an actor's `@xstate.actor` message comes before its other messages, and its parent's before that.
 * N6  It does not keep a process alive, except during `close`, which is limited in time.
 */
import { systemClock, type Clock } from '../clock.js'
import { callIsolated } from '../callbacks/isolated-call.js'
import { InvalidSettingError } from '../errors.js'
import { aClock, aFunction, anything, checkOptions, integerFrom, type OptionTypes } from '../protocol/option-checks.js'
import { Backlog } from './backlog.js'
import { createCapture, toMessage, type Captured } from './capture.js'
import { idleClock } from './idle-clock.js'
import type { Inspector, InspectorCloseOptions, InspectorErrorSource, InspectorOptions } from './inspector-types.js'
import type { InspectionMessage } from './messages.js'
import { toRedact } from './redaction.js'
import { createRelayTransport } from './relay.js'
import { actorMessage, createSessions, type Session } from './sessions.js'
import type { Transport, TransportEvents } from './transport.js'
import { createViewerTransport } from './viewer-window.js'

/** How many messages are built or sent before other work gets a turn. */
const BATCH = 100

/** The interval at which a connection that is full is checked, in ms. */
const FULL_MS = 50

/** The interval at which `close` checks whether all has been sent, in ms. */
const DRAIN_MS = 5

/** The most text that waits, in characters. */
const MOST_CHARS = 8 * 1024 * 1024

interface Waiting {
  readonly session: Session
  readonly text: string
  /** What an `@xstate.actor` message says of the parent; undefined for other messages. */
  readonly introduces: { readonly parentId: string | undefined } | undefined
}

const optionTypes: OptionTypes<InspectorOptions> = {
  url: anything,
  filter: aFunction,
  // `toRedact` checks it.
  redact: anything,
  maxBuffered: integerFrom(1),
  onError: aFunction,
  clock: aClock,
}

/**
 * Creates an inspector for Stately's viewer. It connects in the background, and reconnects when the connection is lost.
 * @returns the value for `inspect` of managers, `createAgentTasks` and `startTaskServer`
 * @throws InvalidSettingError, InvalidInputError for an invalid option
 */
export function createInspector(options: InspectorOptions = {}): Inspector {
  checkOptions(options, optionTypes)
  const { url = 'ws://localhost:8080', filter, maxBuffered = 5000, clock = systemClock } = options
  const { onError = reportToConsole } = options
  const redact = toRedact(options.redact ?? true)
  const idle = idleClock(clock)
  const sessions = createSessions(redact)
  const capture = createCapture(() => clock.now(), sessions)
  const captured = new Backlog<Captured>(maxBuffered, Infinity, () => 0)
  const waiting = new Backlog<Waiting>(maxBuffered, MOST_CHARS, ({ text }) => text.length)
  const reported = new Set<InspectorErrorSource>()
  let connection = 0
  /** Actors that are live on a new connection. */
  let unsent: Session[] = []
  let sent = 0
  let failed = 0
  let filtered = 0
  let abandoned = 0
  let pumpTimer: unknown
  let closing: Promise<void> | undefined
  let isClosed = false

  const report = (error: unknown, source: InspectorErrorSource): void => {
    // There is no further handler for an exception of `onError`.
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
      unsent = [...sessions.live()]
      pumpSoon(0)
    },
    onDown: (error) => report(error, 'connection'),
  })

  /** The text of a message; undefined when it is filtered out. */
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
      const introduces = message.type === '@xstate.actor' ? message : undefined
      if (text !== undefined) waiting.add({ session, text, introduces })
    } catch (error) {
      reportFirst(error, 'redact')
    }
  }

  function send(text: string): void {
    transport.send(text)
    sent += 1
  }

  /** Sends the `@xstate.actor` messages of an actor and its ancestors that this connection has not received. */
  function introduce(session: Session): void {
    if (session.introducedOn === connection) return
    if (session.parent !== undefined) introduce(session.parent)
    session.introducedOn = connection
    const text = encode(actorMessage(session))
    if (text !== undefined) send(text)
  }

  function sendWaiting({ session, text, introduces }: Waiting): void {
    if (introduces === undefined) introduce(session)
    else {
      if (session.parent !== undefined) introduce(session.parent)
      // A message that was built before the actor started lacks the parent, so it is sent again before the actor's next one.
      if (introduces.parentId === session.parent?.sessionId) session.introducedOn = connection
    }
    send(text)
  }

  /** Builds and sends one batch; returns whether another one can follow now. */
  function pump(): boolean {
    for (let count = 0; count < BATCH; count += 1) {
      const event = captured.take()
      if (event === undefined) break
      makeMessage(event)
    }
    for (let count = 0; count < BATCH && transport.canTake; count += 1) {
      const next = waiting.take()
      if (next !== undefined) sendWaiting(next)
      // Actors without a new event belong to the tree as well.
      else if (unsent.length > 0) introduce(unsent.shift() as Session)
      else break
    }
    return captured.size > 0 || (hasUnsent() && transport.canTake)
  }

  const hasUnsent = (): boolean => waiting.size > 0 || (unsent.length > 0 && connection > 0)

  function pumpSoon(ms: number): void {
    if (isClosed) return
    pumpTimer ??= idle.setTimeout(() => {
      pumpTimer = undefined
      const hasMore = pump()
      // Without a connection there is nothing to do until `onOpen`.
      if (hasMore) pumpSoon(0)
      else if (hasUnsent() && connection > 0) pumpSoon(FULL_MS)
    }, ms)
  }

  async function end(timeoutMs: number): Promise<void> {
    const deadline = clock.now() + timeoutMs
    const isOver = (): boolean => captured.size === 0 && !hasUnsent() && transport.isDrained
    for (;;) {
      const hasMore = pump()
      // A relay that is down may never come back.
      if (isOver() || transport.state === 'down' || clock.now() >= deadline) break
      await new Promise<void>((resolve) => clock.setTimeout(resolve, hasMore ? 0 : DRAIN_MS))
    }
    isClosed = true
    clock.clearTimeout(pumpTimer)
    abandoned = captured.size + waiting.size
    captured.clear()
    waiting.clear()
    await transport.close()
  }

  function close({ timeoutMs = 1000 }: InspectorCloseOptions = {}): Promise<void> {
    closing ??= end(timeoutMs)
    return closing
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
        // The argument was not an inspection event.
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
    close,
    [Symbol.asyncDispose]: () => close(),
  }
}

/** @throws InvalidSettingError for an invalid URL, or one of another protocol */
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
