/** What the processes of a session do with each other's files, and in which order. */
import { expect, it } from 'vitest'
import { memoryStore, StoreError, type MemoryStore, type Store } from '../../../src/store/index.js'
import type { FileStore, StoreChange } from '../../../src/store/store.js'
import { sessionStore, type SessionFiles } from '../../../src/store/sessions/session-store.js'
import { storedTask } from './stored-task.js'
import type { StoredTask } from '../../../src/store/store.js'

/** Files in memory. `log` has what was done to them, in order; `fail` makes one step fail. */
function setUp() {
  const stores = new Map<number, MemoryStore>()
  const log: string[] = []
  let locks = 0
  let fail: string | undefined
  const step = (what: string): void => {
    log.push(what)
    if (what === fail) throw new StoreError('STORE_DAMAGED', `cannot ${what}`)
  }
  const files: SessionFiles = {
    directory: undefined,
    lock: () => {
      locks += 1
      return () => (locks -= 1)
    },
    numbers: () => [...stores.keys()].sort((a, b) => a - b),
    nextNumber: () => Math.max(0, ...stores.keys()) + 1,
    store: (number): FileStore => {
      const memory = stores.get(number) ?? memoryStore()
      stores.set(number, memory)
      const writeNow = (changes: readonly StoreChange[]): void => {
        step(`write ${number}: ${changes.map((one) => ('put' in one ? `+${one.put.id}` : `-${one.remove}`)).join(' ')}`)
        void memory.write(changes)
      }
      return {
        ...memory,
        open: () => {
          step(`open ${number}`)
          return memory.open()
        },
        write: async (changes) => writeNow(changes),
        writeNow,
        close: () => {
          step(`close ${number}`)
          memory.close()
        },
      }
    },
    remove: (number) => {
      expect(locks).toBe(1)
      step(`remove ${number}`)
      stores.delete(number)
    },
  }
  /** A file that a process has left. */
  const leave = async (number: number, ...changes: Parameters<Store['write']>[0][number][]): Promise<void> => {
    const memory = memoryStore()
    memory.open()
    await memory.write(changes)
    memory.close()
    stores.set(number, memory)
  }
  return { files, stores, log, leave, locks: () => locks, failAt: (what: string | undefined) => (fail = what) }
}

const put = (id: string, more: Partial<StoredTask> = {}) => ({ table: 'tasks', put: storedTask(id, more) }) as const
const delivery = (owner: string, ...taskIds: string[]) =>
  ({ table: 'deliveries', put: { id: 'd', owner, state: 'sent', at: 1, taskIds } }) as const
const kept = () => true

it('K9: moves what others have left: it is written here before it is removed there, and then the file is', async () => {
  const { files, stores, log, leave, locks } = setUp()
  await leave(1, put('a', { seq: 2 }))
  await leave(2, put('b', { seq: 1 }))
  const store = sessionStore(files, kept)
  expect(store.open().tasks.map(({ id }) => id)).toEqual(['b', 'a'])
  expect(log).toEqual(['open 1', 'open 2', 'write 1: +b +a', 'write 2: -b', 'close 2', 'remove 2'])
  expect([...store.earlierTasks].sort()).toEqual(['a', 'b'])
  expect([[...stores.keys()], locks()]).toEqual([[1], 0])
  store.close()
})

it('K9: writes nothing when it adopts one file, and removes what need not be kept', async () => {
  const { files, log, leave } = setUp()
  await leave(1, put('a'), put('b'), put('c', { status: 'running' }), delivery('main', 'b'))
  sessionStore(files, kept).open()
  expect(log).toEqual(['open 1'])
  const other = setUp()
  await other.leave(1, put('a'), put('b'), put('c', { status: 'running' }), delivery('main', 'b'))
  const store = sessionStore(other.files, () => false)
  expect(store.open().tasks.map(({ id }) => id)).toEqual(['b', 'c'])
  expect(other.log).toEqual(['open 1', 'write 1: -a'])
  expect([...store.earlierTasks]).toEqual(['b', 'c'])
})

it('K9: of two rows with one id the later change counts, and of equal ones the first', async () => {
  const { files, leave } = setUp()
  await leave(
    1,
    put('a', { seq: 1, owner: 'first' }),
    put('b', { seq: 5, owner: 'first' }),
    put('c', { owner: 'first' }),
    delivery('first'),
  )
  await leave(
    2,
    put('a', { seq: 2, owner: 'second' }),
    put('b', { seq: 4, owner: 'second' }),
    put('c', { owner: 'second' }),
    delivery('second'),
  )
  const { tasks, deliveries } = sessionStore(files, kept).open()
  expect(Object.fromEntries(tasks.map(({ id, owner }) => [id, owner]))).toEqual({ a: 'second', b: 'first', c: 'first' })
  expect(deliveries.map(({ owner }) => owner)).toEqual(['first'])
})

it.each([
  ['a file that cannot be read', 'open 2', ['close 1']],
  ['a write that fails', 'write 1: +a +b', ['close 1', 'close 2', 'close 3']],
  ['a file that cannot be removed', 'remove 2', ['close 1', 'close 2', 'close 3']],
])('K9: %s leaves no file possessed, each is closed once, and the next one finds all', async (_what, step, closed) => {
  const { files, stores, log, leave, locks, failAt } = setUp()
  await leave(1, put('a'))
  await leave(2, put('b', { seq: 2 }))
  await leave(3)
  failAt(step)
  const store = sessionStore(files, kept)
  expect(() => store.open()).toThrow(`cannot ${step}`)
  expect(log.filter((what) => what.startsWith('close')).sort()).toEqual(closed)
  expect(locks()).toBe(0)
  failAt(undefined)
  expect(store.open().tasks.map(({ id }) => id)).toEqual(['a', 'b'])
  store.close()
  expect([...stores.keys()]).toEqual([1])
})

it('K9: removes its file when it is empty, after it was closed; with a row it stays, and a second close does nothing', async () => {
  const { files, stores, log, locks } = setUp()
  const store = sessionStore(files, kept)
  store.open()
  expect(() => store.open()).toThrow('in use')
  await store.write([put('a')])
  await store.write([{ table: 'tasks', remove: 'a' }])
  log.length = 0
  store.close()
  store.close()
  expect([log, locks(), stores.size]).toEqual([['close 1', 'remove 1'], 0, 0])
  store.open()
  await store.write([put('a')])
  store.close()
  expect([...stores.keys()]).toEqual([1])
  await expect(store.write([put('b')])).rejects.toThrow('not open')
})

it('has the name of the file that the process owns, while it owns one', () => {
  const { files } = setUp()
  const named: SessionFiles = { ...files, store: (number) => ({ ...files.store(number), name: `file ${number}` }) }
  const store = sessionStore(named, kept)
  expect(store.name).toBeUndefined()
  store.open()
  expect(store.name).toBe('file 1')
  store.close()
})
