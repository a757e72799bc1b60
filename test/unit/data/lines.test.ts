/** Lines do not depend on where the chunks of a text end. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLineSplitter } from '../../../src/data/lines.js'
import { checkProperty } from '../../support/property.js'

function linesOf(pieces: readonly string[]): string[] {
  const lines: string[] = []
  const splitter = createLineSplitter((line) => lines.push(line))
  for (const piece of pieces) splitter.push(piece)
  splitter.end()
  splitter.end()
  return lines
}

describe('a line splitter', () => {
  it('emits each line once, without its line break, also the last one', () => {
    expect(linesOf(['a\nb\r', '\n\nc\rd', 'e'])).toEqual(['a', 'b', '', 'c\rde'])
    expect(linesOf(['a\n'])).toEqual(['a'])
    expect(linesOf([])).toEqual([])
  })

  it('emits the same lines however the text is split', () => {
    const piece = fc.array(fc.constantFrom('a', '\r', '\n', '😀'), { maxLength: 5 }).map((units) => units.join(''))
    return checkProperty(
      'lines do not depend on chunks',
      fc.property(fc.array(piece), (pieces) => {
        expect(linesOf(pieces)).toEqual(linesOf([pieces.join('')]))
      }),
    )
  })

  it('keeps no more than 65536 characters of a line that does not end', () => {
    const lines = linesOf([...Array.from({ length: 30 }, () => 'x'.repeat(10_000)), '\nnext'])
    expect(lines.map((line) => line.length)).toEqual([65_536, 4])
  })
})
