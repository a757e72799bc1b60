/** JSON text of limited length: what does not fit is left out in words, and the text is still JSON. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toJsonText } from '../../../src/data/json-text.js'
import { toPlainData } from '../../../src/data/plain-data.js'
import { checkProperty } from '../../support/property.js'

describe('the JSON text of a value that fits', () => {
  it('is that of JSON.stringify', async () => {
    await checkProperty(
      'json-text-whole',
      fc.property(fc.anything(), (value) => {
        const plain = toPlainData(value)
        expect(toJsonText({ plain }, { indent: 2 })).toBe(JSON.stringify({ plain }, null, 2))
      }),
    )
  })
})

describe('the JSON text of a value that does not fit', () => {
  it('cuts a text, and leaves out items and fields', () => {
    const text = (value: unknown): unknown => JSON.parse(toJsonText(value, { maxChars: 40 }))
    expect(text('x'.repeat(100))).toBe(`${'x'.repeat(36)}... [64 characters left out]`)
    expect(text(Array.from({ length: 100 }, () => 'abcdef'))).toEqual([
      ...['abcdef', 'abcdef', 'abcdef', 'ab... [4 characters left out]'],
      '[96 items left out]',
    ])
    expect(text({ first: 'a'.repeat(30), second: 1, third: 2 })).toEqual({
      first: `${'a'.repeat(23)}... [7 characters left out]`,
      '[left out]': '2 fields',
    })
  })

  it('is not cut inside a surrogate pair', () => {
    expect(JSON.parse(toJsonText('😀'.repeat(100), { maxChars: 41 }))).toBe(
      `${'😀'.repeat(18)}... [164 characters left out]`,
    )
  })

  it('is JSON of limited length, whatever the value shares', async () => {
    const shared = fc.letrec((tie) => ({
      value: fc.oneof({ maxDepth: 4 }, fc.string(), fc.integer(), tie('list')),
      list: fc
        .tuple(tie('value'), fc.nat(50))
        .map(([value, copies]): unknown => Array.from({ length: copies }, () => value)),
    })).list
    await checkProperty(
      'json-text-bounded',
      fc.property(shared, fc.nat(500), (value, maxChars) => {
        const text = toJsonText(value, { maxChars, indent: 2 })
        JSON.parse(text)
        expect(text.length).toBeLessThan(10 * maxChars + 500)
      }),
    )
  })

  it('is written although it would be longer than a string can be', () => {
    const text = toJsonText(Array.from({ length: 600 }, () => 'x'.repeat(1_000_000)))
    expect(text.length).toBeLessThan(10_001_000)
    expect(text.endsWith('"[590 items left out]"]')).toBe(true)
  })
})
