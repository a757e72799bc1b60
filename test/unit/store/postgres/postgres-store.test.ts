// One PGlite for the file: starting one takes seconds.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { AsyncTaskManager } from '../../../../src/index.js'
import { postgresStore, type PostgresClient } from '../../../../src/store/postgres/index.js'
import { openStore, type StoreChange } from '../../../../src/store/index.js'
import { systemClock, type Clock } from '../../../../src/system/clock.js'
import { storeContract } from '../../../../src/testing/index.js'
import { localPostgres, type LocalPostgres } from '../../../support/pglite.js'
import { waitFor } from '../../../support/wait-for.js'
import { StoreInUseError } from '../../../../src/store/store-errors.js'
import type { TaskTransition } from '../../../../machines/transitions.js'
import type { PostgresStoreOptions } from '../../../../src/store/postgres/postgres-store.js'
import type { OpenStore } from '../../../../src/store/open-store.js'

let postgres: LocalPostgres
let schemas = 0

beforeAll(async () => {
  postgres = await localPostgres()
})
afterAll(() => postgres.close())

const store = (options: Partial<PostgresStoreOptions> = {}) =>
  postgresStore({ connection: postgres.connect, leaseMs: 500, ...options })

const freshSchema = (): string => `test_${(schemas += 1)}`

const put = (id: string): StoreChange => ({ table: 'instances', put: { id, secretSha256: 'x', registration: {} } })

/** What a store holds, as ids of instances. */
async function stored(schema: string): Promise<string[]> {
  const open = await openStore(store({ schema }))
  const ids = open.open().instances.map(({ id }) => id)
  await open.close()
  return ids.sort()
}

/** Its leases are never renewed, as when its process is stopped. Its other timers run. */
const stoppedClock: Clock = {
  ...systemClock,
  setTimeout: (run, ms, label) =>
    label?.name === 'renewal of the lease of a store' ? undefined : systemClock.setTimeout(run, ms, label),
}

/** PGlite may be slow: only a hang is to fail. */

/** A write, or the statement that keeps a write from being committed later. */
const isWrite = (text: string): boolean => text.includes('WITH owner') || text.includes('batch + 2')

/** What the connection says when it breaks: no answer of the server. */
const cut = (): Error => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })

/** The server may have ended the session with this error. */
const interrupted = (): Error => Object.assign(new Error('terminating'), { code: '57P01', severity: 'FATAL' })

const refused = (): Error => Object.assign(new Error('out of memory'), { code: '53200', severity: 'ERROR' })

/**
 * A connection that breaks at the next of these statements: one entry each, `before` the statement is sent or `after` it was committed. `refuse`: the
 * server refuses it. `interrupt`: it was committed, and then the server says that it ends.
 */
const failing = (steps: ('before' | 'after' | 'refuse' | 'interrupt')[]): (() => Promise<PostgresClient>) =>
  postgres.connectWith(async (text, run) => {
    const step = isWrite(text) ? steps.shift() : undefined
    if (step === undefined) return
    if (step === 'after' || step === 'interrupt') await run()
    throw step === 'refuse' ? refused() : step === 'interrupt' ? interrupted() : cut()
  })

describe('a store in PostgreSQL', () => {
  const contract = storeContract(() => {
    const schema = freshSchema()
    return { store: store({ schema }), again: () => store({ schema }) }
  })
  for (const { name, run } of contract) it(name, run)
})

it('keeps sessions of one schema apart', async () => {
  const schema = freshSchema()
  const [a, b] = [await openStore(store({ schema, session: 'a' })), await openStore(store({ schema, session: 'b' }))]
  await a.write([put('i')])
  await a.close()
  await b.close()
  const again = await openStore(store({ schema, session: 'b' }))
  expect(again.open().instances).toEqual([])
  await again.close()
})

it('shows its rows in views, whatever their texts contain', async () => {
  const schema = freshSchema()
  const open = await openStore(store({ schema }))
  await open.write([
    { table: 'deliveries', put: { id: 'd', owner: 'ma\0in \ud83d \\u0000', state: 'sent', at: 1, taskIds: ['a'] } },
  ])
  const { rows } = await postgres.database.query(`SELECT id, owner, state, task_ids FROM ${schema}.deliveries`)
  expect(rows).toEqual([{ id: 'd', owner: 'ma\ufffdin \ufffd \\ufffd', state: 'sent', task_ids: ['a'] }])
  await open.close()
})

