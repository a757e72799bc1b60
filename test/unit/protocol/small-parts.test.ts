// The small parts of the protocol at their edges.
import { expect, it } from 'vitest'
import { smallerBudget } from '../../../src/protocol/budget.js'
import { nearestName } from '../../../src/data/nearest-name.js'
import { accepts, aPort, integerFrom, limitFrom, numberFrom } from '../../../src/protocol/option-checks.js'
import { describeFailure, failureOf, MAX_ERROR_CHARS, toOutput } from '../../../src/protocol/outcomes.js'
import { toWholePlainData } from '../../../src/data/plain-data.js'
import { backoffMs } from '../../../src/protocol/retry-policy.js'
import { traceOf } from '../../../src/protocol/telemetry.js'
import { failureResult, toToolCallResult, unwrapResult } from '../../../src/protocol/tool-result.js'

it('a trace is passed on up to 256 characters, and its state up to 8,192', () => {
  const [traceparent, tracestate] = ['t'.repeat(256), 's'.repeat(8192)]
  expect(traceOf({ traceparent, tracestate })).toEqual({ traceparent, tracestate })
  expect(traceOf({ traceparent: `${traceparent}t`, tracestate })).toBeUndefined()
  expect(traceOf({ traceparent, tracestate: `${tracestate}s` })).toEqual({ traceparent })
  expect(traceOf({ traceparent, tracestate: 1 })).toEqual({ traceparent })
  for (const carrier of [undefined, {}, { traceparent: 1 }, { tracestate }]) expect(traceOf(carrier)).toBeUndefined()
})

it('the wait for the second run is the first one, and each after it longer, up to the longest', () => {
  expect([1, 2, 3, 7, 100].map((attempt) => backoffMs({ jitter: false }, attempt, 'a'))).toEqual([
    1000, 2000, 4000, 60_000, 60_000,
  ])
  expect([1, 2].map((attempt) => backoffMs({ initialMs: 5, factor: 1, jitter: false }, attempt, 'a'))).toEqual([5, 5])
  expect(backoffMs({ initialMs: 100, maxMs: 50, jitter: false }, 1, 'a')).toBe(50)
  // Infinity times 0 is no number.
  expect(backoffMs({ initialMs: 0, factor: 10, jitter: false }, 1000, 'a')).toBe(0)
})

it('of two budgets the smaller limit of each kind counts', () => {
  expect(smallerBudget({ tokens: 5, cost: 1 }, { tokens: 9, seconds: 0 })).toEqual({ tokens: 5, cost: 1, seconds: 0 })
  expect(smallerBudget({ tokens: 9 }, { tokens: 5 })).toEqual({ tokens: 5 })
  expect(smallerBudget(undefined, { steps: 2 })).toEqual({ steps: 2 })
  expect(smallerBudget({ steps: 2 }, undefined)).toEqual({ steps: 2 })
  expect([smallerBudget(undefined, undefined), smallerBudget({}, undefined)]).toEqual([undefined, undefined])
})

it('a reason of the most characters is whole, and of a longer one both ends are there', () => {
  const most = 'x'.repeat(MAX_ERROR_CHARS)
  expect(failureOf(new Error(most)).error).toBe(most)
  const { error } = failureOf(new Error(`a${most}z`))
  expect(error.length).toBeLessThanOrEqual(MAX_ERROR_CHARS)
  const left = Number(/^a(x+)\n\[(\d+) characters are left out here\]\n(x+)z$/.exec(error)?.[2])
  const [, start = '', , end = ''] = /^a(x+)\n\[(\d+) characters are left out here\]\n(x+)z$/.exec(error) ?? []
  expect(left + start.length + end.length).toBe(MAX_ERROR_CHARS)
})

it('a failure has the name and the code of its error, where they say something', () => {
  const coded = (code: unknown, name = 'Error') => Object.assign(new Error('no'), { code, name })
  expect(failureOf(coded(undefined))).toEqual({ error: 'no', cause: coded(undefined) })
  expect(failureOf(coded('', ''))).not.toHaveProperty('errorCode')
  expect(failureOf(coded('', ''))).not.toHaveProperty('errorName')
  expect(failureOf(coded(0, 'TypeError'))).toMatchObject({ errorCode: '0', errorName: 'TypeError' })
  expect(failureOf(coded('c'.repeat(257), 'n'.repeat(257)))).toMatchObject({
    errorCode: 'c'.repeat(256),
    errorName: 'n'.repeat(256),
  })
  expect(failureOf('text')).toEqual({ error: 'text' })
  expect(describeFailure('')).toBe('The run failed without saying why.')
  expect(describeFailure(new TypeError(''))).toBe('TypeError')
})

