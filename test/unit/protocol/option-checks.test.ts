/** Numeric options are checked against their minimum; the error names the option and the value. */
import { describe, expect, it } from 'vitest'
import { checkLeast } from '../../../src/protocol/option-checks.js'

describe('a number option', () => {
  it('may be its minimum or more', () => {
    expect([checkLeast('pollMs', 1, 1), checkLeast('pollMs', 1.5, 1)]).toEqual([1, 1.5])
  })

  it.each([0.5, -1, NaN, Infinity])('may not be %d', (value) => {
    expect(() => checkLeast('pollMs', value, 1)).toThrow(`Setting pollMs: got ${value}, expected a number >= 1.`)
  })
})