describe('a write whose connection breaks', () => {
  it.each([
    ['before it was sent', ['before']],
    ['after it was committed', ['after']],
    ['by the server, after it was committed', ['interrupt']],
    ['again and again', ['before', 'before', 'after', 'before', 'after']],
  ] as const)('%s is committed once', async (_when, steps) => {
    const schema = freshSchema()
    const open = await openStore(store({ schema, connection: failing([...steps]) }))
    await open.write([put('a')])
    await open.write([put('b'), { table: 'instances', remove: 'a' }])
    await open.close()
    expect(await stored(schema)).toEqual(['b'])
  })

  it('K10: is reported, with pauses that become longer, until it is known to be stored', async () => {
    const schema = freshSchema()
    const open = await openStore(
      store({ schema, connection: failing(['before', 'before', 'before', 'before', 'before']) }),
    )
    const reported: unknown[] = []
    await open.write([put('a')], (error) => reported.push(error))
    await open.close()
    expect(await stored(schema)).toEqual(['a'])
    const message: unknown = expect.stringMatching(/no connection .*It is unknown whether the last write was stored/)
    // The first, second and fourth of five attempts.
    expect(reported).toMatchObject(Array.from({ length: 3 }, () => ({ code: 'STORE_UNAVAILABLE', message })))
  })

  it('K10: is reported while the server does not answer', async () => {
    const schema = freshSchema()
    let answer: (() => void) | undefined
    const connection = postgres.connectWith(async (text) => {
      if (isWrite(text)) await new Promise<void>((resolve) => (answer = resolve))
    })
    let silent: (() => void) | undefined
    const clock: Clock = {
      ...systemClock,
      setTimeout: (run, ms, label) => {
        if (label?.name !== 'report of a slow write') return systemClock.setTimeout(run, ms, label)
        expect(ms).toBe(5000)
        return (silent = run)
      },
      clearTimeout: (timer) => (timer === silent ? (silent = undefined) : systemClock.clearTimeout(timer)),
    }
    const open = await openStore(store({ schema, connection, clock }))
    const reported: unknown[] = []
    const write = open.write([put('a')], (error) => reported.push(error))
    await waitFor(() => expect(answer).toBeDefined())
    silent?.()
    const message: unknown = expect.stringContaining('the server has not answered a write for 5000 ms')
    expect(reported).toMatchObject([{ code: 'STORE_UNAVAILABLE', message }])
    answer?.()
    await write
    expect(silent).toBeUndefined()
    await open.close()
  })

  it('ends when the store is closed: it is not sent again, and leaves no timer', async () => {
    const schema = freshSchema()
    let isAway = false
    const connection = postgres.connectWith(async (text) => {
      await Promise.resolve()
      if (isAway && isWrite(text)) throw cut()
    })
    const open = await openStore(store({ schema, connection }))
    isAway = true
    const delayed = new Promise<unknown>((resolve) => {
      void open.write([put('a')], resolve).catch(resolve)
    })
    await delayed
    const write = open.write([put('b')])
    await open.close()
    await expect(write).rejects.toMatchObject({ code: 'STORE_CLOSED' })
    expect(await stored(schema)).toEqual([])
  })

  it('is refused only when its first sending has no effect any more', async () => {
    const schema = freshSchema()
    const open = await openStore(store({ schema, connection: failing(['before', 'refuse']) }))
    await expect(open.write([put('a')])).rejects.toMatchObject({ code: 'STORE_FAILED' })
    // What the first connection may still have sent: the number is used up.
    const { rows } = await postgres.database.query(`SELECT batch::int AS batch FROM ${schema}.owners`)
    expect(rows).toEqual([{ batch: 2 }])
    await open.write([put('b')])
    await open.close()
    expect(await stored(schema)).toEqual(['b'])
  })

  it('is refused also when the connection breaks while that is made sure of', async () => {
    for (const steps of [
      ['before', 'refuse', 'after'],
      ['before', 'refuse', 'before'],
      ['before', 'refuse', 'after', 'refuse'],
    ] as const) {
      const schema = freshSchema()
      const steering = [...steps]
      const open = await openStore(store({ schema, connection: failing(steering) }))
      const ends = await Promise.allSettled([open.write([put('a')])])
      const isStored = ends[0].status === 'fulfilled'
      await open.write([put('b')])
      await open.close()
      expect([steering, await stored(schema)]).toEqual([[], isStored ? ['a', 'b'] : ['b']])
    }
  })

  it('has been committed when the server refuses only what is sent again', async () => {
    const schema = freshSchema()
    const open = await openStore(store({ schema, connection: failing(['after', 'refuse']) }))
    await open.write([put('a')])
    await open.close()
    expect(await stored(schema)).toEqual(['a'])
  })
})

