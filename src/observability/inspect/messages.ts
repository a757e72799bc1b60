/**
 * Stately's message format, as `@statelyai/inspect` 0.7 writes and reads it. The types are copied, so that the declarations of this package do not
 * import that optional package. A test compares both.
 */

/** The version that every message names: the version of `@statelyai/inspect` with which this format was compared. */
export const FORMAT_VERSION = '0.7.2'

interface MessageFields {
  /** The `sessionId` of the root of the actor's system. */
  readonly rootId: string
  /** Identifies the actor among those of its process. */
  readonly sessionId: string
  /** The time of the event, in milliseconds since the epoch, as text. */
  readonly createdAt: string
  /** Always null; the format does not use this field. */
  readonly id: null
  /** `FORMAT_VERSION`. */
  readonly _version: string
}

export interface ActorMessage extends MessageFields {
  readonly type: '@xstate.actor'
  /** The id of the actor. */
  readonly name: string
  /** The `sessionId` of the parent; undefined for a root, and before the actor is started. */
  readonly parentId: string | undefined
  /** The machine's configuration as JSON text, from which the viewer draws the chart. */
  readonly definition: string
  /** The first snapshot of the actor. When the message is repeated, the latest one. */
  readonly snapshot: unknown
}

export interface EventMessage extends MessageFields {
  readonly type: '@xstate.event'
  /** The `sessionId` of the sender; undefined when no actor sent it. */
  readonly sourceId: string | undefined
  /** The event, redacted. */
  readonly event: unknown
}

export interface SnapshotMessage extends MessageFields {
  readonly type: '@xstate.snapshot'
  /** The event that led to the snapshot, redacted. */
  readonly event: unknown
  /** The status, the value and the context of the actor, redacted. */
  readonly snapshot: unknown
}

/** One message to the viewer. */
export type InspectionMessage = ActorMessage | EventMessage | SnapshotMessage
