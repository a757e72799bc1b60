import { expect, it, vi } from 'vitest'
import { BinaryHeap } from '../../../machines/binary-heap.js'
import { DueTimes } from '../../../machines/due-times.js'

it('keeps a bounded number of items for a key whose time is set again and again', () => {
  const sizes: number[] = []
  const push = Reflect.get(BinaryHeap.prototype, 'push') as (this: BinaryHeap<unknown>, item: unknown) => void
  const spied = vi.spyOn(BinaryHeap.prototype, 'push').mockImplementation(function (this: BinaryHeap<unknown>, item) {
    push.call(this, item)
    sizes.push(this.size)
  })
  const dues = new DueTimes<string>()
  try {
    for (let time = 0; time < 1000; time += 1) dues.set('a', -time)
    for (let time = 0; time < 1000; time += 1) dues.set('a', time)
  } finally {
    spied.mockRestore()
  }
  expect(Math.max(...sizes)).toBeLessThan(100)
  expect([dues.size, dues.nextKey, dues.next]).toEqual([1, 'a', 999])
})
