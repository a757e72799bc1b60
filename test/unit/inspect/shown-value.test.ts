/** What a viewer is shown of values that JSON has no word for, or no room. */
import { expect, it } from 'vitest'
import { toShownValue } from '../../../src/inspect/shown-value.js'

const show = (value: unknown): unknown => toShownValue('it', value, (_key, shown) => shown)

it('shows big numbers and symbols as text, and functions by their name', () => {
  expect(show({ big: 12n, sign: Symbol('here'), call: function named() {} })).toEqual({
    big: '12',
    sign: 'Symbol(here)',
    call: { type: 'named' },
  })
})

it('shows of an error its name, code and message, and nothing else that it carries', () => {
  const error = Object.assign(new TypeError('broken'), { code: 'E_BROKEN', secret: 'SECRET' })
  expect(show([error, new Error('plain')])).toEqual([
    { name: 'TypeError', code: 'E_BROKEN', message: 'broken' },
    { name: 'Error', message: 'plain' },
  ])
})

it('shows of bytes how many there are', () => {
  expect(show({ bytes: new Uint8Array(1000) })).toEqual({ bytes: '[Uint8Array: 1000 bytes]' })
})
