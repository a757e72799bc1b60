import { trace } from '@opentelemetry/api'
import { expect, it } from 'vitest'
import { contextOf } from '../../../src/telemetry/trace-context.js'

it.each([
  ['01', 1],
  ['00', 0],
  ['ff', 1],
  ['fe', 0],
])('of the flags %s only the known one is taken over', (flags, traceFlags) => {
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-${flags}`
  expect(trace.getSpanContext(contextOf({ traceparent })!)).toMatchObject({ traceFlags })
})
