/**
 * The actors that a viewer can know of. Each connection must hear of an actor before it hears anything else of it, and of its parent
 * before that; so what must be said of an actor is kept while it lives, without the actor itself.
 */
import type { ActorRefLike } from 'xstate'
import { FORMAT_VERSION, type ActorMessage } from './messages.js'
import type { Redact } from './redaction.js'
import { toShownValue, type ShownLimits } from './shown-value.js'

/** What is known of one actor. */
export interface Session {
  readonly sessionId: string
  readonly rootId: string
  readonly parent: Session | undefined
  readonly name: string
  readonly definition: string
  readonly createdAt: string
  /** As it was shown last. */
  snapshot: unknown
  /** The connection that was told of it last, by its number. */
  toldOn: number
}

/** The part of an actor that is shown; XState's `ActorRefLike` leaves most of it out. */
interface InspectedActor extends ActorRefLike {
  readonly id: string
  readonly logic?: { readonly config?: unknown }
  readonly _parent?: InspectedActor
}

/** An actor beyond this many is told of when it next does something, not when a connection begins. */
const MOST_LIVE = 10_000

const DEFINITION_LIMITS: ShownLimits = { depth: 50, stringChars: 10_000, values: 20_000, chars: 1_000_000 }

export type Sessions = ReturnType<typeof createSessions>

/** @param redact is asked about a machine's initial context alone: the rest of a definition is the chart */
export function createSessions(redact: Redact) {
  const known = new WeakMap<ActorRefLike, Session>()
  const live = new Set<Session>()
  const definitions = new WeakMap<object, string>()

  function define(config: object): string {
    let text = definitions.get(config)
    if (text === undefined) {
      const chart = {
        ...config,
        ...('context' in config && { context: toShownValue('context', config.context, redact) }),
      }
      text = JSON.stringify(toShownValue('definition', chart, (_key, value) => value, DEFINITION_LIMITS))
      definitions.set(config, text)
    }
    return text
  }

  function of(ref: ActorRefLike, rootId: string, at: number): Session {
    const found = known.get(ref)
    if (found !== undefined) return found
    const actor = ref as InspectedActor
    const config = actor.logic?.config
    const chart = typeof config === 'object' && config !== null ? config : undefined
    const chartId = (chart as { id?: unknown } | undefined)?.id
    // An actor that was given no id is called after its machine.
    const name = actor.id === actor.sessionId && typeof chartId === 'string' ? chartId : actor.id
    const session: Session = {
      sessionId: actor.sessionId,
      rootId,
      parent: actor._parent && of(actor._parent, rootId, at),
      name,
      definition: chart === undefined ? JSON.stringify({ id: name }) : define(chart),
      createdAt: String(at),
      snapshot: { status: 'active' },
      toldOn: 0,
    }
    known.set(ref, session)
    live.add(session)
    for (const oldest of live) {
      if (live.size <= MOST_LIVE) break
      live.delete(oldest)
    }
    return session
  }

  return {
    /** The session of an actor, which is made if there is none. `at` in ms since the epoch. */
    of,
    /** Keeps what an actor is; one that is not active has ended. */
    update(session: Session, snapshot: unknown): void {
      session.snapshot = snapshot
      const { status = 'active' } = (snapshot as { status?: unknown } | null | undefined) ?? {}
      if (status !== 'active') live.delete(session)
    },
    /** The actors that have not ended, in the order in which they were made. */
    live: (): readonly Session[] => [...live],
  }
}

/** What tells of an actor. */
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