it('what a run returns is an output: an object as it is, and anything else as its text', () => {
  expect(toOutput({ a: 1 })).toEqual({ a: 1 })
  expect([toOutput('x'), toOutput([1]), toOutput(0), toOutput(false)]).toEqual(
    ['x', '[1]', '0', 'false'].map((text) => ({ final_message: text })),
  )
  expect([toOutput(undefined), toOutput(null)]).toEqual([{}, {}])
})

it('a result without its envelope is its JSON or its text, its only other block, or all of its blocks', () => {
  const text = (value: string) => ({ type: 'text', text: value })
  const image = { type: 'image', data: 'aaaa', mimeType: 'image/png' }
  expect(unwrapResult({ content: [text('{"a":1}')] })).toEqual({ a: 1 })
  expect(unwrapResult({ content: [text('a {')] })).toBe('a {')
  expect(unwrapResult({ content: [image] })).toEqual(image)
  expect(unwrapResult({ content: [text('1'), image] })).toEqual([text('1'), image])
  expect(unwrapResult({ content: [], structuredContent: { a: 1 } })).toEqual({ a: 1 })
  expect([unwrapResult({ content: [] }), unwrapResult(5)]).toEqual([null, 5])
})

it('a value becomes a result of MCP, and a failure has its code', () => {
  expect(toToolCallResult(undefined)).toEqual({ content: [] })
  expect(toToolCallResult([1])).toEqual({ content: [{ type: 'text', text: '[1]' }] })
  expect(toToolCallResult({ a: 1 })).toEqual({
    content: [{ type: 'text', text: '{"a":1}' }],
    structuredContent: { a: 1 },
  })
  const neutral = { llmContent: 'for the model', returnDisplay: 'for a person' }
  expect(toToolCallResult({ ...neutral, metadata: { a: 1 } })).toEqual({
    content: [{ type: 'text', text: 'for the model' }],
    structuredContent: { a: 1 },
  })
  expect(toToolCallResult({ ...neutral, error: { type: 'aborted', message: 'm' } })).toEqual({
    content: [{ type: 'text', text: 'for the model' }],
    isError: true,
    _meta: { code: 'aborted' },
  })
  expect(failureResult({ code: '' })['_meta']).toEqual({ code: 'EXECUTION_ERROR' })
  expect(failureResult(Object.assign(new Error('no'), { code: 'ENOENT' }))['_meta']).toEqual({ code: 'ENOENT' })
})

it('the first of two names that are equally near is meant, and a part has three letters', () => {
  expect(nearestName('cat', ['bat', 'hat'])).toBe('bat')
  expect(nearestName('com', ['longer command', 'command'])).toBe('command')
  expect(nearestName('co', ['command'])).toBeUndefined()
  expect(nearestName('mand', ['command'])).toBe('command')
})

it('numbers of options are accepted from their least one to their greatest', () => {
  const accepted = [0, 65_535, 65_536, -1, 1.5, Infinity, NaN, '1'].map((value) =>
    [aPort, numberFrom(0), limitFrom(0), integerFrom(0)].map((type) => accepts(type, value)),
  )
  expect(accepted).toEqual([
    [true, true, true, true],
    [true, true, true, true],
    [false, true, true, true],
    [false, false, false, false],
    [false, true, true, false],
    [false, false, true, false],
    [false, false, false, false],
    [false, false, false, false],
  ])
})

it('what is nested up to 100 levels is whole, and what is shared is copied once, also after a part that cannot be read', () => {
  const nest = (levels: number): unknown => (levels === 0 ? 1 : { a: nest(levels - 1) })
  expect(toWholePlainData(nest(100))).toEqual(nest(100))
  expect(toWholePlainData(nest(101))).toBeUndefined()
  let reads = 0
  const odd = {
    toJSON: () => {
      reads += 1
      if (reads === 1) throw new Error('not yet')
      return 'read'
    },
  }
  expect(toWholePlainData([odd, odd, odd] as unknown)).toEqual(['[unreadable: not yet]', 'read', 'read'])
  expect(reads).toBe(2)
})
