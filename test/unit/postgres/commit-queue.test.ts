import { expect, it } from 'vitest'
import { commitQueue } from '../../../src/postgres/commit-queue.js'
import type { StoreChange } from '../../../src/store/store.js'

const change = (id: string): StoreChange => ({ table: 'tasks', remove: id })
const idsOf = (changes: readonly StoreChange[]): string[] =>
  changes.map((each) => ('remove' in each ? each.remove : ''))

it('writes what arrives during a write as one write, in order', async () => {
  const written: string[][] = []
  const ends: (() => void)[] = []
  const write = commitQueue((changes) => {
    written.push(idsOf(changes))
    return new Promise((resolve) => ends.push(resolve))
  })
  const all = ['a', 'b', 'c'].map((id) => write([change(id)]))
  expect(written).toEqual([['a']])
  ends.shift()?.()
  await all[0]
  await Promise.resolve()
  expect(written).toEqual([['a'], ['b', 'c']])
  ends.shift()?.()
  await Promise.all(all)
  const later = write([change('d')])
  expect(written.at(-1)).toEqual(['d'])
  ends.shift()?.()
  await later
})

it('writes those of each caller alone when all together are refused', async () => {
  const written: string[][] = []
  const write = commitQueue(async (changes) => {
    await Promise.resolve()
    if (idsOf(changes).includes('bad')) throw new Error('refused')
    written.push(idsOf(changes))
  })
  const ends = await Promise.allSettled([['a'], ['b'], ['bad'], ['c']].map((ids) => write(ids.map(change))))
  expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
  expect(written).toEqual([['a'], ['b'], ['c']])
})
