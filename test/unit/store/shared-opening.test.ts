/** One store for the background tasks and the command tasks of a process. */
import { memoryStore, StoreInUseError, type Store } from 'agent-tasks/store'
import { expect, it } from 'vitest'
import { openStore } from '../../../src/store/shared-opening.js'

async function setUp() {
  const store = memoryStore()
  store.open()
  await store.write([{ table: 'instances', put: { id: 'i' } as never }])
  store.close()
  const calls: string[] = []
  const counted: Store = {
    ...store,
    open: () => {
      const contents = store.open()
      calls.push('open')
      return contents
    },
    close: () => {
      calls.push('close')
      store.close()
    },
  }
  return { store: counted, calls }
}

it('is opened once for both, each gets its tables, and the last one closes it', async () => {
  const { store, calls } = await setUp()
  const [tasks, commands] = [openStore(store, 'async tasks'), openStore(store, 'command tasks')]
  expect(tasks.contents).toEqual({ tasks: [], deliveries: [] })
  expect(commands.contents).toEqual({ commandTasks: [], commands: [], instances: [{ id: 'i' }] })
  expect(calls).toEqual(['open'])
  tasks.close()
  tasks.close()
  expect(calls).toEqual(['open'])
  commands.close()
  commands.close()
  expect(calls).toEqual(['open', 'close'])
})

it('is refused to a second one of a kind, also after the first has ended while the other goes on', async () => {
  const { store, calls } = await setUp()
  const tasks = openStore(store, 'async tasks')
  expect(() => openStore(store, 'async tasks')).toThrow(StoreInUseError)
  const commands = openStore(store, 'command tasks')
  tasks.close()
  // What it held of them is out of date.
  expect(() => openStore(store, 'async tasks')).toThrow(StoreInUseError)
  commands.close()
  expect(calls).toEqual(['open', 'close'])
  const again = openStore(store, 'async tasks')
  expect(calls).toEqual(['open', 'close', 'open'])
  again.close()
})

it('that does not know that it is open is refused in other words', async () => {
  const { store } = await setUp()
  const contents = store.open()
  const careless: Store = { ...store, open: () => contents }
  const tasks = openStore(careless, 'async tasks')
  expect(() => openStore(careless, 'async tasks')).toThrow('The store is in use by another process.')
  tasks.close()
})

it('that cannot be opened is not kept as open', async () => {
  const { store } = await setUp()
  let isBroken = true
  const broken: Store = {
    ...store,
    open: () => {
      if (isBroken) throw new Error('broken')
      return store.open()
    },
  }
  expect(() => openStore(broken, 'async tasks')).toThrow('broken')
  isBroken = false
  openStore(broken, 'async tasks').close()
})
