/** The store in PostgreSQL on a real server, which is killed, cut off, full, or behind a pooler. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager, functionRunner } from '../../src/index.js'
import { postgresStore } from '../../src/store/postgres/index.js'
import { openStore, type StoreChange } from '../../src/store/index.js'
import { storeContract } from '../../src/testing/index.js'
import { startCuttingProxy } from '../support/cutting-proxy.js'
import { freePort } from '../support/free-port.js'
import { startBouncer, startPostgres, type PostgresServer } from '../support/postgres-server.js'
import type { PostgresStoreOptions } from '../../src/store/postgres/postgres-store.js'
import type { OpenStore } from '../../src/store/open-store.js'

/** How often the server is killed, and how often connections are cut. */
const KILLS = Number(process.env['POSTGRES_KILLS'] ?? 10)
const CUTS = 200

let server: PostgresServer
let schemas = 0

beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server.close())

const freshSchema = (): string => `test_${(schemas += 1)}`

const storeAt = (options: Partial<PostgresStoreOptions> = {}) =>
  postgresStore({ connection: server.url, leaseMs: 500, ...options })

const put = (id: string): StoreChange => ({ table: 'instances', put: { id, secretSha256: 'x', registration: {} } })

async function stored(schema: string): Promise<string[]> {
  const open = await openStore(storeAt({ schema }))
  const ids = open.open().instances.map(({ id }) => id)
  await open.close()
  return ids.sort()
}

const byText = (a: string, b: string): number => (a < b ? -1 : 1)

describe('a store on a real server', () => {
  const cases = storeContract(() => {
    const schema = freshSchema()
    return { store: storeAt({ schema }), again: () => storeAt({ schema }) }
  })
  for (const { name, run } of cases) it(name, run)
})

it('keeps its contract behind pgbouncer in transaction mode', async () => {
  const bouncer = await startBouncer(server)
  onTestFinished(bouncer.close)
  const schema = freshSchema()
  const at = () => storeAt({ schema, connection: bouncer.url })
  const open = await openStore(at())
  // Others use the pool's connections meanwhile.
  const others = await Promise.all(
    Array.from({ length: 5 }, () => openStore(storeAt({ schema: freshSchema(), connection: bouncer.url }))),
  )
  for (let count = 0; count < 20; count += 1) {
    await Promise.all([open, ...others].map((store) => store.write([put(`row ${count}`)])))
  }
  await expect(openStore(at())).rejects.toMatchObject({ code: 'STORE_IN_USE' })
  for (const store of [open, ...others]) await store.close()
  expect(await stored(schema)).toHaveLength(20)
})