it('sends one statement at a time', async () => {
  let underWay = 0
  let most = 0
  const connection = postgres.connectWith(async () => {
    underWay += 1
    most = Math.max(most, underWay)
    await new Promise((resolve) => setTimeout(resolve, 20))
    underWay -= 1
  })
  const open = await openStore(store({ schema: freshSchema(), connection }))
  for (let count = 0; count < 20; count += 1) await open.write([put(`row ${count}`)])
  await open.close()
  expect(most).toBe(1)
})

it('a write that the server refuses has no effect, and the next one may succeed', async () => {
  const schema = freshSchema()
  const open = await openStore(store({ schema, connection: failing(['refuse']) }))
  await expect(open.write([put('a')])).rejects.toMatchObject({ code: 'STORE_FAILED' })
  await open.write([put('b')])
  await open.close()
  expect(await stored(schema)).toEqual(['b'])
})

it('without a connection a write is refused, and so is opening; nothing is written', async () => {
  const schema = freshSchema()
  let isAway = false
  let end: (() => void) | undefined
  const connection = async (): Promise<PostgresClient> => {
    if (isAway) throw Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })
    return { ...(await postgres.connect()), on: (_event, listener) => (end = listener) }
  }
  const away = {
    code: 'STORE_UNAVAILABLE',
    message: expect.stringContaining('nothing listens at this address') as unknown,
  }
  const open = await openStore(store({ schema, connection }))
  isAway = true
  // The connection ends while nothing is asked.
  end?.()
  await expect(open.write([put('a')])).rejects.toMatchObject(away)
  await expect(openStore(store({ schema, connection }))).rejects.toMatchObject(away)
  isAway = false
  await open.write([put('b')])
  await open.close()
  expect(await stored(schema)).toEqual(['b'])
})

describe('an owner whose lease has expired', () => {
  async function takenOver(): Promise<{ schema: string; first: OpenStore; second: OpenStore }> {
    const schema = freshSchema()
    const first = await openStore(store({ schema, clock: stoppedClock }))
    await first.write([put('a')])
    const second = await openStore(store({ schema }))
    return { schema, first, second }
  }

  it('writes nothing when another one has taken over, and knows that its store is lost', async () => {
    const { schema, first, second } = await takenOver()
    expect(second.open().instances).toHaveLength(1)
    const write = first.write([put('late')])
    await expect(write).rejects.toMatchObject({ code: 'STORE_LOST' })
    expect(first.lost?.reason).toMatchObject({
      code: 'STORE_LOST',
      message: expect.stringContaining(`another owner has taken over (process ${process.pid} on`) as unknown,
    })
    await expect(first.write([put('later')])).rejects.toMatchObject({ code: 'STORE_LOST' })
    await first.close()
    // Closing what is lost takes nothing from the new owner.
    await second.write([put('b')])
    await second.close()
    expect(await stored(schema)).toEqual(['a', 'b'])
  })

  it('goes on when nobody has taken over', async () => {
    const schema = freshSchema()
    const open = await openStore(store({ schema, clock: stoppedClock }))
    await postgres.database.query(`UPDATE ${schema}.owners SET expires_at = now() - interval '1 hour'`)
    await open.write([put('a')])
    await open.close()
    expect(await stored(schema)).toEqual(['a'])
  })

  it('cancels what runs, delivers nothing, and reports why, once', async () => {
    const { first, second } = await takenOver()
    const errors: unknown[] = []
    const manager = new AsyncTaskManager({ store: first, onError: (error) => errors.push(error) })
    const seen: TaskTransition[] = []
    manager.transitions$.subscribe((transition) => seen.push(transition))
    const aborted = new Promise<unknown>((resolve) => {
      const controller = new AbortController()
      controller.signal.addEventListener('abort', () => resolve(controller.signal.reason))
      manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g', abortController: controller })
    })
    await expect(manager.stored()).rejects.toMatchObject({ code: 'STORE_LOST' })
    await aborted
    expect(seen).toEqual([])
    expect(errors.length).toBeGreaterThan(0)
    expect(errors.every((error) => (error as { code?: unknown }).code === 'STORE_LOST')).toBe(true)
    await manager.dispose()
    await second.close()
  })
})

