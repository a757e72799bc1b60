import fc from 'fast-check'
import { expect, it } from 'vitest'
import { jsonBytes } from '../../../src/data/json-size.js'
import { toPlainData } from '../../../src/data/plain-data.js'
import { checkProperty } from '../../support/property.js'

const values = fc.anything({ maxDepth: 4, withBigInt: true, withDate: true }).map(toPlainData)
const texts = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary-ascii' }))

it('counts the bytes that JSON.stringify would write', () =>
  checkProperty(
    'jsonBytes',
    fc.property(fc.oneof(values, texts, fc.dictionary(texts, values)), (value) => {
      const json: unknown = JSON.stringify(value)
      expect(jsonBytes(value)).toBe(typeof json === 'string' ? Buffer.byteLength(json) : 0)
    }),
  ))

it('counts lone surrogates as they are written', () => {
  for (const text of [
    '\ud83d\ude00',
    '\ud83d',
    '\ude00',
    '\ude00\ud83d',
    'a\ud83d',
    '\ud83d\ud83d\ude00',
    '\b\u0001"\\é€',
  ]) {
    expect([text, jsonBytes(text)]).toEqual([text, Buffer.byteLength(JSON.stringify(text))])
  }
})

it('stops beyond the most, whatever is shared', () => {
  const shared = 'x'.repeat(1024 * 1024)
  const huge = Array.from({ length: 600 }, () => Array.from({ length: 600 }, () => shared))
  const most = 3 * 1024 * 1024
  const bytes = jsonBytes(huge, most)
  expect(bytes).toBeGreaterThan(most)
  expect(bytes).toBeLessThan(2 * most)
})
