/** The store in PostgreSQL on servers with other settings than ours: their language, encoding, isolation and durability, a replica, an outage. */
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createAgentTasks, functionRunner } from '../../src/index.js'
import { postgresStore, readPostgresStore } from '../../src/store/postgres/index.js'
import { openStore, type StoreChange } from '../../src/store/index.js'
import { startCuttingProxy } from '../support/cutting-proxy.js'
import { startPostgres, type PostgresServer } from '../support/postgres-server.js'
import type { PostgresStoreOptions } from '../../src/store/postgres/postgres-store.js'
import type { OpenStore } from '../../src/store/open-store.js'

let server: PostgresServer
let schemas = 0

beforeAll(async () => {
  server = await startPostgres({}, { language: 'de' })
})
afterAll(() => server.close())

const freshSchema = (): string => `test_${(schemas += 1)}`

/** The URL of the server with settings of a session. */
const withSettings = (settings: string): string =>
  `${server.url}?options=${encodeURIComponent(
    settings
      .split(',')
      .map((setting) => `-c ${setting}`)
      .join(' '),
  )}`

const storeAt = (options: Partial<PostgresStoreOptions> = {}) =>
  postgresStore({ connection: server.url, leaseMs: 500, ...options })

const put = (id: string, secretSha256 = 'x'): StoreChange => ({
  table: 'instances',
  put: { id, secretSha256, registration: {} },
})

const idsIn = (open: OpenStore): string[] => open.open().instances.map(({ id }) => id)

/** A host with one subagent. What it reports is in `reported`. */
function hostOn(store: OpenStore) {
  const reported: unknown[] = []
  const tasks = createAgentTasks({
    store,
    onError: (error) => reported.push((error as { readonly code?: unknown }).code),
    subagents: { echo: ({ goal }) => Promise.resolve({ final_message: goal }) },
  })
  onTestFinished(() => tasks.dispose())
  return { tasks, reported }
}

describe('a server that speaks German', () => {
  it('K1: refuses a launch while its role has no right, and goes on when it has it again', async (context) => {
    const message = await server.run('SELECT 1/0').catch((error: unknown) => String(error))
    // A system may be installed without translations.
    if (!JSON.stringify(message).includes('Division durch Null')) context.skip()
    const schema = freshSchema()
    const role = `role_${schema}`
    await server.run(`CREATE ROLE ${role} LOGIN`, `CREATE SCHEMA ${schema} AUTHORIZATION ${role}`)
    const connection = server.url.replace('postgres@', `${role}@`)
    const { tasks, reported } = hostOn(await openStore(storeAt({ schema, connection })))
    await tasks.recovered
    await server.run(`REVOKE INSERT ON ${schema}.rows FROM ${role}`)
    const refused = tasks.launch('echo', 'refused')
    await expect(tasks.manager.stored()).rejects.toMatchObject({ code: 'STORE_READ_ONLY' })
    expect(refused.record).toMatchObject({ status: 'failed', errorCode: 'NOT_STORED' })
    expect(reported).toContain('STORE_READ_ONLY')
    await server.run(`GRANT INSERT ON ${schema}.rows TO ${role}`)
    await expect(tasks.launch('echo', 'accepted').result).resolves.toEqual({ final_message: 'accepted' })
    await tasks.dispose()
  })
})

it('K10: an outage that begins during a write is reported, less and less often, and the write is stored once', async () => {
  const victim = await startPostgres()
  onTestFinished(() => victim.close())
  const schema = freshSchema()
  const at = () => storeAt({ schema, connection: victim.url, leaseMs: 60_000 })
  const { tasks, reported } = hostOn(await openStore(at()))
  await tasks.recovered
  // The write waits for this lock when the server is killed.
  const locking = victim
    .run('BEGIN', `LOCK TABLE ${schema}.rows IN EXCLUSIVE MODE`, 'SELECT pg_sleep(60)')
    .catch(() => undefined)
  const isLocked = `SELECT 1 FROM pg_locks WHERE mode = 'ExclusiveLock' AND relation = '${schema}.rows'::regclass`
  await expect.poll(() => victim.run(isLocked)).toHaveLength(1)
  const launched = tasks.launch('echo', 'in flight')
  await expect.poll(() => victim.run('SELECT 1 FROM pg_locks WHERE NOT granted')).not.toEqual([])
  await victim.kill()
  await locking
  // Attempts follow each other after 50 ms, 100 ms and so on. The first, second and fourth one are reported.
  await expect.poll(() => reported.length, { timeout: 20_000 }).toBe(3)
  expect(new Set(reported)).toEqual(new Set(['STORE_UNAVAILABLE']))
  await victim.start()
  await expect(launched.result).resolves.toEqual({ final_message: 'in flight' })
  await tasks.dispose()
  const again = await openStore(at())
  expect(again.open().tasks.map(({ id }) => id)).toEqual([launched.id])
  await again.close()
})

