/**
 * The actors that can be shown to a viewer. On each connection, the `@xstate.actor` message of an actor is sent after that of its parent, and before
 * its other messages. The content of that message is kept while the actor lives. The actor itself is not referenced.
 */
import { isMachineSnapshot, type ActorRefLike, type AnyActorRef } from 'xstate'
import { FORMAT_VERSION, type ActorMessage } from './messages.js'
import type { Redact } from './redaction.js'
import { toShownValue, type ShownLimits } from './shown-value.js'

export interface Session {
  readonly sessionId: string
  readonly rootId: string
  /** The session of the parent. Undefined for a root, and before the actor has started. */
  parent: Session | undefined
  readonly name: string
  readonly definition: string
  readonly createdAt: string
  /** The last snapshot that was shown to the viewer. */
  snapshot: unknown
  /** The number of the last connection on which the `@xstate.actor` message was sent with the parent. */
  introducedOn: number
}

/** The maximum number of live actors that are sent when a connection opens. Older actors are sent with their next event. */
const MOST_LIVE = 10_000

const DEFINITION_LIMITS: ShownLimits = { depth: 50, stringChars: 10_000, values: 20_000, chars: 1_000_000 }

export type Sessions = ReturnType<typeof createSessions>

/** @param redact applied only to the initial context in the definition of a machine */
export function createSessions(redact: Redact) {
  const known = new WeakMap<ActorRefLike, Session>()
  const parents = new WeakMap<ActorRefLike, ActorRefLike>()
  const live = new Set<Session>()
  const definitions = new WeakMap<object, string>()

  function define(config: object): string {
    let text = definitions.get(config)
    if (text === undefined) {
      const shown = {
        ...config,
        ...('context' in config && { context: toShownValue('context', config.context, redact) }),
      }
      text = JSON.stringify(toShownValue('definition', shown, (_key, value) => value, DEFINITION_LIMITS))
      definitions.set(config, text)
    }
    return text
  }

  function create(ref: ActorRefLike, rootId: string, at: number): Session {
    const { id, sessionId } = ref as AnyActorRef
    const snapshot: unknown = ref.getSnapshot()
    const machine = isMachineSnapshot(snapshot) ? snapshot.machine : undefined
    // An actor without an id of its own has its session id as its id. The id of the machine is more useful to people.
    const name = id === sessionId && machine !== undefined ? machine.id : id
    const session: Session = {
      sessionId,
      rootId,
      parent: undefined,
      name,
      definition: machine === undefined ? JSON.stringify({ id: name }) : define(machine.config),
      createdAt: String(at),
      snapshot: { status: 'active' },
      introducedOn: 0,
    }
    known.set(ref, session)
    live.add(session)
    for (const oldest of live) {
      if (live.size <= MOST_LIVE) break
      live.delete(oldest)
    }
    return session
  }

  function of(ref: ActorRefLike, rootId: string, at: number): Session {
    const session = known.get(ref) ?? create(ref, rootId, at)
    const parent = parents.get(ref)
    if (parent !== undefined) {
      parents.delete(ref)
      session.parent = of(parent, rootId, at)
      session.introducedOn = 0
    }
    return session
  }

  return {
    /** Returns the session of an actor, and creates it if there is none. `at` is the creation time of the actor, in ms since the epoch. */
    of,
    setParent(ref: ActorRefLike, parent: ActorRefLike | undefined): void {
      if (parent !== undefined) parents.set(ref, parent)
    },
    /** Keeps a snapshot. If its status is not `active`, the session ends. */
    update(session: Session, snapshot: unknown): void {
      session.snapshot = snapshot
      const { status = 'active' } = (snapshot as { status?: unknown } | null | undefined) ?? {}
      if (status !== 'active') live.delete(session)
    },
    /** Returns the actors that have not ended, oldest first. */
    live: (): readonly Session[] => [...live],
  }
}

/** Builds the `@xstate.actor` message, which introduces an actor to a viewer. */
export function actorMessage(session: Session): ActorMessage {
  const { sessionId, rootId, parent, name, definition, createdAt, snapshot } = session
  return {
    type: '@xstate.actor',
    name,
    definition,
    _version: FORMAT_VERSION,
    createdAt,
    id: null,
    rootId,
    parentId: parent?.sessionId,
    sessionId,
    snapshot,
  }
}
