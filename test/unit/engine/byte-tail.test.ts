/** The end of a stream: exactly the last bytes, read from a whole character on, and the count of those that were dropped. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ByteTail } from '../../../src/engine/byte-tail.js'
import { lastChars } from '../../../src/data/cut-text.js'
import { keptText } from '../../../src/runners/captured-output.js'
import { checkProperty } from '../../support/property.js'

describe('a byte tail', () => {
  it('keeps the last bytes, which are read from the first whole character on', () => {
    const chunk = fc.oneof(
      fc.uint8Array({ maxLength: 12 }),
      fc.string({ unit: 'binary', maxLength: 6 }).map((text) => new TextEncoder().encode(text)),
      fc.integer({ min: 0, max: 9000 }).map((length) => new Uint8Array(length).fill(120)),
    )
    return checkProperty(
      'a byte tail is the end of all chunks',
      fc.property(fc.array(chunk, { maxLength: 12 }), fc.integer({ min: 1, max: 5000 }), (chunks, limit) => {
        const tail = new ByteTail(limit)
        for (const each of chunks) tail.append(each)
        const all = Buffer.concat(chunks)
        let start = Math.max(0, all.length - limit)
        if (start > 0) while (start < all.length && (all[start]! & 0xc0) === 0x80) start += 1
        expect(keptText(tail)).toEqual({ text: new TextDecoder().decode(all.subarray(start)), droppedBytes: start })
        expect(tail).toMatchObject({ start: Math.max(0, all.length - limit), end: all.length })
      }),
    )
  })

  it('copies chunks, so that their memory can be used again', () => {
    const tail = new ByteTail(10)
    const chunk = Buffer.from('abc')
    tail.append(chunk)
    chunk.fill('x')
    expect(keptText(tail)).toEqual({ text: 'abc', droppedBytes: 0 })
  })

  it('takes as much memory as it needs, and at most twice its limit', () => {
    const tail = new ByteTail(100_000)
    tail.append(new Uint8Array(10))
    expect(tail.bytes.buffer.byteLength).toBeLessThanOrEqual(256)
    tail.append(new Uint8Array(1000))
    expect(tail.bytes.buffer.byteLength).toBeLessThanOrEqual(2 * 1010)
    for (let index = 0; index < 50; index += 1) tail.append(new Uint8Array(9000))
    expect(tail.bytes.buffer.byteLength).toBe(200_000)
    tail.append(new Uint8Array(1_000_000))
    expect([tail.bytes.buffer.byteLength, tail.bytes.length]).toEqual([200_000, 100_000])
  })

  it('makes room only when there is none', () => {
    const tail = new ByteTail(1000)
    for (let index = 0; index < 10; index += 1) tail.append(new Uint8Array(300))
    const buffers = new Set<unknown>()
    // Once in a thousand bytes.
    for (let index = 0; index < 10_000; index += 1) {
      tail.append(new Uint8Array(1))
      buffers.add(tail.bytes.buffer)
    }
    expect(buffers.size).toBeLessThan(15)
  })

  it('does not copy what it keeps for each small chunk', () => {
    // 20,000 copies of 8 MiB would take half a minute.
    const tail = new ByteTail(8 * 1024 * 1024)
    tail.append(new Uint8Array(8 * 1024 * 1024).fill(120))
    for (let index = 0; index < 20_000; index += 1) tail.append(Buffer.from('y'))
    expect(keptText(tail).text.slice(-20_001)).toBe(`x${'y'.repeat(20_000)}`)
  })
})

describe('lastChars', () => {
  it('drops the start of a text, and one more unit where it would split a pair', () => {
    expect(lastChars('abc', 3)).toBe('abc')
    expect(lastChars('abcd', 3)).toBe('bcd')
    expect(lastChars('a😀b', 3)).toBe('😀b')
    expect(lastChars('a😀b', 2)).toBe('b')
  })
})
