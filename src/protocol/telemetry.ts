/**
 * The interface for traces and metrics. `agent-tasks/telemetry` implements it with OpenTelemetry, which no other module imports. Without an
 * implementation, nothing is measured or sent.
 */
import type { Observable } from 'rxjs'
import type { TaskTransition } from '../../machines/records.js'
import { objectWith } from './option-checks.js'

/** Why a queued task waits, besides for a slot: the first reason that applies. */
export const WAIT_REASONS = ['pause', 'dependency', 'key', 'subagent', 'rate'] as const

/** Why a monitor has ended. `source`: its source has ended or is missing; `events` and `rate`: its limits. */
export type MonitorEnd = 'source' | 'events' | 'rate' | 'time' | 'idle' | 'cancelled'

/** A span of another process or time, in the format of W3C Trace Context. */
export interface TraceContext {
  /** The ids of the trace and the span. */
  readonly traceparent: string
  /** Data of vendors. */
  readonly tracestate?: string | undefined
}

/** An operation that begins. */
export interface OperationStart {
  /** The run of a subagent, or the call of a tool. */
  readonly type: 'invoke_agent' | 'execute_tool'
  /** The name of the subagent or of the tool. */
  readonly name: string
  /** The parent span. Default: the span of the calling code. */
  readonly parent?: TraceContext | undefined
  /** Whether another process requested it over MCP. */
  readonly isServed?: boolean
  /** The id of the call. */
  readonly callId?: string | undefined
  /** The id of its task. */
  readonly taskId?: string | undefined
  /** The number of the task's run, from 1. */
  readonly attempt?: number
  /** The goal or the arguments. Recorded only on request. */
  readonly input?: unknown
}

/** How an operation has ended. */
export interface OperationEnd {
  /** The kind of failure; undefined after a success. */
  readonly errorType?: string | undefined
  /** The text of the failure. Recorded only on request. */
  readonly error?: string | undefined
  /** The returned value. Recorded only on request. */
  readonly output?: unknown
}

/** A running operation. */
export interface Operation {
  /** Its span, as the parent of operations in other processes; undefined if it is not recorded. */
  readonly trace: TraceContext | undefined
  /** Runs the work. Operations that start inside become its children. */
  run<T>(work: () => T): T
  /** Ends the operation. Further calls have no effect. */
  end(end?: OperationEnd): void
}

/** The tasks of a manager, for metrics. */
export interface WatchedTasks {
  /** Async tasks, or command tasks. */
  readonly kind: 'task' | 'command_task'
  /** The current numbers. */
  readonly counts: () => Readonly<Record<'running' | 'queued', number> & Partial<Record<'owed' | 'pauses', number>>>
  /** Why queued tasks wait, besides for a slot: `pause`, `dependency`, `key`, `subagent` or `rate`. */
  readonly waiting?: () => readonly string[]
  /** Totals by name: `firings`, `missed_firings`, `skipped_firings`, `monitor_events`, and `monitor_ends` followed by a space and a reason. */
  readonly totals?: () => ReadonlyMap<string, number>
  /** The transitions of the tasks, from which deliveries are counted. */
  readonly transitions$?: Observable<TaskTransition>
}

/** Records operations and metrics. */
export interface Telemetry {
  /** The span of the calling code; undefined outside a trace. */
  current(): TraceContext | undefined
  /** Runs work as a child of a span of another process. Without a span it only runs the work. */
  within<T>(parent: TraceContext | undefined, work: () => T): T
  /** Begins an operation. */
  start(operation: OperationStart): Operation
  /** Counts tasks until the returned function is called. */
  watch(tasks: WatchedTasks): () => void
}

export const aTelemetry = objectWith('a Telemetry', 'current', 'within', 'start', 'watch')

/** The trace context in a message; undefined if there is none. */
export function traceOf(carrier: Readonly<Record<string, unknown>> | undefined): TraceContext | undefined {
  const { traceparent, tracestate } = carrier ?? {}
  if (typeof traceparent !== 'string' || traceparent.length > MAX_TRACEPARENT) return undefined
  const hasState = typeof tracestate === 'string' && tracestate.length <= MAX_TRACESTATE
  return { traceparent, ...(hasState && { tracestate }) }
}

/** The maximum length of values that are passed on, in characters: those of version 00, with room for later versions. */
const MAX_TRACEPARENT = 256
const MAX_TRACESTATE = 8192

/** The kind of failure of a tool that returned an error. */
export const TOOL_ERROR = 'tool_error'

/** The kind of failure of an exception. */
export function errorTypeOf(reason: unknown): string {
  try {
    const { code, name } = Object(reason) as { readonly code?: unknown; readonly name?: unknown }
    const isType = (value: unknown): value is string => typeof value === 'string' && ERROR_TYPE.test(value)
    return [code, name].find(isType) ?? '_OTHER'
  } catch {
    return '_OTHER'
  }
}

/** The format of codes and class names. Other texts may contain user data, and each would be a metric of its own. */
const ERROR_TYPE = /^[\w.:-]{1,64}$/