describe('a lease', () => {
  /** Its timers are run by the test, by their names. */
  function heldClock() {
    const timers: { readonly name: string | undefined; readonly run: () => void }[] = []
    const clock: Clock = {
      ...systemClock,
      setTimeout: (run, _ms, label) => timers.push({ name: label?.name, run }),
      clearTimeout: () => undefined,
    }
    const next = async (name: string): Promise<void> => {
      await waitFor(() => expect(timers.map((timer) => timer.name)).toEqual([name]))
      timers.shift()?.run()
    }
    return { clock, timers, next }
  }

  it('is waited for as long as nobody renews it: its owner may have died', async () => {
    const schema = freshSchema()
    const first = await openStore(store({ schema, clock: stoppedClock, leaseMs: 86_400_000 }))
    const { clock, timers, next } = heldClock()
    const opening = openStore(store({ schema, clock }))
    for (let look = 0; look < 3; look += 1) await next('wait for a store')
    await waitFor(() => expect(timers).toHaveLength(1))
    await postgres.database.query(`UPDATE ${schema}.owners SET expires_at = now() - interval '1 hour'`)
    await next('wait for a store')
    const second = await opening
    expect(second.open().tasks).toEqual([])
    await second.close()
    await first.close()
  })

  it('that is renewed finds out that another owner has taken over, and is renewed no more', async () => {
    const schema = freshSchema()
    const { clock, timers, next } = heldClock()
    const first = await openStore(store({ schema, clock }))
    await next('renewal of the lease of a store')
    await waitFor(() => expect(timers).toHaveLength(1))
    await postgres.database.query(`UPDATE ${schema}.owners SET expires_at = now() - interval '1 hour'`)
    const second = await openStore(store({ schema }))
    await next('renewal of the lease of a store')
    await waitFor(() => expect(first.lost?.reason).toMatchObject({ code: 'STORE_LOST' }))
    expect(timers).toEqual([])
    await first.close()
    await second.write([put('a')])
    await second.close()
    expect(await stored(schema)).toEqual(['a'])
  })

  it('is renewed at least twice before it expires', async () => {
    const delays: number[] = []
    const clock: Clock = {
      ...systemClock,
      setTimeout: (_run, ms, label) => {
        if (label?.name === 'renewal of the lease of a store') delays.push(ms)
        return undefined
      },
      clearTimeout: () => undefined,
    }
    const open = await openStore(store({ schema: freshSchema(), clock, leaseMs: 600 }))
    await open.close()
    expect(delays).toHaveLength(1)
    expect(delays[0]).toBeLessThanOrEqual(300)
  })

  describe('of an owner that is to stop', () => {
    /** A clock whose time the test sets. It has the timers of the lease by their names. */
    function steppedClock() {
      let now = 0
      const timers = new Map<string, { readonly run: () => void; readonly at: number }>()
      const clock: Clock = {
        ...systemClock,
        now: () => now,
        monotonic: () => now,
        setTimeout: (run, ms, label) => {
          timers.set(label?.name ?? '', { run, at: now + ms })
          return label?.name
        },
        clearTimeout: (name) => void timers.delete(String(name)),
      }
      const advance = (ms: number): void => {
        now += ms
        for (const [name, { run, at }] of [...timers]) {
          if (at > now || !timers.delete(name)) continue
          run()
        }
      }
      return { clock, timers, advance }
    }

    it('is given up when half of it has passed without a renewal, and not before', async () => {
      const { clock, timers, advance } = steppedClock()
      let isAway = false
      const connection = postgres.connectWith(async () => {
        await Promise.resolve()
        if (isAway) throw cut()
      })
      const renewal = 'renewal of the lease of a store'
      const open = await openStore(
        store({ schema: freshSchema(), clock, connection, leaseMs: 6000, whenLeaseExpires: 'stop' }),
      )
      expect(timers.get(renewal)?.at).toBe(1000)
      advance(1000)
      await waitFor(() => expect(timers.has(renewal)).toBe(true))
      isAway = true
      advance(2500)
      // Renewed at 1000.
      expect(open.lost?.aborted).toBe(false)
      const write = open.write([put('a')])
      advance(500)
      await expect(write).rejects.toMatchObject({ code: 'STORE_LOST' })
      expect(open.lost?.reason).toMatchObject({
        message: expect.stringContaining('its lease could not be renewed') as unknown,
      })
      isAway = false
      await open.close()
      expect(timers.size).toBe(0)
    })

    it('is extended by a write', async () => {
      const { clock, advance } = steppedClock()
      const schema = freshSchema()
      const open = await openStore(store({ schema, clock, leaseMs: 6000, whenLeaseExpires: 'stop' }))
      advance(900)
      await open.write([put('a')])
      advance(2900)
      expect(open.lost?.aborted).toBe(false)
      await open.close()
    })
  })

  it('is renewed again after the server was away', async () => {
    const schema = freshSchema()
    const { clock, timers, next } = heldClock()
    let isAway = false
    const connection = postgres.connectWith(async () => {
      await Promise.resolve()
      if (isAway) throw cut()
    })
    const open = await openStore(store({ schema, clock, connection }))
    isAway = true
    await next('renewal of the lease of a store')
    await waitFor(() => expect(timers).toHaveLength(1))
    isAway = false
    const until = async () =>
      (await postgres.database.query(`SELECT expires_at::text AS until FROM ${schema}.owners`)).rows
    const before = await until()
    await next('renewal of the lease of a store')
    await waitFor(async () => expect(await until()).not.toEqual(before))
    expect(open.lost?.aborted).toBe(false)
    await open.close()
  })
})

