/**
 * The actors that can be sent to a viewer. On each connection an actor's `@xstate.actor` message precedes its other messages, and
 * follows that of its parent. The content of that message is kept while the actor lives, without the actor itself.
 */
import { isMachineSnapshot, type ActorRefLike, type AnyActorRef } from 'xstate'
import { FORMAT_VERSION, type ActorMessage } from './messages.js'
import type { Redact } from './redaction.js'
import { toShownValue, type ShownLimits } from './shown-value.js'

/** The data of one actor for a viewer. */
export interface Session {
  readonly sessionId: string
  readonly rootId: string
  /** Known from the actor's start on; undefined for a root. */
  parent: Session | undefined
  readonly name: string
  readonly definition: string
  readonly createdAt: string
  /** The last snapshot that was shown. */
  snapshot: unknown
  /** The number of the connection on which its `@xstate.actor` message, with its parent, was sent last. */
  introducedOn: number
}

/** The maximum number of live actors that are sent when a connection opens. Older ones are sent with their next event. */
const MOST_LIVE = 10_000

const DEFINITION_LIMITS: ShownLimits = { depth: 50, stringChars: 10_000, values: 20_000, chars: 1_000_000 }

export type Sessions = ReturnType<typeof createSessions>

/** @param redact is applied only to the initial context in a machine definition */
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
    // Without its own id, an actor has its session id in XState; the machine's id is more useful.
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
    /** The session of an actor, created when there is none. `at` is its creation time, in ms since the epoch. */
    of,
    /** Records which actor started another. */
    setParent(ref: ActorRefLike, parent: ActorRefLike | undefined): void {
      if (parent !== undefined) parents.set(ref, parent)
    },
    /** Keeps a snapshot; one that is not active ends the session. */
    update(session: Session, snapshot: unknown): void {
      session.snapshot = snapshot
      const { status = 'active' } = (snapshot as { status?: unknown } | null | undefined) ?? {}
      if (status !== 'active') live.delete(session)
    },
    /** The actors that have not ended, oldest first. */
    live: (): readonly Session[] => [...live],
  }
}

/** The message that introduces an actor to a viewer. */
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
