/** Messages that are accepted in transactions of the host (`TurnDelivery.acceptIn`). On a real server: test/e2e/postgres-accepting.test.ts. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createAgentTasks, type ConversationTurn } from '../../../../src/index.js'
import { postgresStore } from '../../../../src/store/postgres/index.js'
import { memoryStore, openStore } from '../../../../src/store/index.js'
import { localPostgres, type LocalPostgres } from '../../../support/pglite.js'
import type { OpenStore } from '../../../../src/store/open-store.js'

type Delivery = NonNullable<ConversationTurn['delivery']>
type Client = Parameters<Delivery['acceptIn']>[0]

let postgres: LocalPostgres
let schemas = 0

beforeAll(async () => {
  postgres = await localPostgres()
})
afterAll(() => postgres.close())

async function freshSchema(): Promise<string> {
  const schema = `test_${(schemas += 1)}`
  await postgres.database.exec(`CREATE TABLE ${schema}_messages (id text)`)
  return schema
}

const connectTo = (schema: string): Promise<OpenStore> =>
  openStore(postgresStore({ connection: postgres.connect, schema, leaseMs: 500 }))

const countIn = async (table: string): Promise<number> =>
  (await postgres.database.query(`SELECT * FROM ${table}`)).rows.length

/** Puts the message into the database of the host, in a transaction with `act`. */
const transaction = (schema: string, id: string, act: (client: Client) => Promise<void>): Promise<void> =>
  postgres.database.transaction(async (client) => {
    await client.query(`INSERT INTO ${schema}_messages VALUES ($1)`, [id])
    await act(client)
  })

const accept = (schema: string, { deliveryId, acceptIn }: Delivery): Promise<void> =>
  transaction(schema, deliveryId, (client) => acceptIn(client))

function hostOn(store: OpenStore, respond: (delivery: Delivery, text: string) => unknown) {
  const errors: unknown[] = []
  const tasks = createAgentTasks({
    store,
    keepTurns: 0,
    subagents: { work: ({ goal }) => `result of ${goal}` },
    autoTrigger: { retry: { initialMs: 1, maxMs: 1 } },
    onError: (error) => errors.push(error),
    respond: async ({ delivery, text }) => {
      if (delivery !== undefined) await respond(delivery, text)
    },
  })
  onTestFinished(() => tasks.dispose())
  const ann = tasks.conversation('ann')
  return { tasks, ann, errors }
}

describe('K5: a message that is accepted in a transaction of the host', () => {
  it('K5: is confirmed when its turn ends', async () => {
    const schema = await freshSchema()
    const { ann, tasks } = hostOn(await connectTo(schema), (delivery) => accept(schema, delivery))
    ann.launch('work', 'a')
    await ann.onIdle()
    await tasks.manager.stored()
    expect([await countIn(`${schema}_messages`), await countIn(`${schema}.deliveries`)]).toEqual([1, 0])
  })

  it('K5: is delivered when it is committed, although its turn fails', async () => {
    const schema = await freshSchema()
    let turns = 0
    const { ann, errors } = hostOn(await connectTo(schema), async (delivery) => {
      turns += 1
      await accept(schema, delivery)
      throw new Error('late')
    })
    ann.launch('work', 'a')
    await ann.onIdle()
    expect([turns, await countIn(`${schema}_messages`), errors]).toEqual([1, 1, [new Error('late')]])
  })

  it('K5: is owed again when it is rolled back', async () => {
    const schema = await freshSchema()
    const texts: string[] = []
    const { ann } = hostOn(await connectTo(schema), async (delivery, text) => {
      texts.push(text)
      if (texts.length > 1) return accept(schema, delivery)
      return transaction(schema, delivery.deliveryId, async (client) => {
        await delivery.acceptIn(client)
        throw new Error('rolled back')
      })
    })
    ann.launch('work', 'a')
    await ann.onIdle()
    expect([texts.length, await countIn(`${schema}_messages`)]).toEqual([2, 1])
  })

  it('K5: has arrived for the next process', async () => {
    const schema = await freshSchema()
    const store = await connectTo(schema)
    let asked = 0
    let committed!: () => void
    const isCommitted = new Promise<void>((resolve) => (committed = resolve))
    const first = hostOn(store, async (delivery) => {
      await accept(schema, delivery)
      committed()
      await new Promise(() => undefined)
    })
    first.ann.launch('work', 'a', { id: 'a' })
    await isCommitted
    // The process ends here: its lease expires, and it is not heard of any more.
    await postgres.database.query(`UPDATE ${schema}.owners SET expires_at = now()`)
    const next = createAgentTasks({ store: await connectTo(schema), wasDelivered: () => void (asked += 1) })
    onTestFinished(() => next.dispose())
    expect((await next.recovered).uncertain).toEqual([])
    expect([next.manager.getTask('a')?.delivery, asked]).toEqual(['delivered', 0])
  })

  it('K5: is refused after another process has taken over', async () => {
    const schema = await freshSchema()
    const { ann, errors } = hostOn(await connectTo(schema), async (delivery) => {
      await postgres.database.query(`UPDATE ${schema}.owners SET epoch = epoch + 1`)
      await accept(schema, delivery)
    })
    ann.launch('work', 'a')
    await expect.poll(() => errors.at(-1)).toMatchObject({ code: 'STORE_LOST' })
    expect(await countIn(`${schema}_messages`)).toBe(0)
  })
})

