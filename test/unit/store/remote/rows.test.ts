import { expect, it } from 'vitest'
import { keyOf, toContents, toRows, type DatabaseRow } from '../../../../src/store/remote/rows.js'
import type { StoreChange } from '../../../../src/store/store.js'

const most = { row: 2000, statement: 320 }

const put = (id: string, secretSha256 = 'x'): StoreChange => ({
  table: 'instances',
  put: { id, secretSha256, registration: {} },
})

it('an id is its own key up to 1000 bytes, and a longer one is replaced by its SHA-256', () => {
  expect(keyOf('a"b\0')).toBe(String.raw`a\"b\u0000`)
  expect(keyOf('x'.repeat(1000))).toBe('x'.repeat(1000))
  expect(keyOf('語'.repeat(333))).toBe('語'.repeat(333))
  expect(keyOf('x'.repeat(1001))).toMatch(/^sha256:[\da-f]{64}$/)
  expect(keyOf('語'.repeat(334))).not.toBe(keyOf('話'.repeat(334)))
})

it('a row with a long id is read back, also one that an earlier version wrote', () => {
  const id = '語'.repeat(500)
  const [written] = toRows([put(id)], 'store').parts.flat()
  expect(written?.id).toBe(keyOf(id))
  for (const key of [keyOf(id), id]) {
    const row = { ...written, id: key } as DatabaseRow
    expect(toContents([row], 'store').instances).toMatchObject([{ id }])
    expect(() => toContents([{ ...row, id: 'another' }], 'store')).toThrow('damaged')
  }
})

it('splits a large write into parts of limited size, and keeps a larger row alone', () => {
  const rows = [put('a', 'x'.repeat(150)), put('b', 'x'.repeat(150)), put('c'), put('d', 'é'.repeat(300)), put('e')]
  const { parts, removed } = toRows([...rows, { table: 'instances', remove: 'f' }], 'store', most)
  expect(parts.map((part) => part.map(({ id }) => id))).toEqual([['a'], ['b', 'c'], ['d'], ['e']])
  expect(removed).toEqual([{ kind: 'instances', id: 'f' }])
  expect(toRows([], 'store').parts).toHaveLength(1)
})

it('refuses a row that the server cannot hold, and names it', () => {
  const change = put('large', 'é'.repeat(1000))
  expect(() => toRows([put('a'), change], 'store', most)).toThrow(
    expect.objectContaining({ code: 'STORE_FAILED', row: { table: 'instances', id: 'large' } }) as Error,
  )
})
