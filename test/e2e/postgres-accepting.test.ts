/** A host that keeps its messages in the database of its store, and accepts deliveries in its own transactions (`TurnDelivery.acceptIn`). */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createAgentTasks, type ConversationTurn } from '../../src/index.js'
import { postgresStore } from '../../src/store/postgres/index.js'
import { memoryStore, openStore } from '../../src/store/index.js'
import { startPostgres, type PostgresServer } from '../support/postgres-server.js'

const program = fileURLToPath(new URL('../support/programs/accepting-host.ts', import.meta.url))

/** For a test that starts a process. Only what hangs is to fail. */
const timeout = 240_000

let server: PostgresServer
let schemas = 0

beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server.close())

async function freshSchema(): Promise<string> {
  const schema = `test_${(schemas += 1)}`
  await server.run(`CREATE TABLE ${schema}_messages (delivery_id text)`)
  return schema
}

async function connect(url = server.url): Promise<Client> {
  const client = new Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  return client
}

const messagesIn = async (schema: string): Promise<number> =>
  (await server.run(`SELECT delivery_id FROM ${schema}_messages`)).length

/** The rows of deliveries that are not confirmed. */
const openIn = async (schema: string): Promise<number> =>
  (await server.run(`SELECT id FROM ${schema}.deliveries`)).length

type Delivery = NonNullable<ConversationTurn['delivery']>

/** Puts the message of a turn into the database of the host. */
async function put(client: Client, schema: string, { deliveryId, acceptIn }: Delivery): Promise<void> {
  await client.query('BEGIN')
  await client.query(`INSERT INTO ${schema}_messages VALUES ($1)`, [deliveryId])
  await acceptIn(client)
}

async function hostAt(schema: string, respond: (delivery: Delivery, text: string) => Promise<void>) {
  const tasks = createAgentTasks({
    store: await openStore(postgresStore({ connection: server.url, schema, leaseMs: 500 })),
    keepTurns: 0,
    subagents: { work: ({ goal }) => `result of ${goal}` },
    autoTrigger: { retry: { initialMs: 10, maxMs: 10 } },
    onError: () => undefined,
    respond: async ({ delivery, text }) => {
      if (delivery !== undefined) await respond(delivery, text)
    },
  })
  onTestFinished(() => tasks.dispose())
  return { tasks, ann: tasks.conversation('ann') }
}

/** Starts the host in a process of its own, which waits at a point of its turn. */
function startHost(schema: string, waitsAt: string) {
  const child = spawn(process.execPath, ['--import', 'tsx', program, server.url, schema, waitsAt], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exited
  })
  const said: string[] = []
  createInterface(child.stdout).on('line', (line) => said.push(line))
  const reaches = (point: string): Promise<void> => expect.poll(() => said, { timeout }).toContain(point)
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL')
    await exited
  }
  return { child, reaches, kill }
}