describe('acceptIn is refused', () => {
  /** Returns the error of the first delivery that `act` throws. */
  async function refusalOf(store: OpenStore, act: (delivery: Delivery) => Promise<unknown>): Promise<unknown> {
    const refusals: unknown[] = []
    const { ann } = hostOn(store, (delivery) => act(delivery).catch((error: unknown) => refusals.push(error)))
    ann.launch('work', 'a')
    await ann.onIdle()
    return refusals[0]
  }

  it('for a client in no transaction', async () => {
    const refusal = await refusalOf(await connectTo(await freshSchema()), ({ acceptIn }) => acceptIn(postgres.database))
    expect(refusal).toMatchObject({ code: 'INVALID_INPUT', field: 'client' })
  })

  it('for what is no client', async () => {
    const refusal = await refusalOf(await connectTo(await freshSchema()), ({ acceptIn }) => acceptIn({} as never))
    expect(refusal).toMatchObject({ code: 'INVALID_INPUT', field: 'client' })
  })

  it('for a delivery that has ended', async () => {
    const schema = await freshSchema()
    const kept: Delivery[] = []
    const { ann } = hostOn(await connectTo(schema), (delivery) => kept.push(delivery))
    ann.launch('work', 'a')
    await ann.onIdle()
    await expect(accept(schema, kept[0] as Delivery)).rejects.toMatchObject({ code: 'LEASE_ENDED' })
  })

  it('for a delivery whose row has gone', async () => {
    const schema = await freshSchema()
    const refusal = await refusalOf(await connectTo(schema), async (delivery) => {
      await postgres.database.query(`DELETE FROM ${schema}.rows WHERE kind = 'deliveries'`)
      await accept(schema, delivery)
    })
    expect(refusal).toMatchObject({ code: 'LEASE_ENDED' })
  })

  it('with another store, and with none', async () => {
    const client = { query: () => Promise.resolve({ rows: [] }) }
    const refusal = await refusalOf(memoryStore(), ({ acceptIn }) => acceptIn(client))
    expect(refusal).toMatchObject({ code: 'INVALID_INPUT', field: 'store' })
    const without = await refusalOf(undefined as never, ({ acceptIn }) => acceptIn(client))
    expect(without).toMatchObject({ code: 'INVALID_INPUT', field: 'store' })
  })

  it('in a host whose store keeps the turns', async () => {
    const refusals: unknown[] = []
    const tasks = createAgentTasks({
      store: memoryStore(),
      subagents: { work: () => 'done' },
      respond: async ({ delivery }) => {
        const client = { query: () => Promise.resolve({ rows: [] }) }
        await delivery?.acceptIn(client).catch((error: unknown) => refusals.push(error))
        return []
      },
    })
    onTestFinished(() => tasks.dispose())
    tasks.conversation('ann').launch('work', 'a')
    await tasks.conversation('ann').onIdle()
    expect(refusals).toMatchObject([{ code: 'INVALID_INPUT', field: 'options.keepTurns' }])
  })
})
