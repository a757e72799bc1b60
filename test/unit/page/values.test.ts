/** How far values are read, and what is kept of them. */
import { describe, expect, it } from 'vitest'
import { jsonPieces, PIECE_WORK } from '../../../src/data/json-pieces.js'
import { Allowance, parsedKept, shownKept } from '../../../src/page/kept-values.js'
import { heldBytes } from '../../../src/page/texts.js'
import { isLongJson, readBeginning, readPiece, valueBytes, type ShownValue } from '../../../src/page/values.js'

/** An endless value, and how many of its pieces were taken. */
function endless(piece = 'x'.repeat(PIECE_WORK)) {
  const counts = { taken: 0 }
  const value: ShownValue = {
    type: 'json',
    isLost: false,
    *pieces() {
      for (;;) {
        counts.taken += 1
        yield piece
      }
    },
  }
  return { value, counts }
}

/** An object whose million fields JSON does not know. */
const absent = Object.freeze(Object.fromEntries(Array.from({ length: 1_000_000 }, (_, at) => [`k${at}`, undefined])))

describe('a value', () => {
  it.each([['x'.repeat(PIECE_WORK)], ['']])(
    'G2: is read no further than four times what is sent of it (%.3s)',
    async (piece) => {
      const { value, counts } = endless(piece)
      const { text, bytes, isCut, hasMore } = await readBeginning(value, 4 * PIECE_WORK)
      expect([text.length, isCut, hasMore]).toEqual([piece.length * 4, true, true])
      expect([bytes, counts.taken]).toEqual([16 * piece.length, 17])
    },
  )

  it('says how long it is where it ends within that', async () => {
    const value: ShownValue = { type: 'text', isLost: false, pieces: () => ['aé', 'x'.repeat(5000)] }
    expect(await readBeginning(value, 2000)).toEqual({
      type: 'text',
      text: `aé${'x'.repeat(1997)}`,
      bytes: 5003,
      isCut: true,
    })
    expect(await readBeginning(value, 6000)).toMatchObject({ bytes: 5003, isCut: false })
  })

  it('G2: is read in pieces as far as 8 MiB, and has no more of them then', async () => {
    const mib = 1024 * 1024
    const { value, counts } = endless()
    expect(await readPiece(value, mib, mib)).toMatchObject({ offset: mib, isEnd: false, hasMore: true })
    expect(counts.taken).toBe((3 * mib) / PIECE_WORK + 1)
    expect(await readPiece(value, 1e15, mib)).toMatchObject({ text: '', isEnd: true, hasMore: true })
    expect(counts.taken).toBe((11 * mib) / PIECE_WORK + 2)
  })

  it('G2: is written as a file only as fast as that is read', async () => {
    const { value, counts } = endless()
    let bytes = 0
    for await (const chunk of valueBytes(value)) {
      bytes += chunk.length
      if (bytes > 4 * 1024 * 1024) break
    }
    expect(counts.taken * PIECE_WORK).toBe(bytes)
  })

  it('G2: with fields that JSON does not know takes the work of listing them once', async () => {
    const value = Array.from({ length: 100_000 }, () => absent)
    let pieces = 0
    for (const piece of jsonPieces(value)) {
      pieces += 1
      if (piece !== '' && pieces > 1) break
    }
    // The brackets of the first one come after its fields.
    expect(pieces).toBeGreaterThan(1_000_000 / PIECE_WORK - 2)
    expect(isLongJson(value, 64 * 1024)).toBe(true)
    expect(isLongJson({ a: 1 }, 64 * 1024)).toBe(false)
    expect(new Allowance(10_000).keep(value)).toMatchObject({ isCut: true })
  })
})

it('jsonPieces writes long names in slices, and what JSON does not know as JSON does', () => {
  const long = '漢'.repeat(100_000)
  for (const value of [
    { [long]: long, a: { [long]: [] } },
    [undefined, { a: undefined }],
    JSON.parse('{"__proto__":1}'),
  ]) {
    const pieces = [...jsonPieces(value)]
    expect(pieces.join('') === JSON.stringify(value)).toBe(true)
    expect(pieces.every((piece) => piece.length <= 64 * 1024 + PIECE_WORK)).toBe(true)
  }
})

describe('what is kept of a value', () => {
  it('G2: is a text of its own that takes what is counted', () => {
    const room = new Allowance(1000)
    const value = { a: [1, 'two'] }
    const kept = room.keep(value)
    expect(kept).toEqual({ type: 'json', text: '{"a":[1,"two"]}', isCut: false })
    expect([room.used, parsedKept(kept)]).toEqual([15, value])
    expect(room.keep({ final_message: 'é' })).toEqual({ type: 'text', text: 'é', isCut: false })
    expect(room.used).toBe(16)
    // One character that does not fit into a byte makes two of each.
    expect(room.keep('漢'.repeat(1000))).toEqual({ type: 'text', text: '漢'.repeat(492), isCut: true })
    expect(room.used).toBe(1000)
    expect(room.keep('more')).toEqual({ type: 'text', text: '', isCut: true })
  })

  it('is at most so much of it', () => {
    const room = new Allowance(1000)
    expect(room.keep('x'.repeat(50), 20)).toEqual({ type: 'text', text: 'x'.repeat(20), isCut: true })
    expect(room.used).toBe(20)
    expect(room.keepJson({ final_message: 'as JSON' })).toMatchObject({
      type: 'json',
      text: '{"final_message":"as JSON"}',
    })
  })

  it('can be parsed only when it is whole, and JSON', () => {
    const room = new Allowance(10)
    expect(parsedKept(room.keep([1, 2, 3, 4, 5, 6, 7]))).toBeUndefined()
    expect(parsedKept(new Allowance(10).keep('{}'))).toBeUndefined()
  })

  it('is shown as what it was, and says that it is a part', async () => {
    const kept = new Allowance(5).keep([1, 2, 3, 4])
    expect(await readBeginning(shownKept(kept), 100)).toEqual({ type: 'json', text: '[1,2,', bytes: 5, isCut: true })
  })

  it('does not end in half a character', () => {
    expect(new Allowance(5).keep('a😀😀').text).toBe('a')
    expect(heldBytes(undefined)).toBe(0)
  })
})
