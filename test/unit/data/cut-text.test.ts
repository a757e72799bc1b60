import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cutText, lastChars, partsOf } from '../../../src/data/cut-text.js'

const smile = '\u{1f642}'

describe('a text that is cut', () => {
  it.each([
    ['abc', 3, 'abc'],
    ['abc', 2, 'ab'],
    ['abc', 0, ''],
    [`a${smile}b`, 3, `a${smile}`],
    [`a${smile}b`, 2, 'a'],
  ])('%j has %i units from its start: %j', (text, count, expected) => {
    expect(cutText(text, count)).toBe(expected)
  })

  it.each([
    ['abc', 3, 'abc'],
    ['abc', 2, 'bc'],
    ['abc', 0, ''],
    [`a${smile}b`, 3, `${smile}b`],
    [`a${smile}b`, 2, 'b'],
  ])('%j has %i units from its end: %j', (text, count, expected) => {
    expect(lastChars(text, count)).toBe(expected)
  })
})

describe('the parts of a text', () => {
  it('make up the text, are as long as they may be, and split no pair', () => {
    expect([...partsOf(`ab${smile}${smile}`, 3)]).toEqual(['ab', smile, smile])
    expect([...partsOf('abcd', 2)]).toEqual(['ab', 'cd'])
    expect([...partsOf('', 2)]).toEqual([])
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', smile) }), fc.integer({ min: 2, max: 5 }), (text, size) => {
        const parts = [...partsOf(text, size)]
        expect(parts.join('')).toBe(text)
        for (const part of parts) expect(part).not.toMatch(/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/)
        for (const part of parts.slice(0, -1)) expect([size - 1, size]).toContain(part.length)
      }),
    )
  })

  it('of a text with halves of pairs lose none', () => {
    const text = '\ud83d\ud83d\ud83da\ude42\ude42'
    expect([...partsOf(text, 2)].join('')).toBe(text)
  })
})
