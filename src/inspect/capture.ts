/**
 * Takes XState's inspection events as they come, and makes messages of them later. Taking one is a few assignments, so that what
 * the actors do is not slowed by what is shown of it.
 */
import type { ActorRefLike, InspectionEvent } from 'xstate'
import { FORMAT_VERSION, type InspectionMessage } from './messages.js'
import type { Redact } from './redaction.js'
import { actorMessage, type Session, type Sessions } from './sessions.js'
import { toShownValue } from './shown-value.js'

type ShownEvent = Extract<InspectionEvent, { type: '@xstate.actor' | '@xstate.event' | '@xstate.snapshot' }>

/** An inspection event that waits to be made a message. */
export interface Captured {
  readonly event: ShownEvent
  /** Milliseconds since the epoch. */
  readonly at: number
  /** How a new actor began: XState tells of the actor before that is known. */
  first?: unknown
}

/** @returns what takes an event in; undefined for one that the format has no message for, such as a microstep */
export function createCapture(now: () => number): (event: InspectionEvent) => Captured | undefined {
  const beginning = new WeakMap<ActorRefLike, Captured>()
  return (event) => {
    if (event.type === '@xstate.actor') {
      const captured: Captured = { event, at: now() }
      beginning.set(event.actorRef, captured)
      return captured
    }
    if (event.type === '@xstate.event') return { event, at: now() }
    if (event.type !== '@xstate.snapshot') return undefined
    const made = event.event.type === 'xstate.init' ? beginning.get(event.actorRef) : undefined
    if (made !== undefined) made.first = event.snapshot
    return { event, at: now() }
  }
}

/** @throws what `redact` throws */
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

/** In an event a function is left out, in a snapshot it is shown by its name: so does `@statelyai/inspect`. */
const showEvent = (event: unknown, redact: Redact): unknown =>
  toShownValue('event', event, (key, value) => (typeof value === 'function' ? undefined : redact(key, value)))
