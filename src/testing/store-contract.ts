/** `storeContract`: test cases for stores. */
import { isDeepStrictEqual } from 'node:util'
import { openStore, type OpenStore, type RemoteStore } from '../store/open-store.js'
import type { Store, StoreChange, StoreContents, StoredTask, StoredTurn } from '../store/store.js'
import { STORE_TABLES, turnId } from '../store/store.js'
import type { ContractCase } from './contract-cases.js'

/** What a case of `storeContract` tests. */
export interface StoreSubject {
  /** The store. */
  readonly store: Store | RemoteStore
  /** Creates another store object with the same data, as another process would. */
  readonly again: () => Store | RemoteStore
  /** Removes the data of the store. */
  readonly dispose?: () => void | Promise<void>
}

/**
 * Test cases for a store of your own: `for (const { name, run } of storeContract(makeSubject)) test(name, run)`.
 * @param makeSubject creates a store that is empty and not open, for each case
 * @returns the cases, which work with any test runner
 */
export function storeContract(makeSubject: () => StoreSubject | Promise<StoreSubject>): readonly ContractCase[] {
  return Object.entries(CASES).map(([name, check]) => ({
    name,
    run: async () => {
      const subject = await makeSubject()
      const opened: OpenStore[] = []
      const open = async (store: Store | RemoteStore): Promise<OpenStore> => {
        const open = await openStore(store)
        opened.push(open)
        return open
      }
      try {
        await check({
          unopened: subject.store,
          open: () => open(subject.store),
          again: () => open(subject.again()),
        })
      } finally {
        for (const store of opened) await store.close()
        await subject.dispose?.()
      }
    },
  }))
}

/** The stores that a case uses. */
interface Checked {
  readonly unopened: Store | RemoteStore
  readonly open: () => Promise<OpenStore>
  /** Opens the same data, as another process would. */
  readonly again: () => Promise<OpenStore>
}

