/** One store for the background tasks and the command tasks of a process. */
import { memoryStore, type Store } from 'agent-tasks/store'
import { expect, it } from 'vitest'
import { useStore } from '../../../src/store/shared-opening.js'
import { StoreInUseError } from '../../../src/store/store-errors.js'

const state = { id: 'f/1', feature: 'f', data: {} }

async function setUp() {
  const store = memoryStore()
  store.open()
  await store.write([
    { table: 'instances', put: { id: 'i' } as never },
    { table: 'featureStates', put: state },
  ])
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
  const [tasks, commands] = [useStore(store, 'async tasks'), useStore(store, 'command tasks')]
  expect(tasks.contents).toEqual({ tasks: [], deliveries: [], featureStates: [state] })
  expect(commands.contents).toEqual({
    commandTasks: [],
    commands: [],
    instances: [{ id: 'i' }],
    featureStates: [state],
  })
  expect(calls).toEqual(['open'])
  await tasks.close()
  await tasks.close()
  expect(calls).toEqual(['open'])
  await commands.close()
  await commands.close()
  expect(calls).toEqual(['open', 'close'])
})

it('is refused to a second one of a kind, also after the first has ended while the other goes on', async () => {
  const { store, calls } = await setUp()
  const tasks = useStore(store, 'async tasks')
  expect(() => useStore(store, 'async tasks')).toThrow(StoreInUseError)
  const commands = useStore(store, 'command tasks')
  await tasks.close()
  // What it held of them is out of date.
  expect(() => useStore(store, 'async tasks')).toThrow(StoreInUseError)
  await commands.close()
  expect(calls).toEqual(['open', 'close'])
  const again = useStore(store, 'async tasks')
  expect(calls).toEqual(['open', 'close', 'open'])
  await again.close()
})

it('that does not know that it is open is refused in other words', async () => {
  const { store } = await setUp()
  const contents = store.open()
  const careless: Store = { ...store, open: () => contents }
  const tasks = useStore(careless, 'async tasks')
  expect(() => useStore(careless, 'async tasks')).toThrow('The store is in use by another process.')
  await tasks.close()
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
  expect(() => useStore(broken, 'async tasks')).toThrow('broken')
  isBroken = false
  await useStore(broken, 'async tasks').close()
})
