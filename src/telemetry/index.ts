/** The public names of `agent-tasks/telemetry`: traces and metrics through OpenTelemetry. */
export { createTelemetry } from './open-telemetry.js'
export type { OpenTelemetryOptions } from './open-telemetry.js'
export type {
  Operation,
  OperationEnd,
  OperationStart,
  Telemetry,
  TraceContext,
  WatchedTasks,
} from '../protocol/telemetry.js'
