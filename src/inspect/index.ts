/** The public names of `agent-tasks/inspect`: showing live actors in Stately's viewer. It runs in Node and in browsers. */
export { createInspector } from './inspector.js'
export type {
  Inspector,
  InspectorCloseOptions,
  InspectorErrorSource,
  InspectorOptions,
  InspectorStats,
} from './inspector-types.js'
export { REDACTED, redactByDefault } from './redaction.js'
export type { Redact } from './redaction.js'
export type { ActorMessage, EventMessage, InspectionMessage, SnapshotMessage } from './messages.js'
