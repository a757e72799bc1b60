/** Values that JSON cannot represent, and how they are shown. */
import { describe, expect, it } from 'vitest'
import { toShownValue, type ShownLimits } from '../../../../src/observability/inspect/shown-value.js'

const show = (value: unknown): unknown => toShownValue('it', value, (_key, shown) => shown)

it('shows bigints and symbols as text, and functions by name', () => {
  expect(show({ big: 12n, sign: Symbol('here'), call: function named() {} })).toEqual({
    big: '12',
    sign: 'Symbol(here)',
    call: { type: 'named' },
  })
})

it('shows only the name, code and message of an error', () => {
  const error = Object.assign(new TypeError('broken'), { code: 'E_BROKEN', secret: 'SECRET' })
  expect(show([error, new Error('plain')])).toEqual([
    { name: 'TypeError', code: 'E_BROKEN', message: 'broken' },
    { name: 'Error', message: 'plain' },
  ])
})

it('shows the length of bytes', () => {
  expect(show({ bytes: new Uint8Array(1000) })).toEqual({ bytes: '[Uint8Array: 1000 bytes]' })
})

describe('the limits of what is shown', () => {
  const WIDE: ShownLimits = { depth: 100, stringChars: 1000, values: 1000, chars: 1000 }
  const bounded = (value: unknown, limits: Partial<ShownLimits>): unknown =>
    toShownValue('it', value, (_key, shown) => shown, { ...WIDE, ...limits })

  it('a text may have exactly as many characters as one text may', () => {
    expect(bounded(['12345', '123456'], { stringChars: 5 })).toEqual(['12345', '12345… [1 more characters]'])
  })

  it('all texts and names of fields share the characters', () => {
    expect(bounded(['1234', '1234', '12'], { chars: 10 })).toEqual(['1234', '1234', '12'])
    expect(bounded(['1234', '1234', '123'], { chars: 10 })).toEqual(['1234', '1234', '12… [1 more characters]'])
    expect(bounded({ name: '1234' }, { chars: 8 })).toEqual({ name: '1234' })
    expect(bounded({ name: '1234' }, { chars: 7 })).toEqual({ name: '123… [1 more characters]' })
    expect(bounded({ name: '1234', other: 'x' }, { chars: 5 })).toEqual({
      name: '1… [3 more characters]',
      other: '… [1 more characters]',
    })
  })

  it('a value may be as deep as the limit', () => {
    expect(bounded({ a: { b: 1 } }, { depth: 2 })).toEqual({ a: { b: 1 } })
    expect(bounded({ a: { b: { c: 1 } }, d: [[1]] }, { depth: 2 })).toEqual({ a: { b: '[Object]' }, d: ['[Array]'] })
  })

  it('a value may have as many fields and elements as the limit, with itself', () => {
    expect(bounded([1, 2, 3], { values: 4 })).toEqual([1, 2, 3])
    expect(bounded([1, 2, 3], { values: 3 })).toEqual([1, 2, '[1 more]'])
    expect(bounded({ a: 1, b: 2 }, { values: 3 })).toEqual({ a: 1, b: 2 })
    expect(bounded({ a: 1, b: 2 }, { values: 2 })).toEqual({ a: 1, '…': '[more]' })
  })

  it('an object that is shown twice is no circle, one inside itself is', () => {
    const shared: Record<string, unknown> = { n: 1 }
    expect(show([shared, shared])).toEqual([{ n: 1 }, { n: 1 }])
    shared['self'] = shared
    expect(show(shared)).toEqual({ n: 1, self: '[Circular]' })
  })
})
