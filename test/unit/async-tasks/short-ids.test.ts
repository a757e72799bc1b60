/** Short ids are unique: what a list shows identifies a task. */
import { fc } from '@fast-check/vitest'
import { describe, expect, it } from 'vitest'
import { shortIds } from '../../../src/features/task-ids/short-ids.js'
import { checkProperty } from '../../support/property.js'

describe('short ids', () => {
  it('show eight characters where those are enough', () => {
    expect([...shortIds(['1234567890', 'abcdefghij']).values()]).toEqual(['12345678', 'abcdefgh'])
  })

  it('show the first character in which two ids differ', () => {
    expect(shortIds(['researcher-a1', 'researcher-b2'])).toEqual(
      new Map([
        ['researcher-a1', 'researcher-a'],
        ['researcher-b2', 'researcher-b'],
      ]),
    )
  })

  it('compare an id with all others, in any order', () => {
    const short = shortIds(['researcher-b2', 'other-000001', 'researcher-a1'])
    expect([...short.values()].sort()).toEqual(['other-00', 'researcher-a', 'researcher-b'])
  })

  it('show a whole id that is shorter than eight characters, or a prefix of another', () => {
    const short = shortIds(['ab', 'task-0001', 'task-0001-again'])
    expect(short.get('ab')).toBe('ab')
    expect(short.get('task-0001')).toBe('task-0001')
    expect(short.get('task-0001-again')).toBe('task-0001-')
  })

  it('count an id that is given twice once', () => {
    expect([...shortIds(['1234567890', '1234567890'])]).toEqual([['1234567890', '12345678']])
  })

  it('never end inside a surrogate pair', () => {
    expect(shortIds(['1234567😀9']).get('1234567😀9')).toBe('1234567😀')
  })

  it('are empty without ids', () => {
    expect(shortIds([]).size).toBe(0)
  })

  it('are prefixes of their ids that match no other id, unless they are a whole id', async () => {
    const id = fc.string({ unit: fc.constantFrom('a', 'b', '-', '😀'), minLength: 1, maxLength: 24 })
    await checkProperty(
      'short ids are unique prefixes',
      fc.property(fc.uniqueArray(id, { maxLength: 12 }), (ids) => {
        for (const [whole, short] of shortIds(ids)) {
          expect(whole.startsWith(short)).toBe(true)
          expect(short.length).toBeGreaterThanOrEqual(Math.min(8, whole.length))
          expect(short).not.toMatch(/[\uD800-\uDBFF]$/)
          if (short !== whole) expect(ids.filter((other) => other.startsWith(short))).toEqual([whole])
        }
      }),
    )
  })
})
