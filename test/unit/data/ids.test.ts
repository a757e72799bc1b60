import { describe, expect, it } from 'vitest'
import { freshId, randomId } from '../../../src/data/ids.js'

describe('a new id', () => {
  it('A4: is the first of its source that is not in use', () => {
    const ids = ['a', 'b', 'c']
    const taken = new Set(['a', 'b'])
    expect(
      freshId(
        (prefix) => `${prefix}${ids.shift() ?? ''}`,
        '',
        (id) => taken.has(id),
      ),
    ).toBe('c')
    expect(ids).toEqual([])
  })

  it('A4: is refused after a hundred that are in use', () => {
    let asked = 0
    const createId = () => `same${(asked += 1) && ''}`
    expect(() => freshId(createId, 'x', () => true)).toThrow(
      expect.objectContaining({
        code: 'ID_REPEATS',
        message: 'createId("x") returned 100 ids that are all in use. It must return a new id at each call.',
      }),
    )
    expect(asked).toBe(100)
  })

  it('is the prefix and 16 random digits', () => {
    const ids = Array.from({ length: 100 }, () => randomId('name'))
    expect(new Set(ids).size).toBe(100)
    for (const id of ids) expect(id).toMatch(/^name-[0-9a-f]{16}$/)
  })
})