/** Writes from several callers without a pause, until it is told to end. What was acknowledged, by id. */
function load(store: OpenStore) {
  const acknowledged: string[] = []
  const refused: string[] = []
  let isEnding = false
  const write = async (caller: number): Promise<void> => {
    for (let count = 0; !isEnding; count += 1) {
      const id = `${caller} ${count}`
      try {
        await store.write([put(id)])
        acknowledged.push(id)
      } catch {
        refused.push(id)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    }
  }
  const writing = Promise.all([0, 1, 2, 3].map(write))
  const end = async (): Promise<void> => {
    isEnding = true
    await writing
  }
  return { acknowledged, refused, end }
}

describe('under load', () => {
  it(
    `stores what it has acknowledged, and nothing else, when the server is killed ${KILLS} times`,
    { timeout: 60_000 + KILLS * 10_000 },
    async () => {
      const victim = await startPostgres()
      onTestFinished(() => victim.close())
      const schema = freshSchema()
      const at = () => storeAt({ schema, connection: victim.url, leaseMs: 60_000 })
      const open = await openStore(at())
      const { acknowledged, end } = load(open)
      for (let kill = 0; kill < KILLS; kill += 1) {
        await new Promise((resolve) => setTimeout(resolve, 50 + (kill % 5) * 20))
        await victim.kill()
        await victim.start()
      }
      const before = acknowledged.length
      await expect.poll(() => acknowledged.length, { timeout: 30_000 }).toBeGreaterThan(before)
      await end()
      await open.close()
      const again = await openStore(at())
      const ids = again.open().instances.map(({ id }) => id)
      await again.close()
      expect(ids.sort(byText)).toEqual([...acknowledged].sort(byText))
    },
  )

  it(`stores what it has acknowledged, and nothing else, when its connection is cut ${CUTS} times`, async () => {
    const proxy = await startCuttingProxy(server.port)
    onTestFinished(() => proxy.close())
    const schema = freshSchema()
    const open = await openStore(storeAt({ schema, connection: server.url.replace(/:\d+\//, `:${proxy.port}/`) }))
    const { acknowledged, end } = load(open)
    for (let cut = 0; cut < CUTS; cut += 1) {
      const before = acknowledged.length
      proxy.cutNext(cut % 2 === 0 ? 'before the request' : 'after the request')
      await expect.poll(() => proxy.cuts, { interval: 1, timeout: 10_000 }).toBeGreaterThan(cut)
      // What is cut is a write, and not the greeting of the next connection.
      await expect.poll(() => acknowledged.length, { interval: 1, timeout: 10_000 }).toBeGreaterThan(before)
    }
    await end()
    await open.close()
    const ids = await stored(schema)
    expect(ids.sort(byText)).toEqual([...acknowledged].sort(byText))
    expect(acknowledged.length).toBeGreaterThanOrEqual(CUTS)
  })
})

const program = fileURLToPath(new URL('../support/programs/postgres-writer.ts', import.meta.url))

/** An owner in a process of its own. */
function startOwner(schema: string, name: string) {
  const child: ChildProcess = spawn(process.execPath, ['--import', 'tsx', program, server.url, schema, name], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const said: Readonly<Record<string, unknown>>[] = []
  if (child.stdout !== null) {
    createInterface({ input: child.stdout }).on('line', (line) => said.push(JSON.parse(line) as (typeof said)[number]))
  }
  onTestFinished(() => void child.kill('SIGKILL'))
  return {
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    ended: once(child, 'exit'),
    acknowledged: () => said.flatMap(({ acknowledged }) => (typeof acknowledged === 'string' ? [acknowledged] : [])),
    last: () => said.at(-1),
    /** Resolves when it has said this. */
    says: (field: string) =>
      expect.poll(() => said.some((line) => field in line), { timeout: 30_000, interval: 10 }).toBe(true),
  }
}

describe('owners in processes of their own', () => {
  it('one that was stopped for longer than its lease writes nothing when it goes on', async () => {
    const schema = freshSchema()
    const stopped = startOwner(schema, 'stopped')
    await stopped.says('acknowledged')
    stopped.kill('SIGSTOP')
    const next = await openStore(storeAt({ schema }))
    const found = next.open().instances.map(({ id }) => id)
    stopped.kill('SIGCONT')
    await stopped.ended
    expect(stopped.last()).toMatchObject({ ended: 'STORE_LOST' })
    await next.write([put('next')])
    await next.close()
    expect(await stored(schema)).toEqual([...found, 'next'].sort())
    const acknowledged = stopped.acknowledged()
    expect(found).toEqual(expect.arrayContaining(acknowledged))
    // At most the write whose answer it never got.
    expect(found.length - acknowledged.length).toBeLessThanOrEqual(1)
  })

  it('of two that start at once one opens the store, and the other is told who has it', async () => {
    const schema = freshSchema()
    const owners = [startOwner(schema, 'a'), startOwner(schema, 'b')]
    await Promise.race(owners.map(({ ended }) => ended))
    const [winner, loser] = owners[0]?.last()?.['ended'] === undefined ? owners : owners.reverse()
    expect(loser?.last()).toMatchObject({ ended: 'STORE_IN_USE' })
    expect(loser?.last()?.['message']).toMatch(/process \d+ on /)
    await winner?.says('acknowledged')
  })

  it('another one takes over what a killed one has left, when the lease has expired', async () => {
    const schema = freshSchema()
    const killed = startOwner(schema, 'killed')
    await killed.says('acknowledged')
    killed.kill('SIGKILL')
    await killed.ended
    expect(await stored(schema)).toEqual(expect.arrayContaining(killed.acknowledged()))
  })
})

describe('a store that cannot be used', () => {
  it.each([
    [
      'a wrong port',
      async () => ({ connection: `postgres://postgres@127.0.0.1:${await freePort()}/postgres` }),
      /nothing listens at this address/,
    ],
    [
      'a wrong database',
      () => ({ connection: server.url.replace(/\/postgres$/, '/none') }),
      /there is no such database/,
    ],
    [
      'a wrong user',
      () => ({ connection: server.url.replace('postgres@', 'nobody_here@') }),
      /does not admit this user/,
    ],
  ])('names %s', async (_what, options, message) => {
    const opening = openStore(storeAt({ schema: freshSchema(), ...(await options()) }))
    await expect(opening).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.stringMatching(message) as string,
    })
  })

  it('says that a role has no rights, and creates nothing', async () => {
    const schema = freshSchema()
    await server.run(`CREATE ROLE poor_${schema} LOGIN`)
    const connection = server.url.replace('postgres@', `poor_${schema}@`)
    await expect(openStore(storeAt({ schema, connection }))).rejects.toMatchObject({ code: 'STORE_READ_ONLY' })
    expect(await server.run(`SELECT 1 FROM pg_namespace WHERE nspname = '${schema}'`)).toEqual([])
  })

  it('refuses writes while its role has no right, and goes on when it has it again', async () => {
    const schema = freshSchema()
    const role = `role_${schema}`
    await server.run(`CREATE ROLE ${role} LOGIN`, `CREATE SCHEMA ${schema} AUTHORIZATION ${role}`)
    const open = await openStore(storeAt({ schema, connection: server.url.replace('postgres@', `${role}@`) }))
    await open.write([put('a')])
    await server.run(`REVOKE INSERT ON ${schema}.rows FROM ${role}`)
    await expect(open.write([put('b')])).rejects.toMatchObject({ code: 'STORE_READ_ONLY' })
    await server.run(`GRANT INSERT ON ${schema}.rows TO ${role}`)
    await open.write([put('c')])
    await open.close()
    expect(await stored(schema)).toEqual(['a', 'c'])
  })

  // Only a user who may mount can make a small disk.
  it.skipIf(process.getuid?.() !== 0)('says that the disk is full, and goes on when there is room', async () => {
    const disk = join(server.folder, 'small')
    mkdirSync(disk)
    const { uid, gid } = statSync(server.folder)
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=4m,mode=700,uid=${uid},gid=${gid}`, 'tmpfs', disk], {
        stdio: 'pipe',
      })
    } catch {
      return
    }
    onTestFinished(() => void execFileSync('umount', ['-l', disk]))
    const schema = freshSchema()
    await server.run(`CREATE TABLESPACE ${schema} LOCATION '${disk}'`)
    const connection = `${server.url}?options=-c%20default_tablespace%3D${schema}`
    const open = await openStore(storeAt({ schema, connection }))
    const big = (id: string): StoreChange => ({
      table: 'instances',
      put: { id, secretSha256: randomText(400_000), registration: {} },
    })
    const rows: string[] = []
    const fill = async (): Promise<void> => {
      for (let count = 0; ; count += 1) {
        await open.write([big(`${count}`)])
        rows.push(`${count}`)
      }
    }
    await expect(fill()).rejects.toMatchObject({ code: 'STORE_FULL' })
    execFileSync('mount', ['-o', 'remount,size=64m', disk])
    await open.write([put('more')])
    await open.close()
    expect(await stored(schema)).toEqual([...rows, 'more'].sort())
  })
})

/** A text that the server cannot compress. */
function randomText(length: number): string {
  let state = 1
  return Array.from({ length }, () => {
    state = (state * 48_271) % 2_147_483_647
    return String.fromCharCode(33 + (state % 90))
  }).join('')
}

it('a host that moves to another machine delivers once what it owed', async () => {
  const schema = freshSchema()
  const runner = functionRunner(({ goal }) => Promise.resolve({ final_message: `result of ${goal}` }))
  const hanging = functionRunner(
    (_input, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
  )
  const first = await openStore(storeAt({ schema }))
  const lost = new AsyncTaskManager({ store: first, onError: () => undefined })
  const done = lost.launch({ subagentName: 'done', goalPrompt: 'one' }, runner)
  const running = lost.launch({ subagentName: 'running', goalPrompt: 'two' }, hanging)
  await lost.waitFor([done.id])
  await lost.stored()
  // Its machine is lost: nothing of it runs or writes any more.
  await server.run(`UPDATE ${schema}.owners SET expires_at = now() - interval '1 s', epoch = epoch + 1`)

  const moved = new AsyncTaskManager({ store: await openStore(storeAt({ schema })) })
  const { interrupted } = await moved.recovered
  expect(interrupted).toEqual([running.id])
  const told: string[] = []
  for (let lease = moved.lease(); lease !== undefined; lease = moved.lease()) {
    await lease.stored
    told.push(...lease.tasks.map(({ id, status }) => `${id} ${status}`))
    lease.acknowledge()
  }
  expect(told.sort()).toEqual([`${done.id} completed`, `${running.id} failed`].sort())
  await moved.dispose()
  await lost.dispose()
  const empty = new AsyncTaskManager({ store: await openStore(storeAt({ schema })) })
  await empty.recovered
  expect(empty.lease()).toBeUndefined()
  await empty.dispose()
})
