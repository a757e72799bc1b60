import { expect, it } from 'vitest'
import { RecentIds } from '../../../src/bullmq/recent-ids.js'

it('W1: an id is new once, and the oldest are forgotten beyond the limit', () => {
  const ids = new RecentIds(2)
  expect(['a', 'b', 'a'].map((id) => ids.add(id))).toEqual([true, true, false])
  expect(ids.add('c')).toBe(true)
  expect([ids.add('b'), ids.add('c'), ids.add('a')]).toEqual([false, false, true])
  expect(ids.add('b')).toBe(true)
})
