import fc from 'fast-check'
import { expect, it } from 'vitest'
import { escapeControls, toLines, toOneLine } from '../../../src/data/control-characters.js'
import { checkProperty } from '../../support/property.js'

const isControl = (character: string): boolean => /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u.test(character)

it('one line of any text has no control character', () => {
  expect(toOneLine('a\r\n\tb\u001b[1mc\u202ed')).toBe('a b [1mc d')
})

it('lines keep their line feeds and tabs', () => {
  expect(toLines('a\r\n\tb\u001b[1mc\rd')).toBe('a\n\tb [1mc d')
})

it('an escaped text shows what was there', () => {
  expect(escapeControls('a\n\u001b\u009b\u2028')).toBe('a\\u000a\\u001b\\u009b\\u2028')
})

it.each(['\u061c', '\u200e', '\u200f', '\u202a', '\u202e', '\u2066', '\u2069'])(
  'the bidirectional control %j is one',
  (mark) => {
    expect([toOneLine(`a${mark}b`), toLines(`a${mark}b`)]).toEqual(['a b', 'a b'])
    expect(escapeControls(mark)).toBe(`\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`)
  },
)

it('any text', async () => {
  await checkProperty(
    'no control character is left',
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(Array.from(toOneLine(text)).filter(isControl)).toEqual([])
      expect(Array.from(escapeControls(text)).filter(isControl)).toEqual([])
      expect(Array.from(toLines(text)).filter((one) => isControl(one) && one !== '\n' && one !== '\t')).toEqual([])
    }),
  )
})