const CASES: Readonly<Record<string, (checked: Checked) => Promise<void>>> = {
  'is empty at first': async ({ open }) => {
    const store = await open()
    expectEqual(counts(store.open()), [0, 0, 0, 0, 0, 0, 0], 'the rows of a new store')
  },

  'returns what was written, when it is opened again': async ({ open, again }) => {
    const store = await open()
    await store.write([put(task('b', 2)), put(task('a', 1, { completedAt: 5, deadlineAt: 9, run: { goal: 'x' } }))])
    await store.write([
      { table: 'deliveries', put: { id: 'd', owner: 'main', state: 'sent', at: 1, taskIds: ['a', 'b'] } },
      {
        table: 'commandTasks',
        put: { id: 'c', instanceId: 'i', status: 'queued', seq: 1, createdAt: 1, record: {}, submission: { key: 'k' } },
      },
      { table: 'commands', put: { id: 'c/0', taskId: 'c', index: 0, outcome: { status: 'success' } } },
      { table: 'instances', put: { id: 'i', secretSha256: 'ab', registration: { tools: [] } } },
      { table: 'featureStates', put: { id: 'f/1', feature: 'f', data: { next: 1 } } },
    ])
    await store.close()
    const contents = await reopened(again)
    expectEqual(
      contents.tasks,
      [task('a', 1, { completedAt: 5, deadlineAt: 9, run: { goal: 'x' } }), task('b', 2)],
      'tasks',
    )
    expectEqual(contents.featureStates, [{ id: 'f/1', feature: 'f', data: { next: 1 } }], 'featureStates')
    expectEqual(counts(contents), [2, 1, 1, 1, 1, 1, 0], 'the rows of each table')
  },

  'replaces a row with the same id': async ({ open, again }) => {
    const store = await open()
    await store.write([put(task('a', 1))])
    await store.write([put(task('a', 2, { status: 'completed', delivery: 'owed', completedAt: 7 }))])
    await store.close()
    const { tasks } = await reopened(again)
    expectEqual(tasks, [task('a', 2, { status: 'completed', delivery: 'owed', completedAt: 7 })], 'tasks')
  },

  'removes rows, and ignores the removal of ids that it does not have': async ({ open, again }) => {
    const store = await open()
    await store.write([put(task('a', 1)), put(task('b', 2))])
    await store.write([
      { table: 'tasks', remove: 'a' },
      { table: 'tasks', remove: 'none' },
      { table: 'deliveries', remove: 'none' },
    ])
    await store.close()
    expectEqual((await reopened(again)).tasks, [task('b', 2)], 'tasks')
  },

  'applies the changes of one write in their order': async ({ open, again }) => {
    const store = await open()
    await store.write([put(task('a', 1)), { table: 'tasks', remove: 'a' }, put(task('a', 3)), put(task('a', 4))])
    await store.close()
    expectEqual((await reopened(again)).tasks, [task('a', 4)], 'tasks')
  },

  'applies writes in their order, even if one begins before another has ended': async ({ open, again }) => {
    const store = await open()
    const first = store.write([put(task('a', 1)), put(task('b', 2))])
    const second = store.write([put(task('a', 3)), { table: 'tasks', remove: 'b' }, put(task('c', 4))])
    await Promise.all([first, second])
    await store.close()
    expectEqual((await reopened(again)).tasks, [task('a', 3), task('c', 4)], 'tasks')
  },

  'writes all changes of a batch, or none': async ({ open, again }) => {
    const store = await open()
    await store.write([put(task('a', 1))])
    const unwritable: StoreChange = put(task('c', 3, { record: { value: 1n } }))
    await expectRejection(
      () => store.write([put(task('b', 2)), { table: 'tasks', remove: 'a' }, unwritable]),
      'a write of a value that is not JSON',
    )
    await store.write([put(task('d', 4))])
    await store.close()
    expectEqual((await reopened(again)).tasks, [task('a', 1), task('d', 4)], 'tasks')
  },

  'keeps every text unchanged': async ({ open, again }) => {
    const texts = [
      '',
      'a\0b',
      'a\0c',
      '"quoted"',
      "it's; DROP TABLE tasks",
      '\ud83d\ude00',
      'line\nline',
      '\\u0000',
      '%_',
    ]
    const rows = texts.map((text, at) => task(`id ${text}`, at, { owner: text, record: { text, [text]: at } }))
    const store = await open()
    await store.write(rows.map(put))
    await store.close()
    expectEqual((await reopened(again)).tasks, rows, 'tasks')
  },

  'keeps turns and reads the last ones of an owner, if it has `turns`': async ({ open, again }) => {
    const store = await open()
    if (store.turns === undefined) return
    // The last name is one that an index of a database may not hold.
    const owners = ['a', 'a/1', 'b\0', 'n'.repeat(3000)]
    const turns = owners.flatMap((owner) => Array.from({ length: 11 }, (_, at) => turn(owner, at + 1)))
    await store.write(turns.map((put): StoreChange => ({ table: 'turns', put })))
    const read = async (): Promise<void> => {
      for (const owner of owners) {
        const own = turns.filter((one) => one.owner === owner)
        expectEqual(await store.turns?.read(owner), own, 'the turns of an owner')
        expectEqual(await store.turns?.read(owner, 2), own.slice(-2), 'the last turns of an owner')
      }
      expectEqual(await store.turns?.read('nobody', 2), [], 'the turns of an unknown owner')
      expectEqual((await store.turns?.read())?.length, turns.length, 'the number of all turns')
    }
    await read()
    await store.close()
    const later = await again()
    expectEqual(counts(later.open()), [0, 0, 0, 0, 0, 0, 0], 'the rows that opening reads')
    await later.write([{ table: 'turns', remove: turnId('a', 1) }, put(task('a', 1))])
    expectEqual(await later.turns?.read('a', 20), turns.slice(1, 11), 'the turns after a removal')
    await later.close()
  },

  'can be opened by only one owner at a time': async ({ open, again }) => {
    const store = await open()
    await expectRejection(again, 'opening a store that is open already')
    await store.write([put(task('a', 1))])
    await store.close()
    expectEqual((await reopened(again)).tasks, [task('a', 1)], 'tasks')
  },

  'accepts no write unless it is open': async ({ unopened, open, again }) => {
    if ('write' in unopened) await expectRejection(() => unopened.write([put(task('a', 1))]), 'a write before open')
    const store = await open()
    await store.close()
    await store.close()
    await expectRejection(() => store.write([put(task('a', 1))]), 'a write after close')
    expectEqual((await reopened(again)).tasks, [], 'tasks')
  },
}

const turn = (owner: string, seq: number): StoredTurn => ({
  id: turnId(owner, seq),
  owner,
  seq,
  at: seq,
  messages: [{ role: 'user', content: `\0 ${seq}` }],
})

function task(id: string, seq: number, fields: Partial<StoredTask> = {}): StoredTask {
  return {
    id,
    owner: 'main',
    status: 'running',
    delivery: 'none',
    attempt: 1,
    seq,
    launchedAt: seq,
    record: { id },
    ...fields,
  }
}

const put = (row: StoredTask): StoreChange => ({ table: 'tasks', put: row })

const counts = (contents: StoreContents): number[] => STORE_TABLES.map((table) => contents[table].length)

async function reopened(again: Checked['again']): Promise<StoreContents> {
  const store = await again()
  try {
    return store.open()
  } finally {
    await store.close()
  }
}

function expectEqual(actual: unknown, expected: unknown, what: string): void {
  if (isDeepStrictEqual(actual, expected)) return
  throw new Error(`${what}: got ${JSON.stringify(actual)}, expected ${JSON.stringify(expected)}`)
}

/** Expects that `write` returns a promise, and that the promise rejects. */
async function expectRejection(write: () => Promise<unknown>, what: string): Promise<void> {
  let written: Promise<unknown>
  try {
    written = write()
  } catch (error) {
    throw new Error(`${what} must reject, and not throw`, { cause: error })
  }
  try {
    await written
  } catch {
    return
  }
  throw new Error(`${what} must reject`)
}