describe('K5: a message that is accepted in a transaction of the host', () => {
  it('K5: has arrived when it is committed, and needs no confirmation', async () => {
    const schema = await freshSchema()
    const client = await connect()
    const { tasks, ann } = await hostAt(schema, async (delivery) => {
      await put(client, schema, delivery)
      await client.query('COMMIT')
    })
    ann.launch('work', 'a')
    await ann.onIdle()
    await tasks.manager.stored()
    expect([await messagesIn(schema), await openIn(schema)]).toEqual([1, 0])
  })

  it('K5: has not arrived when it is rolled back', async () => {
    const schema = await freshSchema()
    const client = await connect()
    let turns = 0
    const { ann } = await hostAt(schema, async (delivery) => {
      turns += 1
      await put(client, schema, delivery)
      await client.query(turns === 1 ? 'ROLLBACK' : 'COMMIT')
      if (turns === 1) throw new Error('rolled back')
    })
    ann.launch('work', 'a')
    await ann.onIdle()
    expect([turns, await messagesIn(schema)]).toEqual([2, 1])
  })

  it('K5: has arrived when it is committed, although its turn fails after that', async () => {
    const schema = await freshSchema()
    const client = await connect()
    let turns = 0
    const { ann } = await hostAt(schema, async (delivery) => {
      turns += 1
      await put(client, schema, delivery)
      await client.query('COMMIT')
      throw new Error('the connection to the user broke')
    })
    ann.launch('work', 'a')
    await ann.onIdle()
    expect([turns, await messagesIn(schema), await openIn(schema)]).toEqual([1, 1, 0])
  })

  it('K5: has arrived when its host is killed right after the commit', { timeout }, async () => {
    const schema = await freshSchema()
    const first = startHost(schema, 'committed')
    await first.reaches('committed')
    await first.kill()
    let turns = 0
    const { tasks, ann } = await hostAt(schema, async () => {
      turns += 1
    })
    expect((await tasks.recovered).uncertain).toEqual([])
    await ann.onIdle()
    expect([turns, await messagesIn(schema), ann.list().map(({ delivery }) => delivery)]).toEqual([0, 1, ['delivered']])
  })

  it('K5: has not arrived when its host is killed before the commit', { timeout }, async () => {
    const schema = await freshSchema()
    const first = startHost(schema, 'accepted')
    await first.reaches('accepted')
    await first.kill()
    const client = await connect()
    const { ann } = await hostAt(schema, async (delivery) => {
      await put(client, schema, delivery)
      await client.query('COMMIT')
    })
    await ann.onIdle()
    expect(await messagesIn(schema)).toBe(1)
  })

  it('K5: is refused when another host has taken over while its host was stopped', { timeout }, async () => {
    const schema = await freshSchema()
    const first = startHost(schema, 'turn')
    await first.reaches('turn')
    first.child.kill('SIGSTOP')
    const client = await connect()
    const { ann } = await hostAt(schema, async (delivery) => {
      await put(client, schema, delivery)
      await client.query('COMMIT')
    })
    await ann.onIdle()
    expect(await messagesIn(schema)).toBe(1)
    first.child.kill('SIGCONT')
    first.child.stdin.write('\n')
    await first.reaches('STORE_LOST')
    expect(await messagesIn(schema)).toBe(1)
  })

  it('K5: lets no other host take over before the end of the transaction', { timeout }, async () => {
    const schema = await freshSchema()
    const first = startHost(schema, 'accepted')
    await first.reaches('accepted')
    let isOpen = false
    const next = hostAt(schema, () => Promise.resolve()).then((host) => {
      isOpen = true
      return host
    })
    next.catch(() => undefined)
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'INSERT INTO "${schema}".owners%'`
    await expect.poll(async () => (await server.run(waiting)).length, { timeout }).toBe(1)
    expect(isOpen).toBe(false)
    await first.kill()
    await (await next).ann.onIdle()
  })
})

describe('a transaction that cannot accept a message', () => {
  async function refused(schema: string, act: (delivery: Delivery) => Promise<void>): Promise<unknown> {
    const errors: unknown[] = []
    const client = await connect()
    const { ann } = await hostAt(schema, async (delivery) => {
      if (errors.length === 0) {
        await act(delivery).catch((error: unknown) => errors.push(error))
        throw new Error('refused')
      }
      await put(client, schema, delivery)
      await client.query('COMMIT')
    })
    ann.launch('work', 'a')
    await ann.onIdle()
    expect(await messagesIn(schema)).toBe(1)
    return errors[0]
  }

  it('of a client that has begun none', async () => {
    const schema = await freshSchema()
    const client = await connect()
    const error = await refused(schema, ({ acceptIn }) => acceptIn(client))
    expect(error).toMatchObject({ code: 'INVALID_INPUT', field: 'client' })
  })

  it('of a client in a transaction that has written nothing', async () => {
    const schema = await freshSchema()
    const client = await connect()
    const error = await refused(schema, async ({ acceptIn }) => {
      await client.query('BEGIN')
      await acceptIn(client).finally(() => client.query('ROLLBACK'))
    })
    expect(error).toMatchObject({ code: 'INVALID_INPUT', field: 'client' })
  })

  it('of no client', async () => {
    const error = await refused(await freshSchema(), ({ acceptIn }) => acceptIn({} as never))
    expect(error).toMatchObject({ code: 'INVALID_INPUT', field: 'client' })
  })

  it('in another database', async () => {
    const schema = await freshSchema()
    await server.run('CREATE DATABASE other')
    const client = await connect(server.url.replace(/\/postgres$/, '/other'))
    const error = await refused(schema, async ({ acceptIn }) => {
      await client.query('BEGIN')
      await acceptIn(client)
    })
    expect(error).toMatchObject({ code: '42P01' })
  })

  it('in another database that has the same store', async () => {
    const schema = await freshSchema()
    await server.run('CREATE DATABASE same')
    const url = server.url.replace(/\/postgres$/, '/same')
    const store = await openStore(postgresStore({ connection: url, schema, session: 'default' }))
    onTestFinished(() => void store.close())
    const client = await connect(url)
    const error = await refused(schema, async ({ acceptIn }) => {
      await client.query('BEGIN')
      await client.query('CREATE TABLE messages ()')
      await acceptIn(client)
    })
    expect(error).toMatchObject({ code: 'LEASE_ENDED' })
  })

  it('for a delivery whose time limit has passed', async () => {
    const schema = await freshSchema()
    const client = await connect()
    const kept: Delivery[] = []
    const { ann } = await hostAt(schema, async (delivery) => {
      kept.push(delivery)
      if (kept.length === 1) throw new Error('failed')
    })
    ann.launch('work', 'a')
    await ann.onIdle()
    await client.query('BEGIN')
    await expect(kept[0]?.acceptIn(client)).rejects.toMatchObject({ code: 'LEASE_ENDED' })
    await client.query('ROLLBACK')
  })

  it('with another store', async () => {
    const errors: unknown[] = []
    const tasks = createAgentTasks({
      store: memoryStore(),
      keepTurns: 0,
      subagents: { work: () => 'done' },
      respond: async ({ delivery }) => {
        await delivery
          ?.acceptIn({ query: () => Promise.resolve({ rows: [] }) })
          .catch((error: unknown) => errors.push(error))
      },
    })
    onTestFinished(() => tasks.dispose())
    tasks.conversation('ann').launch('work', 'a')
    await tasks.conversation('ann').onIdle()
    expect(errors).toMatchObject([{ code: 'INVALID_INPUT', field: 'store' }])
  })
})
