/**
 * The inspector shows a viewer what the actors do. It neither slows them down nor makes them fail.
 *
 * - Recording an event costs only a few assignments. Messages are built later, in batches, between other work.
 * - The backlog has a maximum size, even if the viewer reads nothing. The oldest message is dropped and counted.
 * - When `filter` or `redact` throws, or an event cannot be read, only that message is lost, and it is counted.
 * - A message whose redaction failed is not sent.
 * - On every connection, the `@xstate.actor` message of an actor comes before its other messages, and after that of its parent.
 * - The inspector does not keep a process alive, except during `close`, which has a time limit.
 */
import { sleep } from '../../system/abort.js'
import { systemClock, type Clock } from '../../system/clock.js'
import { callIsolated } from '../../isolation/isolated-call.js'
import { InvalidSettingError } from '../../errors.js'
import {
  aClock,
  aFunction,
  anything,
  checkOptions,
  integerFrom,
  type OptionTypes,
} from '../../protocol/option-checks.js'
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

/** The number of messages that are built or sent before other work gets a turn. */
const BATCH = 100

/** The interval at which a connection whose buffer is full is checked, in ms. */
const FULL_MS = 50

/** The interval at which `close` checks whether all messages have been sent, in ms. */
const DRAIN_MS = 5

/** The maximum size of the waiting messages, in characters. */
const MOST_CHARS = 8 * 1024 * 1024

interface Waiting {
  readonly session: Session
  readonly text: string
  /** For an `@xstate.actor` message: the parent that the message names. Undefined for other messages. */
  readonly introduces: { readonly parentId: string | undefined } | undefined
}

const optionTypes: OptionTypes<InspectorOptions> = {
  url: anything,
  filter: aFunction,
  // `toRedact` checks this option.
  redact: anything,
  maxBuffered: integerFrom(1),
  onError: aFunction,
  clock: aClock,
}

/**
 * Creates an inspector for Stately's viewer. It connects in the background, and reconnects when the connection is lost.
 * @returns the value for the option `inspect` of managers, `createAgentTasks` and `startTaskServer`
 * @throws INVALID_SETTING for a number out of its range, or a `url` of another protocol
 * @throws INVALID_INPUT for an unknown option, or an option of a wrong type
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
  /** The live actors that have not been sent on the present connection yet. */
  let unsent: Session[] = []
  let sent = 0
  let failed = 0
  let filtered = 0
  let abandoned = 0
  let pumpTimer: unknown
  let closing: Promise<void> | undefined
  let isClosed = false

  const report = (error: unknown, source: InspectorErrorSource): void => {
    // An exception of `onError` is dropped, because nothing is left to report it to.
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

  /** Returns the text of a message; undefined when `filter` leaves the message out. */
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

  /** Sends the `@xstate.actor` messages of an actor and its ancestors that were not sent on this connection. */
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
      // A message that was built before the actor started does not name the parent. Then it is sent again before the next message of the actor.
      if (introduces.parentId === session.parent?.sessionId) session.introducedOn = connection
    }
    send(text)
  }

  /** Builds and sends one batch. Returns whether there is more to do now. */
  function pump(): boolean {
    for (let count = 0; count < BATCH; count += 1) {
      const event = captured.take()
      if (event === undefined) break
      makeMessage(event)
    }
    for (let count = 0; count < BATCH && transport.canTake; count += 1) {
      const next = waiting.take()
      if (next !== undefined) sendWaiting(next)
      // Actors without a new event are sent as well, so that the viewer shows the whole tree.
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
      // Without a connection there is nothing to do. `onOpen` continues.
      if (hasMore) pumpSoon(0)
      else if (hasUnsent() && connection > 0) pumpSoon(FULL_MS)
    }, ms)
  }

  async function end(timeoutMs: number): Promise<void> {
    const deadline = clock.now() + timeoutMs
    const isOver = (): boolean => captured.size === 0 && !hasUnsent() && transport.isDrained
    for (;;) {
      const hasMore = pump()
      // `close` does not wait for a relay that is down, because it may never come back.
      if (isOver() || transport.state === 'down' || clock.now() >= deadline) break
      await sleep(clock, hasMore ? 0 : DRAIN_MS)
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
        // The argument was not an inspection event, so it cannot be recorded.
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

/** @throws INVALID_SETTING for an invalid URL, and for one of another protocol */
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
