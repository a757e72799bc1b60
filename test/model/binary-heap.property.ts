/** The heap against a sorted array. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { BinaryHeap } from '../../machines/binary-heap.js'

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ push: fc.integer({ min: 0, max: 20 }) }) },
  { weight: 2, arbitrary: fc.constant('pop' as const) },
)

export const binaryHeapProperty = () =>
  fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
    const heap = new BinaryHeap<{ readonly key: number }>((a, b) => a.key < b.key)
    let model: number[] = []
    for (const each of steps) {
      if (each === 'pop') {
        const popped = heap.pop()?.key
        assert.equal(popped, model[0])
        model = model.slice(1)
      } else {
        heap.push({ key: each.push })
        model = [...model, each.push].sort((a, b) => a - b)
      }
      assert.equal(heap.size, model.length)
      assert.equal(heap.peek()?.key, model[0])
    }
    while (heap.size > 0) assert.equal(heap.pop()?.key, model.shift())
    assert.deepStrictEqual(model, [])
  })