it('K2: stores what it has acknowledged although the server has synchronous_commit = off', async () => {
  const victim = await startPostgres({ synchronous_commit: 'off', wal_writer_delay: '10s' })
  onTestFinished(() => victim.close())
  const schema = freshSchema()
  const at = () => storeAt({ schema, connection: victim.url })
  const open = await openStore(at())
  const ids = Array.from({ length: 20 }, (_, count) => `row ${count}`)
  for (const id of ids) await open.write([put(id)])
  await victim.kill()
  await victim.start()
  await open.write([put('after')])
  await open.close()
  const again = await openStore(at())
  expect(idsIn(again).sort()).toEqual(['after', ...ids].sort())
  await again.close()
})

describe('an encoding', () => {
  const emoji = 'an owner named 🦊'

  it.each(['UTF8', 'SQL_ASCII'])('%s holds every text', async (encoding) => {
    const name = `in_${encoding.toLowerCase()}`
    await server.run(`CREATE DATABASE ${name} ENCODING '${encoding}' TEMPLATE template0 LOCALE 'C'`)
    const connection = server.url.replace(/\/postgres$/, `/${name}`)
    const open = await openStore(storeAt({ connection }))
    await open.write([put(emoji)])
    const task = { kind: 'task' as const, id: emoji, owner: emoji, name: 'x', status: 'completed' }
    await open.history?.add([{ ...task, completedAt: Date.now(), record: { goalPrompt: emoji } }])
    expect(await open.history?.query({ kind: 'task', limit: 10, text: 'named' })).toHaveLength(1)
    expect(await open.history?.find('task', emoji)).toMatchObject({ owner: emoji })
    await open.close()
    const again = await openStore(storeAt({ connection }))
    expect(idsIn(again)).toEqual([emoji])
    await again.close()
  })

  it('LATIN1 does not: the store is refused, and nothing is created', async () => {
    await server.run(`CREATE DATABASE in_latin1 ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'`)
    const connection = server.url.replace(/\/postgres$/, '/in_latin1')
    await expect(openStore(storeAt({ connection }))).rejects.toMatchObject({
      code: 'STORE_INVALID',
      message: expect.stringContaining('the encoding of the database is LATIN1') as unknown,
    })
    expect(await readPostgresStore({ connection })).toEqual([])
  })
})

it.each(['serializable', 'repeatable\\ read'])(
  'K9: six hosts that open a new schema at once all succeed, and write, with %s transactions',
  async (isolation) => {
    const schema = freshSchema()
    const connection = withSettings(`default_transaction_isolation=${isolation}`)
    const sessions = ['a', 'b', 'c', 'd', 'e', 'f']
    const at = (session: string) => storeAt({ schema, session, connection, leaseMs: 60_000 })
    const open = await Promise.all(sessions.map((session) => openStore(at(session))))
    const ids = Array.from({ length: 20 }, (_, count) => `row ${count}`)
    await Promise.all(
      open.map(async (store) => {
        for (const id of ids) await store.write([put(id)])
      }),
    )
    for (const store of open) await store.close()
    for (const session of sessions) {
      const again = await openStore(at(session))
      expect(idsIn(again).sort()).toEqual([...ids].sort())
      await again.close()
    }
  },
)

it('K1: holds ids, owners and sessions of the greatest length, whatever their characters', async () => {
  // No two characters are the same, so that the server cannot compress them.
  const long = (length: number, from: number): string =>
    Array.from({ length }, (_, at) => String.fromCodePoint(from + ((at * 7919) % 20_000))).join('')
  const [session, owner, id] = [long(512, 0x4e00), long(512, 0x4e10), long(512, 0x4e20)]
  const at = () => storeAt({ schema, session })
  const schema = freshSchema()
  const { tasks } = hostOn(await openStore(at()))
  await tasks.recovered
  const runner = functionRunner(() => Promise.resolve({ final_message: 'x' }))
  tasks.manager.launch({ id, owner, subagentName: 'echo', goalPrompt: 'x' }, runner)
  tasks.pause(owner)
  await tasks.manager.stored()
  await tasks.dispose()
  const again = await openStore(at())
  expect(again.open().tasks).toMatchObject([{ id, owner }])
  await again.write([{ table: 'tasks', remove: id }])
  await again.close()
  const [read] = await readPostgresStore({ connection: server.url, schema, session })
  expect(read?.read).toMatchObject({ contents: { tasks: [] } })
})

