/**
 * The interface for traces and metrics. `agent-tasks/telemetry` implements it with OpenTelemetry; only that module imports OpenTelemetry.
 * Without an implementation, nothing is measured or sent.
 */
import type { Observable } from 'rxjs'
import type { TaskTransition } from '../../machines/transitions.js'
import { objectWith } from './option-checks.js'

/** The reasons, other than a missing slot, for which a queued task waits. If several apply, the first one in this list is reported. */
export const WAIT_REASONS = ['pause', 'dependency', 'key', 'subagent', 'rate'] as const

/**
 * Why a monitor has ended. `source`: what it reads has ended or is missing. `events` and `rate`: it has reached these limits. `time` and `idle`: its
 * time is over.
 */
export type MonitorEnd = 'source' | 'events' | 'rate' | 'time' | 'idle' | 'cancelled'

/** The position in a trace of another process, in the format of W3C Trace Context. */
export interface TraceContext {
  /** The ids of the trace and of the span. */
  readonly traceparent: string
  /** Further data of tracing systems. */
  readonly tracestate?: string | undefined
}

/** An operation that begins. */
export interface OperationStart {
  /** `invoke_agent` is the run of a subagent, `execute_tool` the call of a tool. */
  readonly type: 'invoke_agent' | 'execute_tool'
  /** The name of the subagent or of the tool. */
  readonly name: string
  /** The parent span. Default: the span of the calling code. */
  readonly parent?: TraceContext | undefined
  /** Whether another process has requested the operation over MCP. */
  readonly isServed?: boolean
  /** The id of the tool call. */
  readonly callId?: string | undefined
  /** The id of the task that the operation belongs to. */
  readonly taskId?: string | undefined
  /** The number of the task's run, from 1. */
  readonly attempt?: number
  /** The goal of the run, or the arguments of the call. Recorded only when the telemetry is configured to record content. */
  readonly input?: unknown
}

export interface OperationEnd {
  /** The kind of failure; undefined after a success. */
  readonly errorType?: string | undefined
  /** The text of the failure. Recorded only when the telemetry is configured to record content. */
  readonly error?: string | undefined
  /** The returned value. Recorded only when the telemetry is configured to record content. */
  readonly output?: unknown
}

/** A running operation. */
export interface Operation {
  /** The span of the operation, to be the parent of operations in other processes. Undefined when the span is not recorded. */
  readonly trace: TraceContext | undefined
  /** Runs the work. Operations that start during the work become children of this one. */
  run<T>(work: () => T): T
  /** Ends the operation. Further calls have no effect. */
  end(end?: OperationEnd): void
}

/** The name, unit and description of a counter, whose values are in `WatchedTasks.totals`. */
export type Counter = readonly [name: string, unit: string, description: string]

/** The tasks of a manager, for metrics. */
export interface WatchedTasks {
  /** Async tasks, or command tasks. */
  readonly kind: 'task' | 'command_task'
  /** The current numbers. */
  readonly counts: () => Readonly<Record<'running' | 'queued', number> & Partial<Record<'owed' | 'pauses', number>>>
  /** For each waiting task, the reason other than a missing slot: `pause`, `dependency`, `key`, `subagent` or `rate`. */
  readonly waiting?: () => readonly string[]
  /** Counters since the start, by name: `firings`, `missed_firings`, `skipped_firings`, `monitor_events`, and `monitor_ends REASON` for each reason. */
  readonly totals?: () => ReadonlyMap<string, number>
  /** The changes of tasks. Deliveries are counted from them. */
  readonly transitions$?: Observable<TaskTransition>
}

/** Records operations and metrics. */
export interface Telemetry {
  /** The span of the calling code; undefined outside a trace. */
  current(): TraceContext | undefined
  /** Runs work as a child of a span of another process. Without a parent it only runs the work. */
  within<T>(parent: TraceContext | undefined, work: () => T): T
  /** Begins an operation. */
  start(operation: OperationStart): Operation
  /** Reports the numbers of these tasks as metrics until the returned function is called. */
  watch(tasks: WatchedTasks): () => void
}

export const aTelemetry = objectWith('a Telemetry', 'current', 'within', 'start', 'watch')

/** Returns the trace context in a message; undefined if there is none. */
export function traceOf(carrier: Readonly<Record<string, unknown>> | undefined): TraceContext | undefined {
  const { traceparent, tracestate } = carrier ?? {}
  if (typeof traceparent !== 'string' || traceparent.length > MAX_TRACEPARENT) return undefined
  const hasState = typeof tracestate === 'string' && tracestate.length <= MAX_TRACESTATE
  return { traceparent, ...(hasState && { tracestate }) }
}

/** The maximum lengths of values that are passed on, in characters. Values of version 00 of the format are shorter; this leaves room for later ones. */
const MAX_TRACEPARENT = 256
const MAX_TRACESTATE = 8192

/** The `errorType` of a tool that returned an error. */
export const TOOL_ERROR = 'tool_error'

/** Returns the `errorType` of an exception: its code, or the name of its class. */
export function errorTypeOf(reason: unknown): string {
  try {
    const { code, name } = Object(reason) as { readonly code?: unknown; readonly name?: unknown }
    const isType = (value: unknown): value is string => typeof value === 'string' && ERROR_TYPE.test(value)
    return [code, name].find(isType) ?? '_OTHER'
  } catch {
    return '_OTHER'
  }
}

/** The format of codes and class names. Other texts are not used, because they may contain user data, and each text would create a new metric. */
const ERROR_TYPE = /^[\w.:-]{1,64}$/
