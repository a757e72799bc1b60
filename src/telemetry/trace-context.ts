/** Reads and writes W3C Trace Context without a propagator, because MCP and HTTP fix its format. */
import {
  createTraceState,
  isSpanContextValid,
  ROOT_CONTEXT,
  trace,
  type Context,
  type SpanContext,
} from '@opentelemetry/api'
import type { TraceContext } from '../protocol/telemetry.js'

/** The span of a context; undefined when it has none. */
export function traceContextOf(spanContext: SpanContext | undefined): TraceContext | undefined {
  if (spanContext === undefined || !isSpanContextValid(spanContext)) return undefined
  const { traceId, spanId, traceFlags, traceState } = spanContext
  const tracestate = traceState?.serialize() ?? ''
  return {
    traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
    ...(tracestate !== '' && { tracestate }),
  }
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/

/**
 * The context of a span; undefined for a malformed one.
 * @param isRemote whether it belongs to another process
 */
export function contextOf({ traceparent, tracestate }: TraceContext, isRemote = true): Context | undefined {
  const [, version, traceId = '', spanId = '', flags = ''] = TRACEPARENT.exec(traceparent) ?? []
  // Version ff is invalid; version 00 has four fields.
  if (version === undefined || version === 'ff' || (version === '00' && traceparent.length > 55)) return undefined
  const spanContext: SpanContext = {
    traceId,
    spanId,
    isRemote,
    traceFlags: Number.parseInt(flags, 16) & 1,
    ...(tracestate !== undefined && { traceState: createTraceState(tracestate) }),
  }
  return isSpanContextValid(spanContext) ? trace.setSpanContext(ROOT_CONTEXT, spanContext) : undefined
}
