import { createTraceState, ROOT_CONTEXT, trace, type Context } from '@opentelemetry/api'
import { expect, it } from 'vitest'
import { contextOf, traceContextOf } from '../../../../src/observability/telemetry/trace-context.js'

it.each([
  ['01', 1],
  ['00', 0],
  ['ff', 1],
  ['fe', 0],
])('of the flags %s only the known one is taken over', (flags, traceFlags) => {
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-${flags}`
  expect(trace.getSpanContext(contextOf({ traceparent })!)).toMatchObject({ traceFlags })
})

const span = `${'a'.repeat(32)}-${'b'.repeat(16)}`

it.each([
  [`00-${span}-01`, true],
  [`00-${span}-01-`, false],
  [`00-${span}-01-more`, false],
  [`01-${span}-01-more`, true],
  [`01-${span}-01`, true],
  [`ff-${span}-01`, false],
  [`00-${span.toUpperCase()}-01`, false],
  [` 00-${span}-01`, false],
  [`00-${'0'.repeat(32)}-${'b'.repeat(16)}-01`, false],
  [`00-${'a'.repeat(32)}-${'0'.repeat(16)}-01`, false],
])('the span of %s is taken over: %s', (traceparent, isTaken) => {
  expect(contextOf({ traceparent }) !== undefined).toBe(isTaken)
})

it('a span is one of another process unless that is known', () => {
  const traceparent = `00-${span}-01`
  const isRemote = (local?: Context) => trace.getSpanContext(contextOf({ traceparent }, local)!)?.isRemote
  expect([isRemote(), isRemote(ROOT_CONTEXT)]).toEqual([true, false])
})

it('a span is written with flags of two digits, and with its state only if it has one', () => {
  const [traceId, spanId] = ['a'.repeat(32), 'b'.repeat(16)]
  const traceState = createTraceState('rojo=1')
  expect(traceContextOf({ traceId, spanId, traceFlags: 1 })).toStrictEqual({ traceparent: `00-${span}-01` })
  expect(traceContextOf({ traceId, spanId, traceFlags: 0, traceState })).toStrictEqual({
    traceparent: `00-${span}-00`,
    tracestate: 'rojo=1',
  })
  expect(traceContextOf({ traceId, spanId, traceFlags: 1, traceState: traceState.unset('rojo') })).toStrictEqual({
    traceparent: `00-${span}-01`,
  })
  expect(traceContextOf({ traceId: '0'.repeat(32), spanId, traceFlags: 1 })).toBeUndefined()
  expect(traceContextOf(undefined)).toBeUndefined()
})
