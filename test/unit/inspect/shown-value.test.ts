/** Values that JSON cannot represent, and how they are shown. */
import { expect, it } from 'vitest'
import { toShownValue } from '../../../src/inspect/shown-value.js'

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
