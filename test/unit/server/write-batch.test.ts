/** The writes of one turn of the event loop to one socket are sent with one system call. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { createWriteBatch } from '../../../src/server/connection.js'

function createStream() {
  const writes: string[][] = []
  let corks = 0
  const held: string[] = []
  const flush = (): void => {
    if (corks === 0 && held.length > 0) writes.push(held.splice(0))
  }
  return {
    writes,
    get corks() {
      return corks
    },
    write: (text: string) => {
      held.push(text)
      flush()
    },
    cork: () => {
      corks += 1
    },
    uncork: () => {
      corks -= 1
      flush()
    },
    get writableLength() {
      return held.join('').length
    },
  }
}

describe('a write batch', () => {
  it('sends the writes of a turn together, for each socket on its own, and holds nothing back afterwards', async () => {
    const batch = createWriteBatch()
    const [one, other] = [createStream(), createStream()]
    for (const text of ['a', 'b']) {
      for (const stream of [one, other]) {
        batch.cork(stream)
        stream.write(text)
      }
    }
    expect(one.writes).toEqual([])
    await nextTurn()
    expect([one.writes, other.writes]).toEqual([[['a', 'b']], [['a', 'b']]])
    expect([one.corks, other.corks]).toEqual([0, 0])
    batch.cork(one)
    one.write('c')
    await nextTurn()
    expect(one.writes).toEqual([['a', 'b'], ['c']])
    expect(one.corks).toBe(0)
  })

  it('does not hold back a large amount of data', async () => {
    const batch = createWriteBatch()
    const stream = createStream()
    const much = 'x'.repeat(64 * 1024)
    for (const text of [much, 'y', 'z']) {
      batch.cork(stream)
      stream.write(text)
    }
    expect(stream.writes).toEqual([[much, 'y']])
    await nextTurn()
    expect(stream.writes).toEqual([[much, 'y'], ['z']])
    expect(stream.corks).toBe(0)
  })
})
