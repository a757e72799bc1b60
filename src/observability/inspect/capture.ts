/**
 * Records XState's inspection events, and builds messages from them later. Recording costs only a few assignments, so that the inspector does not
 * slow the actors down.
 */
import type { ActorRefLike, InspectionEvent } from 'xstate'
import { FORMAT_VERSION, type InspectionMessage } from './messages.js'
import type { Redact } from './redaction.js'
import { actorMessage, type Session, type Sessions } from './sessions.js'
import { toShownValue } from './shown-value.js'

type ShownEvent = Extract<InspectionEvent, { type: '@xstate.actor' | '@xstate.event' | '@xstate.snapshot' }>

/** A recorded inspection event. Its message is built later. */
export interface Captured {
  readonly event: ShownEvent
  /** Milliseconds since the epoch. */
  readonly at: number
  /** The first snapshot of a new actor. XState reports `@xstate.actor` before the actor has a snapshot. */
  first?: unknown
}

/** @returns a function that records an event. It returns undefined for an event that has no message, such as a microstep */
export function createCapture(now: () => number, sessions: Sessions): (event: InspectionEvent) => Captured | undefined {
  const created = new WeakMap<ActorRefLike, Captured>()
  return (event) => {
    switch (event.type) {
      case '@xstate.actor': {
        const captured: Captured = { event, at: now() }
        created.set(event.actorRef, captured)
        return captured
      }
      case '@xstate.event':
        // The parent of an actor starts it, so the parent is the source of the actor's first event.
        if (isInit(event)) sessions.setParent(event.actorRef, event.sourceRef)
        return { event, at: now() }
      case '@xstate.snapshot': {
        const captured = isInit(event) ? created.get(event.actorRef) : undefined
        if (captured !== undefined) captured.first = event.snapshot
        return { event, at: now() }
      }
      default:
        return undefined
    }
  }
}

const isInit = ({ event }: Extract<ShownEvent, { event: unknown }>): boolean => event.type === 'xstate.init'

/**
 * Builds the message of a recorded event.
 * @throws what `redact` throws
 */
export function toMessage(
  { event, at, first }: Captured,
  sessions: Sessions,
  redact: Redact,
): { readonly message: InspectionMessage; readonly session: Session } {
  const { actorRef, rootId } = event
  const session = sessions.of(actorRef, rootId, at)
  const { sessionId } = session
  const fields = { sessionId, _version: FORMAT_VERSION, createdAt: String(at), id: null, rootId }
  switch (event.type) {
    case '@xstate.actor': {
      sessions.update(session, toShownValue('snapshot', first ?? actorRef.getSnapshot(), redact))
      return { session, message: actorMessage(session) }
    }
    case '@xstate.event': {
      const sourceId = event.sourceRef && sessions.of(event.sourceRef, rootId, at).sessionId
      const shown = showEvent(event.event, redact)
      return { session, message: { type: event.type, event: shown, sourceId, ...fields } }
    }
    case '@xstate.snapshot': {
      const shown = showEvent(event.event, redact)
      sessions.update(session, toShownValue('snapshot', event.snapshot, redact))
      return { session, message: { type: event.type, event: shown, snapshot: session.snapshot, ...fields } }
    }
  }
}

/** The same as in `@statelyai/inspect`: functions are left out of events, and shown by name in snapshots. */
const showEvent = (event: unknown, redact: Redact): unknown =>
  toShownValue('event', event, (key, value) => (typeof value === 'function' ? undefined : redact(key, value)))
