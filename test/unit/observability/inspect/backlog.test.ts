/** N2: what waits for a viewer is bounded, and what does not fit is counted. */
import { expect, it } from 'vitest'
import { Backlog } from '../../../../src/observability/inspect/backlog.js'

const textsOf = (most: number, mostChars = Infinity) => new Backlog<string>(most, mostChars, (text) => text.length)
const takeAll = (backlog: Backlog<string>): string[] => {
  const taken: string[] = []
  for (let item = backlog.take(); item !== undefined; item = backlog.take()) taken.push(item)
  return taken
}

it('N2: keeps as many items as it may, and drops the oldest of more', () => {
  const backlog = textsOf(2)
  for (const item of ['a', 'b']) backlog.add(item)
  expect([backlog.size, backlog.dropped]).toEqual([2, 0])
  backlog.add('c')
  expect([backlog.size, backlog.dropped, takeAll(backlog), backlog.size]).toEqual([2, 1, ['b', 'c'], 0])
  expect(backlog.take()).toBeUndefined()
})

it('N2: keeps as much text as it may, and always the latest item', () => {
  const backlog = textsOf(10, 6)
  for (const item of ['aaa', 'bbb']) backlog.add(item)
  expect([backlog.size, backlog.dropped]).toEqual([2, 0])
  backlog.add('c')
  expect([backlog.size, backlog.dropped]).toEqual([2, 1])
  backlog.add('d'.repeat(100))
  expect([backlog.size, backlog.dropped]).toEqual([1, 3])
  // What was taken, and what was cleared, makes room.
  expect(takeAll(backlog)).toEqual(['d'.repeat(100)])
  for (const item of ['aaa', 'bbb']) backlog.add(item)
  backlog.clear()
  expect([backlog.size, backlog.take()]).toEqual([0, undefined])
  for (const item of ['ccc', 'ddd']) backlog.add(item)
  expect([backlog.dropped, takeAll(backlog)]).toEqual([3, ['ccc', 'ddd']])
})

it('keeps its order over many items, and after it was cleared in their midst', () => {
  const backlog = textsOf(100_000)
  const names = Array.from({ length: 5000 }, (_, n) => `item ${n}`)
  const taken: (string | undefined)[] = []
  for (const name of names.slice(0, 3000)) backlog.add(name)
  for (let n = 0; n < 2500; n += 1) taken.push(backlog.take())
  for (const name of names.slice(3000)) backlog.add(name)
  expect(backlog.size).toBe(2500)
  taken.push(...takeAll(backlog))
  expect(taken).toEqual(names)
  for (const name of ['a', 'b', 'c']) backlog.add(name)
  backlog.take()
  backlog.clear()
  backlog.add('d')
  expect([backlog.size, backlog.take(), backlog.size]).toEqual([1, 'd', 0])
})