it.each([
  ['its row is gone', (schema: string) => `DELETE FROM ${schema}.owners`, 'its owner row was removed'],
  [
    'its number went backwards',
    (schema: string) => `UPDATE ${schema}.owners SET batch = 0`,
    'the batch 0 in place of 2',
  ],
])('a store is lost when %s', async (_what, sql, text) => {
  const schema = freshSchema()
  const open = await openStore(store({ schema }))
  await open.write([put('a')])
  await open.write([put('b')])
  await postgres.database.query(sql(schema))
  await expect(open.write([put('c')])).rejects.toMatchObject({
    code: 'STORE_LOST',
    message: expect.stringContaining(text) as unknown,
  })
  await open.close()
})

it('an owner that lives renews its lease: another one is refused, and told who it is', async () => {
  const schema = freshSchema()
  const open = await openStore(store({ schema }))
  const other = openStore(store({ schema }))
  await expect(other).rejects.toThrow(StoreInUseError)
  await expect(other).rejects.toThrow(
    `PostgreSQL (schema ${schema}, session default) is in use by process ${process.pid} on `,
  )
  await expect(other).rejects.toThrow('End it, or use another session or schema.')
  await open.close()
})

describe('a schema', () => {
  it('of another program is refused, and left as it is', async () => {
    const schema = freshSchema()
    await postgres.database.exec(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.songs (name text)`)
    await expect(openStore(store({ schema }))).rejects.toMatchObject({
      code: 'STORE_INVALID',
      message: expect.stringContaining('it has a table "songs"') as unknown,
    })
    const { rows } = await postgres.database.query(
      'SELECT relname FROM pg_class WHERE relnamespace = $1::regnamespace',
      [schema],
    )
    expect(rows).toEqual([{ relname: 'songs' }])
  })

  it('that is empty is used', async () => {
    const schema = freshSchema()
    await postgres.database.exec(`CREATE SCHEMA ${schema}`)
    expect(await stored(schema)).toEqual([])
  })

  it.each([
    ['later', 99, 'STORE_NEWER', 'Update agent-tasks.'],
    ['damaged', 0, 'STORE_DAMAGED', 'the version of the layout is 0'],
  ])('of a %s version is refused', async (_what, version, code, text) => {
    const schema = freshSchema()
    await stored(schema)
    await postgres.database.query(`UPDATE ${schema}.agent_tasks_layout SET version = ${version}`)
    await expect(openStore(store({ schema }))).rejects.toMatchObject({
      code,
      message: expect.stringContaining(text) as unknown,
    })
  })

  it('with a damaged row is refused, and is not possessed', async () => {
    const schema = freshSchema()
    const open = await openStore(store({ schema }))
    await open.write([put('a')])
    await open.close()
    await postgres.database.query(`UPDATE ${schema}.rows SET body = replace(body, 'x', 'y')`)
    await expect(openStore(store({ schema }))).rejects.toMatchObject({
      code: 'STORE_DAMAGED',
      message: expect.stringContaining('the row "a" of instances is damaged') as unknown,
    })
    const { rows } = await postgres.database.query(
      `SELECT expires_at <= clock_timestamp() AS free FROM ${schema}.owners`,
    )
    expect(rows).toEqual([{ free: true }])
  })
})

it('leaves no timer behind, and is closed once', async () => {
  const timers = new Set<unknown>()
  const clock: Clock = {
    ...systemClock,
    setTimeout: (run, ms) => {
      const timer = setTimeout(run, ms)
      timers.add(timer)
      return timer
    },
    clearTimeout: (timer) => {
      timers.delete(timer)
      clearTimeout(timer as NodeJS.Timeout)
    },
  }
  let ended = 0
  const connection = async (): Promise<PostgresClient> => ({
    ...(await postgres.connect()),
    end: () => {
      ended += 1
      return Promise.resolve()
    },
  })
  const open = await openStore(store({ schema: freshSchema(), clock, connection }))
  await Promise.all([open.close(), open.close()])
  expect([timers.size, ended]).toEqual([0, 1])
  expect(() => open.open()).not.toThrow()
  expect(() => open.open()).toThrow('this store object was used by a manager before')
})

describe('bad options', () => {
  const bad: readonly [string, unknown, string][] = [
    ['none', {}, 'options.connection'],
    ['another database', { connection: 'mysql://localhost/x' }, 'options.connection'],
    ['a misspelt name', { connection: 'postgres://localhost/x', lease: 5 }, 'options.lease'],
    ['a schema with a quote', { connection: 'postgres://localhost/x', schema: 'a"b' }, 'options.schema'],
    ['an empty session', { connection: 'postgres://localhost/x', session: '' }, 'options.session'],
    ['an unknown end of a lease', { connection: 'postgres://localhost/x', whenLeaseExpires: 'x' }, 'whenLeaseExpires'],
    ['a lease that is too short', { connection: 'postgres://localhost/x', leaseMs: 10 }, 'leaseMs'],
  ]
  it.each(bad)('%s: an error names the field', (_what, options, field) => {
    expect(() => postgresStore(options as PostgresStoreOptions)).toThrow(field)
  })

  it('do not show a password', () => {
    const connection = 'mysql://me:secret@localhost/x'
    expect(() => postgresStore({ connection })).toThrow(expect.not.stringContaining('secret') as unknown)
    expect(postgresStore({ connection: 'postgres://me:secret@db:5433/x' }).name).toBe(
      'postgres://db:5433/x (schema agent_tasks, session default)',
    )
    expect(postgresStore({ connection: { host: 'db', password: 'secret' } }).name).toBe(
      'postgres://db:5432/ (schema agent_tasks, session default)',
    )
  })

  it('a store that is not open is refused by a manager, which names openStore', () => {
    // @ts-expect-error it is not open
    expect(() => new AsyncTaskManager({ store: store() })).toThrow('openStore(store)')
  })
})
