/** What the store in memory says, and what a copy of it has. */
import { memoryStore, type StoreChange } from 'agent-tasks/store'
import { expect, it } from 'vitest'
import { SWEEP } from '../../../src/store/history/task-history.js'

const instance = (id: string, registration: unknown = {}): StoreChange => ({
  table: 'instances',
  put: { id, secretSha256: 'ab', registration } as never,
})

it('is open for one owner, and says so to the next one', () => {
  const store = memoryStore()
  store.open()
  expect(() => store.open()).toThrow(
    expect.objectContaining({
      code: 'STORE_IN_USE',
      message: 'The memory store is in use by another process. End it, or use another file.',
      pid: undefined,
    }) as Error,
  )
  store.close()
  expect(store.open().instances).toEqual([])
})

it('takes nothing when it is not open, and says so', async () => {
  const store = memoryStore()
  const isClosed = expect.objectContaining({ code: 'STORE_CLOSED', message: 'The memory store is not open.' }) as Error
  await expect(store.write([instance('a')])).rejects.toThrow(isClosed)
  store.open()
  store.close()
  await expect(store.write([instance('a')])).rejects.toThrow(isClosed)
  expect(store.contents().instances).toEqual([])
})

it('names the row that JSON cannot hold, and writes nothing of its batch', async () => {
  const store = memoryStore()
  store.open()
  const write = (): Promise<void> => store.write([instance('a'), instance('bad', 1n)])
  await expect(write()).rejects.toThrow(
    /^The memory store: the row "bad" of table instances cannot be written \(.*BigInt/,
  )
  const row = { table: 'instances', id: 'bad' }
  await expect(write()).rejects.toThrow(expect.objectContaining({ code: 'STORE_FAILED', row }) as Error)
  expect(store.contents().instances).toEqual([])
})

it('a copy has what was stored when it was made, has no owner, and goes its own way', async () => {
  const store = memoryStore()
  store.open()
  await store.write([instance('a')])
  const copy = store.copy()
  await store.write([instance('b'), { table: 'instances', remove: 'a' }])
  expect(copy.open().instances.map(({ id }) => id)).toEqual(['a'])
  await copy.write([instance('c')])
  expect(copy.contents().instances.map(({ id }) => id)).toEqual(['a', 'c'])
  expect(store.contents().instances.map(({ id }) => id)).toEqual(['b'])
})

it('keeps ended tasks in its history for 7 days, by the time of now', async () => {
  const { history } = memoryStore()
  const now = Date.now()
  const task = { kind: 'task', owner: 'main', name: 'a', status: 'completed', record: {} } as const
  const days = (count: number): number => count * 24 * 60 * 60 * 1000
  await history?.add([
    ...Array.from({ length: SWEEP.every }, (_, at) => ({ ...task, id: String(at), completedAt: now })),
    { ...task, id: 'past', completedAt: now - days(8) },
    { ...task, id: 'recent', completedAt: now - days(6) },
  ])
  const found = ['0', 'past', 'recent'].map(async (id) => (await history?.find('task', id))?.id)
  expect(await Promise.all(found)).toEqual(['0', undefined, 'recent'])
})
