/** Parts of a text that begin and end at whole characters, and the cursors between them. */
import { expect, it } from 'vitest'
import { OutputLog, readChunk } from '../../../src/features/output/output-log.js'

/** `a`, `é` in 2 bytes, `漢` in 3 and `😀` in 4: characters begin at 0, 1, 3, 6 and the text ends at 10. */
const BYTES = new TextEncoder().encode('aé漢😀')

const read = (cursor: number, maxBytes: number, start = 0) => {
  const { text, nextCursor, skippedBytes, remainingBytes } = readChunk(BYTES, start, cursor, maxBytes)
  return [text, nextCursor, skippedBytes, remainingBytes]
}

it.each([
  [0, 10, ['aé漢😀', 10, 0, 0]],
  [0, 9, ['aé漢', 6, 0, 4]],
  [0, 6, ['aé漢', 6, 0, 4]],
  [0, 5, ['aé', 3, 0, 7]],
  [0, 3, ['aé', 3, 0, 7]],
  [0, 2, ['a', 1, 0, 9]],
  [1, 2, ['é', 3, 0, 7]],
  [3, 100, ['漢😀', 10, 0, 0]],
])('from %i on, at most %i bytes are whole characters', (cursor, maxBytes, expected) => {
  expect(read(cursor, maxBytes)).toEqual(expected)
})

it.each([
  [0, 0, ['a', 1, 0, 9]],
  [1, 1, ['é', 3, 0, 7]],
  [3, 1, ['漢', 6, 0, 4]],
  [6, 0, ['😀', 10, 0, 0]],
  [6, 3, ['😀', 10, 0, 0]],
])(
  'from %i on, at most %i bytes are one character at least, so that a reader goes on',
  (cursor, maxBytes, expected) => {
    expect(read(cursor, maxBytes)).toEqual(expected)
  },
)

it.each([
  [2, ['漢', 6, 0, 4]],
  [4, ['😀', 10, 0, 0]],
  [7, ['', 10, 0, 0]],
])('a cursor within a character, at %i, goes on behind it, and nothing is missing', (cursor, expected) => {
  expect(read(cursor, 4)).toEqual(expected)
})

it.each([
  [-5, ['a', 1, 0, 9]],
  [10, ['', 10, 0, 0]],
  [99, ['', 10, 0, 0]],
])('a cursor outside of the text, at %i, is taken as its nearest end', (cursor, expected) => {
  expect(read(cursor, 1)).toEqual(expected)
})

it('what is no longer kept is counted from the cursor, or from the beginning of the text', () => {
  expect(read(0, 3, 100)).toEqual(['aé', 103, 100, 7])
  expect(read(-7, 3, 100)).toEqual(['aé', 103, 100, 7])
  expect(read(90, 100, 100)).toEqual(['aé漢😀', 110, 10, 0])
  expect(read(101, 2, 100)).toEqual(['é', 103, 0, 7])
  expect(read(102, 1, 100)).toEqual(['漢', 106, 0, 4])
  const kept = BYTES.subarray(2)
  expect(readChunk(kept, 102, 101, 4)).toMatchObject({ text: '漢', skippedBytes: 2 })
  expect(read(200, 1, 100)).toEqual(['', 110, 0, 0])
})

it('a byte order mark is a character like others', () => {
  const bytes = new TextEncoder().encode('\ufeffa')
  expect(readChunk(bytes, 0, 0, 10).text).toBe('\ufeffa')
})

it('a log keeps the end of what was written, and reads it from there on', () => {
  const log = new OutputLog(4)
  expect([log.size, log.readEnd(3), log.read(undefined, 9).text]).toEqual([0, '', ''])
  log.append('ab')
  expect([log.readEnd(5), log.readEnd(2), log.readEnd(1)]).toEqual(['ab', 'ab', 'b'])
  log.append('cdef')
  expect([log.size, log.readEnd(2), log.readEnd(9)]).toEqual([6, 'ef', 'cdef'])
  expect(log.read(undefined, 9)).toEqual({ text: 'cdef', nextCursor: 6, skippedBytes: 0, remainingBytes: 0 })
  expect(log.read(1, 2)).toEqual({ text: 'cd', nextCursor: 4, skippedBytes: 1, remainingBytes: 2 })
})
