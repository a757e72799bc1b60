/** Reads and writes W3C Trace Context itself and not with a configured propagator, because MCP and HTTP prescribe this format. */
import {
  createTraceState,
  isSpanContextValid,
  ROOT_CONTEXT,
  trace,
  type Context,
  type SpanContext,
} from '@opentelemetry/api'
import type { TraceContext } from '../../protocol/telemetry.js'

/** Returns the trace context of a span; undefined when the span is not valid. */
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
 * Returns the OpenTelemetry context for a trace context; undefined when the trace context is malformed.
 * @param local the context to which the span is added, if it belongs to this process
 */
export function contextOf({ traceparent, tracestate }: TraceContext, local?: Context): Context | undefined {
  const [, version, traceId = '', spanId = '', flags = ''] = TRACEPARENT.exec(traceparent) ?? []
  // The version ff is invalid, and version 00 has exactly four fields.
  if (version === undefined || version === 'ff' || (version === '00' && traceparent.length > 55)) return undefined
  const spanContext: SpanContext = {
    traceId,
    spanId,
    isRemote: local === undefined,
    traceFlags: Number.parseInt(flags, 16) & 1,
    ...(tracestate !== undefined && { traceState: createTraceState(tracestate) }),
  }
  return isSpanContextValid(spanContext) ? trace.setSpanContext(local ?? ROOT_CONTEXT, spanContext) : undefined
}
