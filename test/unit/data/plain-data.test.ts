/** Frozen copies: special cases. `test/model/plain-data.property.ts` has arbitrary values. */
import { describe, expect, it, vi } from 'vitest'
import { toPlainData } from '../../../src/data/plain-data.js'

const named = (key: string, value: unknown): object =>
  Object.defineProperty({}, key, { value, enumerable: true, configurable: true, writable: true })

describe('a field', () => {
  it('called __proto__ stays a field', () => {
    const copy = toPlainData(JSON.parse('{"__proto__":{"x":1},"y":2}')) as object
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype)
    expect(JSON.stringify(copy)).toBe('{"__proto__":{"x":1},"y":2}')
  })

  it('of a map called __proto__ stays a field, and the last of two with one name counts', () => {
    const copy = toPlainData(
      new Map<unknown, unknown>([
        ['__proto__', 1],
        [{ toString: () => '__proto__' }, 2],
        [1, 'a'],
        ['1', 'b'],
      ]),
    )
    expect(JSON.stringify(copy)).toBe('{"1":"b","__proto__":2}')
  })

  it.each(['valueOf', 'toString', 'constructor', 'hasOwnProperty'])(
    'called %s, which every object inherits, is defined, not assigned',
    (key) => {
      // Where prototypes are frozen, an assignment would throw.
      const inherited = Object.getOwnPropertyDescriptor(Object.prototype, key)!
      const assigned = vi.fn()
      Object.defineProperty(Object.prototype, key, {
        configurable: true,
        get: () => inherited.value as unknown,
        set: assigned,
      })
      try {
        const copy = toPlainData(named(key, 1)) as object
        expect(Object.getOwnPropertyDescriptor(copy, key)?.value).toBe(1)
        expect(assigned).not.toHaveBeenCalled()
      } finally {
        Object.defineProperty(Object.prototype, key, inherited)
      }
    },
  )
})

describe('an object that occurs more than once', () => {
  it('is copied once', () => {
    const shared = { n: 1 }
    const [a, b] = toPlainData([shared, { shared }]) as [object, { shared: object }]
    expect(b.shared).toBe(a)
    expect(a).not.toBe(shared)
  })

  it('is marked as circular only inside itself', () => {
    const self: Record<string, unknown> = {}
    self['self'] = self
    expect(toPlainData([self, self])).toEqual([{ self: '[circular]' }, { self: '[circular]' }])
  })

  it('is marked as unreadable each time', () => {
    const broken = {
      toJSON: () => {
        throw new Error('no')
      },
    }
    expect(toPlainData([broken, broken])).toEqual(['[unreadable: no]', '[unreadable: no]'])
  })

  it('has its toJSON called once, even if that returns undefined', () => {
    const toJSON = vi.fn(() => undefined)
    const nothing = { toJSON }
    expect(toPlainData([nothing, nothing])).toEqual([undefined, undefined])
    expect(toJSON).toHaveBeenCalledOnce()
  })

  it('is copied again by the next call', () => {
    const value = { n: 1 }
    const before = toPlainData(value)
    value.n = 2
    expect(before).toEqual({ n: 1 })
    expect(toPlainData(value)).toEqual({ n: 2 })
  })
})
