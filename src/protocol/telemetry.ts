/**
 * The port for traces and metrics. `agent-tasks/telemetry` implements it with OpenTelemetry, and no other module imports that. Without one, nothing is
 * measured and nothing is sent.
 */
import type { Observable } from 'rxjs'
import type { TaskTransition } from '../../machines/records.js'
import { objectWith } from './option-checks.js'

/** Why a queued task waits, besides for a slot: the first that applies. */
export const WAIT_REASONS = ['pause', 'dependency', 'key', 'subagent', 'rate'] as const

/** Why a monitor has ended: `source`, what it reads has ended or is missing; `events` and `rate`, its limits. */
export type MonitorEnd = 'source' | 'events' | 'rate' | 'time' | 'idle' | 'cancelled'

/** A span of another process or of another time, as W3C Trace Context writes it. */
export interface TraceContext {
  /** The trace and the span. */
  readonly traceparent: string
  /** What vendors add. */
  readonly tracestate?: string | undefined
}

/** An operation that begins. */
export interface OperationStart {
  /** The run of a subagent, or the call of a tool. */
  readonly type: 'invoke_agent' | 'execute_tool'
  /** The name of the subagent or of the tool. */
  readonly name: string
  /** The span that it belongs to. Default: that of the calling code. */
  readonly parent?: TraceContext | undefined
  /** Whether it was asked for by another process, over MCP. */
  readonly isServed?: boolean
  /** The id of the call. */
  readonly callId?: string | undefined
  /** The task that it belongs to. */
  readonly taskId?: string | undefined
  /** Which attempt of its task it is, from 1. */
  readonly attempt?: number
  /** The goal, or the arguments. Recorded only where that was asked for. */
  readonly input?: unknown
}

/** How an operation has ended. */
export interface OperationEnd {
  /** The kind of failure; undefined when it succeeded. */
  readonly errorType?: string | undefined
  /** The failure in words. Recorded only where that was asked for. */
  readonly error?: string | undefined
  /** What it returned. Recorded only where that was asked for. */
  readonly output?: unknown
}

/** An operation that has begun. */
export interface Operation {
  /** Its span, for what belongs to it in other processes; undefined when it is not recorded. */
  readonly trace: TraceContext | undefined
  /** Runs its work: what that starts belongs to it. */
  run<T>(work: () => T): T
  /** Ends it. The first call counts. */
  end(end?: OperationEnd): void
}

/** Tasks that are counted. */
export interface WatchedTasks {
  /** What they are: tasks of an agent, or lists of commands. */
  readonly kind: 'task' | 'command_task'
  /** How many there are now. */
  readonly counts: () => Readonly<Record<'running' | 'queued', number> & Partial<Record<'owed' | 'pauses', number>>>
  /** Why the queued ones wait besides for a slot: `pause`, `dependency`, `key`, `subagent` or `rate`. */
  readonly waiting?: () => readonly string[]
  /** How often each has happened: `firings`, `missed_firings`, `skipped_firings`, `monitor_events`, and `monitor_ends` with a space and a reason. */
  readonly totals?: () => ReadonlyMap<string, number>
  /** Their transitions; deliveries are counted of them. */
  readonly transitions$?: Observable<TaskTransition>
}

/** Receives what happens. */
export interface Telemetry {
  /** The span of the calling code; undefined outside a trace. */
  current(): TraceContext | undefined
  /** Runs work that belongs to a span of another process. Without one it only runs the work. */
  within<T>(parent: TraceContext | undefined, work: () => T): T
  /** Begins an operation. */
  start(operation: OperationStart): Operation
  /** Counts tasks until the returned function is called. */
  watch(tasks: WatchedTasks): () => void
}

export const aTelemetry = objectWith('a Telemetry', 'current', 'within', 'start', 'watch')

/** The trace that a message names; undefined when it names none. */
export function traceOf(carrier: Readonly<Record<string, unknown>> | undefined): TraceContext | undefined {
  const { traceparent, tracestate } = carrier ?? {}
  if (typeof traceparent !== 'string' || traceparent.length > MAX_TRACEPARENT) return undefined
  const hasState = typeof tracestate === 'string' && tracestate.length <= MAX_TRACESTATE
  return { traceparent, ...(hasState && { tracestate }) }
}

/** The longest values that are passed on, in characters: those of version 00, with room for later ones, and what W3C asks for at least. */
const MAX_TRACEPARENT = 256
const MAX_TRACESTATE = 8192

/** The kind of failure of a tool that returned an error. */
export const TOOL_ERROR = 'tool_error'

/** The kind of a failure that a call has thrown. */
export function errorTypeOf(reason: unknown): string {
  try {
    const { code, name } = Object(reason) as { readonly code?: unknown; readonly name?: unknown }
    const isType = (value: unknown): value is string => typeof value === 'string' && ERROR_TYPE.test(value)
    return [code, name].find(isType) ?? '_OTHER'
  } catch {
    return '_OTHER'
  }
}

/** What a code or the name of a class looks like. Other texts may have content in them, and each would be a metric of its own. */
const ERROR_TYPE = /^[\w.:-]{1,64}$/
