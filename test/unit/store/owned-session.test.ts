import { expect, it } from 'vitest'
import { memoryStore, openStore, StoreError } from '../../../src/store/index.js'
import { ownedSession } from '../../../src/store/sessions/owned-session.js'
import { startMcpStdioServer } from '../../../src/mcp/index.js'
import { storedTask } from './stored-task.js'

/** A session on a store that holds tasks which have ended: `old`, which is not kept, and `told`, which is in a message that is not confirmed. */
async function session() {
  const memory = memoryStore()
  const store = await openStore(memory)
  await store.write([
    { table: 'tasks', put: storedTask('old') },
    { table: 'tasks', put: storedTask('new') },
    { table: 'tasks', put: storedTask('told') },
    { table: 'deliveries', put: { id: 'd', owner: 'main', state: 'sent', at: 1, taskIds: ['told'] } },
  ])
  await store.close()
  return { memory, owned: ownedSession(await openStore(memory), ({ id }) => id === 'new') }
}

const idsIn = (memory: ReturnType<typeof memoryStore>): string[] => memory.contents().tasks.map(({ id }) => id)

it('takes over what is kept or not confirmed, and removes the rest', async () => {
  const { memory, owned } = await session()
  expect(owned.open().tasks.map(({ id }) => id)).toEqual(['new', 'told'])
  expect([...owned.earlierTasks]).toEqual(['new', 'told'])
  await owned.write([{ table: 'tasks', put: storedTask('own') }])
  expect(idsIn(memory)).toEqual(['new', 'told', 'own'])
  expect(owned.earlierTasks.has('own')).toBe(false)
})

it('can be used again when it is closed', async () => {
  const { memory, owned } = await session()
  owned.open()
  await owned.close()
  await (await openStore(memory)).close()
})

it('an MCP server takes an open store, and refuses what needs files', async () => {
  const surviving = { name: 'a', description: 'A', command: 'true', survivesHost: true }
  const store = await openStore(memoryStore())
  expect(() => startMcpStdioServer({ config: { subagents: [surviving] }, store })).toThrow(
    'Setting subagents[0].survivesHost: got true, expected false, because this store has no folder for the files of programs.',
  )
  expect(() => startMcpStdioServer({ config: { store: 'postgres://user:secret@db/x' } })).toThrow(
    'Setting store: got "(a URL)", expected a folder; open a store on a server first',
  )
  expect(() => startMcpStdioServer({ store: 5 as unknown as string })).toThrow(/store: got 5, expected a string/)
})

it('is open before its server checks it, which changes nothing', async () => {
  const { memory, owned } = await session()
  owned.check()
  expect(idsIn(memory)).toEqual(['old', 'new', 'told'])
  expect(owned.open().tasks.map(({ id }) => id)).toEqual(['new', 'told'])
  await owned.close()
})

it('starts, and owes the same, when what is not kept can neither be removed nor added to the history', async () => {
  const memory = memoryStore()
  memory.open()
  await memory.write([
    { table: 'tasks', put: storedTask('old') },
    { table: 'tasks', put: storedTask('new') },
  ])
  const open = await openStore(memory.copy())
  let refused = 0
  // No spy, because it would handle the rejection.
  const refuse = (): Promise<never> => {
    refused += 1
    return Promise.reject(new StoreError('STORE_UNAVAILABLE', 'no connection'))
  }
  const history = { ...memory.history!, add: refuse }
  const owned = ownedSession({ ...open, write: refuse, history }, ({ id }) => id === 'new')
  expect(owned.open().tasks.map(({ id }) => id)).toEqual(['new'])
  await new Promise((resolve) => setImmediate(resolve))
  expect(refused).toBe(2)
  await owned.close()
})
