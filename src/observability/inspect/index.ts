/** `agent-tasks/inspect`: shows live actors in Stately's viewer. It runs in Node and in browsers. */
export { createInspector } from './inspector.js'
export type { Inspector } from './inspector-types.js'
export { REDACTED, redactByDefault } from './redaction.js'
