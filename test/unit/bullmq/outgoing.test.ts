import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ENTRY_BYTES, Outgoing } from '../../../src/bullmq/outgoing.js'

const MAX = 1024 * 1024

const all = (outgoing: Outgoing, each = MAX) => {
  const items = []
  while (!outgoing.isEmpty) items.push(...outgoing.take(each))
  return items.map(({ what, name, text }) => ({ what, name, text }))
}

describe('what a run has said', () => {
  it('W2: keeps its order, and joins what follows on each other', () => {
    const outgoing = new Outgoing(MAX)
    outgoing.append('a')
    outgoing.append('b')
    outgoing.report('progress', '1')
    outgoing.report('progress', '2')
    outgoing.append('c')
    outgoing.set('q:1', '{}')
    outgoing.append('d')
    expect(all(outgoing)).toEqual([
      { what: 'output', name: '', text: 'ab' },
      { what: 'progress', name: '', text: '2' },
      { what: 'output', name: '', text: 'c' },
      { what: 'set', name: 'q:1', text: '{}' },
      { what: 'output', name: '', text: 'd' },
    ])
  })

  it('replaces what was set under the same name and not taken, and deletes after that', () => {
    const outgoing = new Outgoing(MAX)
    outgoing.set('spent', '1')
    outgoing.append('x')
    outgoing.set('spent', '2')
    outgoing.delete('q:1')
    expect(all(outgoing).map(({ what, text }) => [what, text])).toEqual([
      ['set', '2'],
      ['output', 'x'],
      ['delete', ''],
    ])
  })

  it('W2: is bounded in bytes: the oldest output and progress go, questions stay', () => {
    const outgoing = new Outgoing(10_000)
    outgoing.set('q:1', 'x'.repeat(20_000))
    for (let at = 0; at < 10_000; at += 1) {
      outgoing.append(`output ${at}\n`)
      outgoing.report('progress', String(at))
    }
    const items = outgoing.take(Infinity)
    const said = items.filter(({ what }) => what !== 'set')
    expect(said.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(10_000)
    expect(items[0]).toMatchObject({ what: 'set', name: 'q:1' })
    expect(said.at(-1)?.text).toBe('9999')
    expect(said.length).toBeGreaterThan(50)
  })

  it('keeps the end of a text that is larger than all that is kept', () => {
    const outgoing = new Outgoing(200_000)
    outgoing.append('é'.repeat(1_000_000))
    const text = all(outgoing)
      .map((item) => item.text)
      .join('')
    expect(text).toMatch(/^é+$/)
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(200_000)
    expect(Buffer.byteLength(text)).toBeGreaterThan(100_000)
  })

  it('never splits a character', () => {
    const text = '\u{1f600}'.repeat(40_000)
    const outgoing = new Outgoing(MAX)
    outgoing.append(`a${text}`)
    const items = all(outgoing)
    expect(items.length).toBeGreaterThan(1)
    for (const item of items) expect(item.text).toBe(Buffer.from(item.text).toString())
    expect(items.map((item) => item.text).join('')).toBe(`a${text}`)
  })

  it('W2: joins no more than 64 KiB, whatever the characters take', () => {
    const outgoing = new Outgoing(MAX)
    for (const character of ['a', 'é', '€', '\u{1f600}']) {
      for (let count = 0; count < 4; count += 1) outgoing.append(character.repeat(8000))
    }
    const items = outgoing.take(Infinity)
    expect(items.map(({ text }) => text).join('')).toHaveLength(4 * 8000 * 5)
    expect(Math.max(...items.map(({ bytes }) => bytes))).toBeLessThanOrEqual(65_536)
  })

  it('takes at least one item, and no more than asked for', () => {
    const outgoing = new Outgoing(MAX)
    for (let at = 0; at < 5; at += 1) {
      outgoing.append('x'.repeat(100))
      outgoing.report('progress', String(at))
    }
    expect(outgoing.take(1)).toHaveLength(1)
    expect(outgoing.take(101 + 2 * ENTRY_BYTES)).toHaveLength(2)
    expect(outgoing.take(Infinity)).toHaveLength(7)
    expect(outgoing.isEmpty).toBe(true)
    expect(outgoing.take(1)).toEqual([])
  })

  it('W2: passes on every text, in its order, however it is taken', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string({ unit: 'binary' }), fc.nat(200))), (steps) => {
        const outgoing = new Outgoing(MAX)
        let taken = ''
        for (const [text, bytes] of steps) {
          outgoing.append(text)
          if (bytes % 3 === 0) {
            taken += outgoing
              .take(bytes)
              .map((item) => item.text)
              .join('')
          }
        }
        taken += all(outgoing)
          .map((item) => item.text)
          .join('')
        expect(taken).toBe(steps.map(([text]) => text).join(''))
      }),
    )
  })

  it('W2: what was taken does not count any more, however much was said before', () => {
    const outgoing = new Outgoing(10_000)
    for (let round = 0; round < 50; round += 1) {
      outgoing.append('x'.repeat(4000))
      outgoing.report('progress', String(round))
      expect(all(outgoing).map(({ what }) => what)).toEqual(['output', 'progress'])
    }
  })

  it('W2: keeps what fills the limit to its last byte, and drops no more than it must', () => {
    const outgoing = new Outgoing(2 * (100 + ENTRY_BYTES))
    outgoing.append('a'.repeat(100))
    outgoing.report('progress', 'b'.repeat(100))
    expect(all(outgoing)).toHaveLength(2)
    outgoing.append('a'.repeat(100))
    outgoing.report('progress', 'b'.repeat(100))
    outgoing.append('c'.repeat(100))
    expect(all(outgoing).map(({ text }) => text[0])).toEqual(['b', 'c'])
  })

  it('replaces only what was set under this name, not what was deleted or set under another one', () => {
    const outgoing = new Outgoing(MAX)
    outgoing.set('a', '1')
    outgoing.set('b', '1')
    outgoing.delete('c')
    outgoing.set('c', '1')
    outgoing.set('b', '2')
    expect(all(outgoing).map(({ what, name, text }) => `${what} ${name} ${text}`)).toEqual([
      'set a 1',
      'set b 2',
      'delete c ',
      'set c 1',
    ])
  })

  it.each(['\u{10000}', '\u{10ffff}'])(
    'never splits the first and the last of the large characters: %j',
    (character) => {
      const outgoing = new Outgoing(MAX)
      outgoing.append(`a${character.repeat(40_000)}`)
      for (const item of all(outgoing)) expect(item.text).toBe(Buffer.from(item.text).toString())
    },
  )
})
