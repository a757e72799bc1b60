/** `agent-tasks/telemetry`: traces and metrics through OpenTelemetry. */
export { createTelemetry } from './open-telemetry.js'
export type { Telemetry, TraceContext } from '../../protocol/telemetry.js'
