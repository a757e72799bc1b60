import fc from 'fast-check'
import { expect, it } from 'vitest'
import { escapeControls, toLines, toOneLine } from '../../src/control-characters.js'
import { checkProperty } from '../support/property.js'

const isControl = (character: string): boolean => /[\p{Cc}\u2028-\u202e\u2066-\u2069]/u.test(character)

it('one line of any text has no control character', () => {
  expect(toOneLine('a\r\n\tb\u001b[1mc\u202ed')).toBe('a b [1mc d')
})

it('lines keep their line feeds and tabs', () => {
  expect(toLines('a\r\n\tb\u001b[1mc\rd')).toBe('a\n\tb [1mc d')
})

it('an escaped text shows what was there', () => {
  expect(escapeControls('a\n\u001b\u009b\u2028')).toBe('a\\u000a\\u001b\\u009b\\u2028')
})

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
