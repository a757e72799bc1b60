/** Texts stay within their limit, say how much was cut, and are never cut inside a character. */
import { fc } from '@fast-check/vitest'
import { describe, expect, it } from 'vitest'
import { boundLines, boundText, messageLength, previewText } from '../../../src/features/output/bounded-text.js'
import { readChunk } from '../../../src/features/output/output-log.js'
import { InvalidSettingError } from '../../../src/errors.js'
import { checkOption } from '../../../src/protocol/option-checks.js'
import { cutText } from '../../../src/data/cut-text.js'
import { checkProperty } from '../../support/property.js'

const reading = { tool: 'check_async_tasks', params: { task_id: 'a', action: 'output' } }

describe('a bounded text', () => {
  it('is unchanged when it fits', () => {
    expect(boundText('12345', 5, reading)).toEqual({ text: '12345', isCut: false })
  })

  it('says how much is missing and how to read the rest', () => {
    expect(boundText('ä2345', 3, reading)).toEqual({
      text: 'ä23\n[Cut after 3 of 5 characters. Read the rest with check_async_tasks {"task_id":"a","action":"output","cursor":4}]',
      isCut: true,
    })
  })

  it('stays within the room that it has, with its notice', () => {
    const { text } = boundText('😀'.repeat(500), 800, reading, 300)
    expect(text.length).toBeLessThanOrEqual(300)
    expect(text).toMatch(/^(😀)+\n\[Cut after \d+ of 1000 characters/)
    expect(boundText('x'.repeat(300), 800, reading, 300)).toEqual({ text: 'x'.repeat(300), isCut: false })
  })

  it('names the byte from which the rest is read, whatever the characters', async () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'ß', '€', '😀', '\uFEFF'), minLength: 0, maxLength: 60 })
    await checkProperty(
      'kept and rest make the whole',
      fc.property(text, fc.integer({ min: 1, max: 40 }), (whole, maxChars) => {
        const { text: shown, isCut } = boundText(whole, maxChars, reading)
        if (!isCut) {
          expect(shown).toBe(whole)
          return
        }
        const [kept = ''] = shown.split('\n[Cut after ')
        const cursor = Number(/"cursor":(\d+)/.exec(shown)?.[1])
        const rest = readChunk(new TextEncoder().encode(whole), 0, cursor, Infinity)
        expect(kept + rest.text).toBe(whole)
        expect(kept.length).toBeLessThanOrEqual(maxChars)
      }),
    )
  })
})

describe('a preview', () => {
  it('has dots only when something was cut', () => {
    expect(previewText('12345', 5)).toBe('12345')
    expect(previewText('123456', 5)).toBe('12345...')
  })

  it('does not split a surrogate pair', () => {
    expect(cutText('1234😀', 5)).toBe('1234')
    expect(previewText('1234😀', 5)).toBe('1234...')
    expect(cutText('123😀', 5)).toBe('123😀')
  })
})

describe('bounded lines', () => {
  it('are complete when they fit', () => {
    expect(boundLines(['one', 'two'], 8)).toBe('one\ntwo')
  })

  it('say how many more there are', () => {
    expect(boundLines(['one', 'two', 'three', 'four'], 8)).toBe('one\ntwo\n... and 2 more')
  })

  it('say how to read the rest', () => {
    const rest = boundLines(['one', 'two', 'three'], 8, (shown) => `: skip ${shown}`)
    expect(rest).toBe('one\ntwo\n... and 1 more: skip 2')
  })

  it('show at least one line', () => {
    expect(boundLines(['a long line', 'two'], 3)).toBe('a long line\n... and 1 more')
  })
})

describe('the setting maxMessageChars', () => {
  it.each([199, 0, -1, 200.5, NaN, Infinity])('refuses %d', (value) => {
    expect(() => checkOption(value, messageLength, ['options', 'maxMessageChars'])).toThrow(
      new InvalidSettingError('maxMessageChars', value, 'an integer >= 200'),
    )
  })
})