describe('a write of rows that do not fit into one statement', () => {
  const text = 'x'.repeat(17 * 1024 * 1024)

  it('is stored as a whole', async () => {
    const schema = freshSchema()
    const open = await openStore(storeAt({ schema, leaseMs: 60_000 }))
    await open.write([put('a', text), put('b', text), { table: 'tasks', remove: 'x' }])
    expect(await server.run(`SELECT batch::int AS batch FROM ${schema}.owners`)).toEqual([{ batch: 1 }])
    await open.close()
    expect(await server.run(`SELECT id FROM ${schema}.rows ORDER BY id`)).toEqual([{ id: 'a' }, { id: 'b' }])
  })

  it('is refused as a whole', async () => {
    const schema = freshSchema()
    const open = await openStore(storeAt({ schema, leaseMs: 60_000 }))
    await server.run(`ALTER TABLE ${schema}.rows ADD CHECK (id <> 'b')`)
    await expect(open.write([put('a', text), put('b', text)])).rejects.toMatchObject({ code: 'STORE_FAILED' })
    expect(await server.run(`SELECT id FROM ${schema}.rows`)).toEqual([])
    await open.write([put('c')])
    await open.close()
    expect(await server.run(`SELECT id FROM ${schema}.rows`)).toEqual([{ id: 'c' }])
  })
})

/** A host with one task that runs until it is aborted. */
async function runningHost(store: OpenStore) {
  let isAborted = false
  const tasks = createAgentTasks({
    store,
    onError: () => undefined,
    subagents: {
      hanging: (_input, { signal }) =>
        new Promise<{ final_message: string }>((resolve) => {
          signal.addEventListener('abort', () => {
            isAborted = true
            resolve({ final_message: 'aborted' })
          })
        }),
    },
  })
  onTestFinished(() => tasks.dispose())
  await tasks.recovered
  const { result } = tasks.launch('hanging', 'x')
  await tasks.manager.stored()
  return { tasks, result, isAborted: () => isAborted }
}

describe('an owner that is cut off from the server', () => {
  it.each([
    ['stop', true],
    ['goOn', false],
  ] as const)('K9: with %s, its run has ended when another owner starts: %s', async (whenLeaseExpires, hasEnded) => {
    const proxy = await startCuttingProxy(server.port)
    const schema = freshSchema()
    const connection = server.url.replace(/:\d+\//, `:${proxy.port}/`)
    const cutOff = await openStore(storeAt({ schema, connection, leaseMs: 6000, whenLeaseExpires }))
    const { result, isAborted } = await runningHost(cutOff)
    await proxy.close()
    const next = await openStore(storeAt({ schema }))
    expect(isAborted()).toBe(hasEnded)
    if (hasEnded) await expect(result).rejects.toMatchObject({ code: 'STORE_LOST' })
    await next.close()
  })
})

it('K1: when a replica is promoted that lacks the last writes, all launches fail with STORE_LOST', async () => {
  const primary = await startPostgres()
  onTestFinished(() => primary.close())
  const schema = freshSchema()
  let at = primary.url
  const connection = async () => {
    const client = new Client({ connectionString: at })
    client.on('error', () => undefined)
    await client.connect()
    return client
  }
  const open = await openStore(storeAt({ schema, connection, leaseMs: 60_000 }))
  const { tasks, result } = await runningHost(open)
  const replica = await startPostgres({}, { replicaOf: primary })
  onTestFinished(() => replica.close())
  await replica.run(`ALTER SYSTEM SET primary_conninfo = ''`, 'SELECT pg_reload_conf()')
  await expect.poll(() => replica.run('SELECT 1 FROM pg_stat_wal_receiver')).toEqual([])
  tasks.launch('hanging', 'not replicated')
  await tasks.manager.stored()
  await primary.kill()
  await replica.run('SELECT pg_promote()')
  at = replica.url
  const inFlight = tasks.launch('hanging', 'in flight').result
  for (const end of [result, inFlight]) await expect(end).rejects.toMatchObject({ code: 'STORE_LOST' })
  await expect(tasks.launch('hanging', 'later').result).rejects.toMatchObject({ code: 'STORE_LOST' })
})
