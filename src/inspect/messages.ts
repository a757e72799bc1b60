/**
 * Stately's message format, as `@statelyai/inspect` 0.7 writes and reads it. The types are written out so that the package's own
 * declarations are not needed to use ours; a test holds them to those and to what that package sends.
 */

/** The version of the format, which every message names: that of the `@statelyai/inspect` it was compared with. */
export const FORMAT_VERSION = '0.7.2'

interface MessageFields {
  /** The root of the actor's system. */
  readonly rootId: string
  /** Names the actor; unique in its process. */
  readonly sessionId: string
  /** Milliseconds since the epoch, as text: when it happened. */
  readonly createdAt: string
  /** Always null: the format has a place for it, and nobody fills it. */
  readonly id: null
  /** `FORMAT_VERSION`. */
  readonly _version: string
}

/** An actor was made. */
export interface ActorMessage extends MessageFields {
  /** What kind of message this is. */
  readonly type: '@xstate.actor'
  /** The id that it was made with. */
  readonly name: string
  /** The `sessionId` of the actor that made it; undefined for a root. */
  readonly parentId: string | undefined
  /** The machine's configuration as JSON text: what the viewer draws. */
  readonly definition: string
  /** How the actor began, or how it stands when it is told of again. */
  readonly snapshot: unknown
}

/** An event was sent to an actor. */
export interface EventMessage extends MessageFields {
  /** What kind of message this is. */
  readonly type: '@xstate.event'
  /** The actor that sent it; undefined for the world outside. */
  readonly sourceId: string | undefined
  /** The event, redacted. */
  readonly event: unknown
}

/** What an actor was after an event. */
export interface SnapshotMessage extends MessageFields {
  /** What kind of message this is. */
  readonly type: '@xstate.snapshot'
  /** The event that brought it there, redacted. */
  readonly event: unknown
  /** Its status, value and context, redacted. */
  readonly snapshot: unknown
}

/** One message to the viewer. */
export type InspectionMessage = ActorMessage | EventMessage | SnapshotMessage
