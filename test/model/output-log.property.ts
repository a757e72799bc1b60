/** The output log against a model that keeps all bytes. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { OutputLog } from '../../src/features/output/output-log.js'

const text = fc.string({ unit: fc.constantFrom('a', 'é', '€', '😀', '\n', '\uFEFF'), maxLength: 12 })
const appended = fc.array(text, { maxLength: 20 })

const encode = (of: string): Uint8Array => new TextEncoder().encode(of)
const isContinuation = (byte: number | undefined): boolean => byte !== undefined && byte >= 0x80 && byte < 0xc0

/** For any size and any cursor, the log returns what the model returns. */
export const outputLogProperty = () =>
  fc.property(appended, fc.nat(40), fc.nat(200), fc.nat(30), (texts, limit, cursor, maxBytes) => {
    const log = new OutputLog(limit)
    for (const each of texts) log.append(each)
    const all = encode(texts.join(''))
    assert.equal(log.size, all.length)
    assert.deepStrictEqual(log.read(cursor, maxBytes), readModel(all, limit, cursor, maxBytes))
    const start = Math.max(0, all.length - limit)
    assert.deepStrictEqual(log.read(undefined, maxBytes), readModel(all, limit, start, maxBytes))
  })

/** Whole characters from the first one kept, as many as fit, and at least one. */
function readModel(all: Uint8Array, limit: number, cursor: number, maxBytes: number): object {
  const end = all.length
  let from = Math.min(Math.max(cursor, end - limit, 0), end)
  while (isContinuation(all[from])) from += 1
  const ends = [from]
  for (let at = from + 1; at <= end; at += 1) if (at === end || !isContinuation(all[at])) ends.push(at)
  const fitting = ends.filter((to) => to - from <= maxBytes).at(-1)!
  const to = fitting === from ? (ends[1] ?? from) : fitting
  return {
    text: new TextDecoder('utf-8', { ignoreBOM: true }).decode(all.slice(from, to)),
    nextCursor: to,
    skippedBytes: cursor < end - limit ? from - cursor : 0,
    remainingBytes: end - to,
  }
}

/** Reading from cursor to cursor returns every byte once and in order, if none was dropped in between. */
export const readOnProperty = () =>
  fc.property(fc.array(fc.record({ text, maxBytes: fc.integer({ min: 0, max: 9 }) }), { maxLength: 20 }), (steps) => {
    const log = new OutputLog(10_000)
    let read = ''
    let cursor = 0
    for (const { text: more, maxBytes } of steps) {
      log.append(more)
      const chunk = log.read(cursor, maxBytes)
      assert.equal(chunk.skippedBytes, 0)
      read += chunk.text
      cursor = chunk.nextCursor
    }
    const rest = log.read(cursor, 10_000)
    assert.equal(rest.remainingBytes, 0)
    assert.equal(read + rest.text, steps.map((step) => step.text).join(''))
  })
