/** Fills in a template such as `https://jaeger.example/trace/{trace_id}`, which gives the link to the trace of a task. */
import { InvalidInputError } from '../errors.js'
import type { TraceContext } from '../protocol/telemetry.js'

const TRACE_ID = '{trace_id}'
const SPAN_ID = '{span_id}'
const EXPECTED = `an http or https URL with ${TRACE_ID} after its host, such as https://jaeger.example/trace/${TRACE_ID}`

/** The maximum length of a template, in characters. */
const MAX_CHARS = 2000

/** The format of `traceparent`: version, trace id, span id and flags. The lowest bit of the flags is set if the trace is sampled. */
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f][13579bdf](?:-|$)/

/**
 * @param field the name of the setting, for errors
 * @throws INVALID_INPUT if the template is not an http or https URL with `{trace_id}` after its host
 */
export function checkTraceUrl(template: string, field: string): void {
  const [one, other] = ['0', 'f'].map((digit) => urlOf(filled(template, digit.repeat(32), digit.repeat(16))))
  const isValid =
    template.length <= MAX_CHARS &&
    template.includes(TRACE_ID) &&
    one !== undefined &&
    ['http:', 'https:'].includes(one.protocol) &&
    // Two different ids must give the same origin. Otherwise an id could choose the host.
    one.origin === other?.origin &&
    one.username === '' &&
    one.password === ''
  if (!isValid) throw new InvalidInputError(field, template, EXPECTED)
}

/** Returns undefined for a task without a sampled trace. */
export function traceUrlOf(template: string | undefined, trace: TraceContext | undefined): string | undefined {
  const [, traceId, spanId] = TRACEPARENT.exec(trace?.traceparent ?? '') ?? []
  if (template === undefined || traceId === undefined || spanId === undefined) return undefined
  return new URL(filled(template, traceId, spanId)).href
}

const filled = (template: string, traceId: string, spanId: string): string =>
  template.replaceAll(TRACE_ID, traceId).replaceAll(SPAN_ID, spanId)

function urlOf(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}
