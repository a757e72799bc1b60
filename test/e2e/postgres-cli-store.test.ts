/** The command line on a store in PostgreSQL: servers that are killed, and the commands that look into it. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { runProgram } from '../../src/cli/program.js'
import { postgresStore } from '../../src/store/postgres/index.js'
import { openStore, sqliteStore, type StoreChange } from '../../src/store/index.js'
import { startPostgres, type PostgresServer } from '../support/postgres-server.js'
import { storedTask } from '../unit/store/stored-task.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const main = join(root, 'dist/src/cli/main.js')

let server: PostgresServer
let schemas = 0

beforeAll(async () => {
  execFileSync('npm', ['run', '--silent', 'built'], { cwd: root, stdio: 'inherit' })
  server = await startPostgres()
}, 180_000)
afterAll(() => server.close())

/** The URL of a store of its own; `session` names one of its sessions. */
function freshUrl(): { readonly schema: string; readonly url: (session?: string) => string } {
  const schema = `cli_${(schemas += 1)}`
  return {
    schema,
    url: (session) => `${server.url}?schema=${schema}${session === undefined ? '' : `&session=${session}`}`,
  }
}

/** As if the time had passed for which a killed owner keeps its store. */
const expireLease = (schema: string) => server.run(`UPDATE ${schema}.owners SET expires_at = now()`)

function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-postgres-cli-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function run(...args: string[]) {
  let [out, err] = ['', '']
  const io = {
    stdout: { write: (text: string) => (out += text) },
    stderr: { write: (text: string) => (err += text) },
    env: {},
    readStdin: () => Promise.resolve(''),
  }
  const code = await runProgram(args, io, '0')
  return { out, err, code }
}

const ROWS: readonly StoreChange[] = [
  { table: 'tasks', put: storedTask('a', { record: { goalPrompt: 'look into it' } }) },
  { table: 'deliveries', put: { id: 'd', owner: 'main', state: 'sent', at: 1, taskIds: ['a'] } },
  { table: 'commandTasks', put: { id: 'c', instanceId: 'i', status: 'queued', seq: 1, createdAt: 0, record: {} } },
]

async function fill(schema: string, session: string): Promise<void> {
  const store = await openStore(postgresStore({ connection: server.url, schema, session }))
  await store.write(ROWS)
  await store.close()
}

describe('agent-tasks store', () => {
  it('shows the sessions of a schema, exports and checks them', async () => {
    const { schema, url } = freshUrl()
    await fill(schema, 'one')
    await fill(schema, 'two')
    expect((await run('store', 'show', url())).out).toMatch(/one\s+nobody\s+1\s+0\s+1[^]*two\s+nobody\s+1\s+0\s+1/)
    expect(JSON.parse((await run('store', 'show', url('two'), '--json')).out)).toMatchObject({
      sessions: [{ session: 'two', tasks: 1, owed: 1 }],
    })
    const exported = (await run('store', 'export', url('one'))).out.trim().split('\n')
    expect(exported.map((line) => JSON.parse(line) as object)).toMatchObject([
      { session: 'one', table: 'tasks', row: { id: 'a' } },
      { session: 'one', table: 'deliveries', row: { id: 'd' } },
      { session: 'one', table: 'commandTasks', row: { id: 'c' } },
    ])
    expect(await run('store', 'check', url())).toMatchObject({
      code: 0,
      out: expect.stringMatching(/two.*is sound/) as string,
    })
    await server.run(`UPDATE ${schema}.rows SET body = body || ' ' WHERE session = 'two' AND id = 'a'`)
    const damaged = await run('store', 'check', url())
    expect(damaged).toMatchObject({ code: 2, err: expect.stringMatching(/session two.*"a".*damaged/) as string })
    expect(damaged.out).toMatch(/"one", is sound/)
  })

  it('lists the history of all sessions', async () => {
    const { schema, url } = freshUrl()
    for (const session of ['one', 'two']) {
      const store = await openStore(postgresStore({ connection: server.url, schema, session }))
      const task = { kind: 'task' as const, owner: 'main', name: 'x', status: 'completed', completedAt: Date.now() }
      await store.history?.add([{ ...task, id: `of ${session}`, record: { goalPrompt: `look at ${session}` } }])
      await store.close()
    }
    const idsOf = async (...args: string[]): Promise<string[]> =>
      (await run('tasks', 'history', '--json', ...args)).out
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { task_id: string }).task_id)
        .sort()
    expect(await idsOf('--store', url())).toEqual(['of one', 'of two'])
    expect(await idsOf('--store', url(), '--text', 'two')).toEqual(['of two'])
    expect(await idsOf('--store', url('one'))).toEqual(['of one'])
  })

  it('says who uses a session, and shows no password', async () => {
    const { schema, url } = freshUrl()
    const store = await openStore(postgresStore({ connection: server.url, schema, session: 'used' }))
    const { out, err } = await run('store', 'show', url().replace('postgres@', 'postgres:secret@'))
    await store.close()
    expect(out).toMatch(new RegExp(`used\\s+process ${process.pid} on `))
    expect(out + err).not.toContain('secret')
  })

  it('copies a file to PostgreSQL and back, and refuses what is not empty or is in use', async () => {
    const { url } = freshUrl()
    const folder = freshFolder()
    const file = join(folder, 'tasks.db')
    const source = sqliteStore(file)
    source.open()
    await source.write(ROWS)
    expect(await run('store', 'copy', file, url('x'))).toMatchObject({
      code: 2,
      err: expect.stringContaining('in use by this process') as string,
    })
    source.close()
    expect(await run('store', 'copy', file, url('x'))).toMatchObject({
      code: 0,
      out: 'Copied: 1 tasks, 1 command tasks, 1 messages, 0 instances. Its history is not copied.\n',
    })
    expect(await run('store', 'copy', file, url('x'))).toMatchObject({
      code: 2,
      err: expect.stringContaining('it holds tasks already') as string,
    })
    const back = join(folder, 'back.db')
    expect((await run('store', 'copy', url('x'), back)).code).toBe(0)
    const rowsOf = async (at: string): Promise<unknown[]> =>
      (await run('store', 'export', at)).out
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { row: unknown }).row)
    expect(await rowsOf(back)).toEqual(await rowsOf(file))
    expect(await rowsOf(url('x'))).toEqual(await rowsOf(file))
    expect(await run('store', 'copy', url('nobody'), join(folder, 'none.db'))).toMatchObject({
      code: 2,
      err: expect.stringContaining('there is no session "nobody"') as string,
    })
    expect(existsSync(join(folder, 'none.db'))).toBe(false)
    expect(await run('store', 'copy', folder, url('y'))).toMatchObject({
      code: 2,
      err: expect.stringContaining('is a folder') as string,
    })
  })

  it.each([
    ['postgres://127.0.0.1:1/none', 'nothing listens at this address'],
    ['postgres://[', 'Setting store: '],
    ['postgres://127.0.0.1/x?schema=a-b', 'options.schema'],
  ])('names what is wrong with %s', async (url, message) => {
    expect(await run('store', 'show', url)).toMatchObject({ code: 2, err: expect.stringContaining(message) as string })
  })
})

it('agent-tasks doctor looks into the store of the configuration', async () => {
  const { url } = freshUrl()
  const config = join(freshFolder(), 'agent-tasks.config.json')
  const finding = async (store: string): Promise<object | undefined> => {
    writeFileSync(config, JSON.stringify({ store, session: 's' }))
    const { out } = await run('doctor', '--config', config, '--json')
    return out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { check: string })
      .find(({ check }) => check === 'store')
  }
  expect(await finding(url())).toMatchObject({ state: 'ok', detail: 'PostgreSQL: session "s"' })
  expect(await finding(url('of-the-url'))).toMatchObject({ state: 'ok', detail: 'PostgreSQL: session "of-the-url"' })
  expect(await finding('postgres://[')).toMatchObject({ state: 'missing' })
  expect(await finding('postgres://127.0.0.1:1/none')).toMatchObject({
    state: 'missing',
    detail: expect.stringContaining('nothing listens at this address') as string,
  })
})

describe('agent-tasks serve', () => {
  /** Starts a server; resolves with the URL of its REST interface. */
  async function serve(store: string) {
    const args = [main, 'serve', '--demo', '--no-page', '--json', '--port', '0', '--ws-port', '0', '--store', store]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'], cwd: freshFolder() })
    let errors = ''
    child.stderr.on('data', (data: Buffer) => (errors += data.toString()))
    const exited = once(child, 'exit')
    onTestFinished(async () => {
      child.kill('SIGKILL')
      await exited
    })
    for await (const line of createInterface({ input: child.stdout })) {
      if (!line.startsWith('{')) continue
      const { httpUrl } = JSON.parse(line) as { readonly httpUrl?: string }
      if (httpUrl !== undefined) return { child, exited, httpUrl, errors: () => errors }
    }
    throw new Error(`the server has ended: ${errors}`)
  }

  const tasksOf = async (httpUrl: string): Promise<{ id: string; status: string }[]> => {
    const answer = await fetch(`${httpUrl}/tasks`)
    return ((await answer.json()) as { tasks: { id: string; status: string }[] }).tasks
  }

  it('goes on with queued tasks after a kill -9, and ends when another server has taken its session', async () => {
    const { schema, url } = freshUrl()
    const store = url('server')
    const first = await serve(store)
    const submit = (seconds: number) =>
      fetch(`${first.httpUrl}/tasks`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ task_name: 'waits', commands: [{ tool_name: 'slow', args: { seconds } }] }),
      })
    expect((await submit(30)).status).toBe(201)
    expect((await submit(0)).status).toBe(201)
    first.child.kill('SIGKILL')
    await first.exited
    await expireLease(schema)
    const second = await serve(store)
    await expect
      .poll(async () => (await tasksOf(second.httpUrl)).map(({ status }) => status).sort(), { timeout: 20_000 })
      .toEqual(['completed', 'failed'])
    await server.run(`UPDATE ${schema}.owners SET epoch = epoch + 1`)
    expect(await second.exited).toEqual([1, null])
    expect(second.errors()).toContain('another owner has taken over')
  }, 90_000)
})

describe('agent-tasks mcp', () => {
  async function start(store: string, session: string, config: string) {
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [main, 'mcp', '--config', config, '--store', store, '--session', session],
      env: process.env as Record<string, string>,
      stderr: 'pipe',
    })
    let errors = ''
    transport.stderr?.on('data', (data: Buffer) => (errors += data.toString()))
    const client = new Client({ name: 'test', version: '1.0.0' })
    onTestFinished(() => client.close())
    await client.connect(transport).catch((error: unknown) => {
      throw new Error(errors, { cause: error })
    })
    const call = async (name: string, args: object = {}): Promise<string> => {
      const { content } = await client.callTool({ name, arguments: { ...args } })
      return (content as { text: string }[]).map(({ text }) => text).join('\n')
    }
    return { call, pid: transport.pid ?? 0, close: () => client.close() }
  }

  const configOf = (subagent: object): string => {
    const file = join(freshFolder(), 'agent-tasks.config.json')
    writeFileSync(
      file,
      JSON.stringify({ subagents: [{ name: 'echo', description: 'Echoes', command: 'sh', ...subagent }] }),
    )
    return file
  }

  it('tells on another machine what a killed server owed', async () => {
    const { schema, url } = freshUrl()
    const config = configOf({ args: ['-c', 'echo "result of {goal}"'] })
    const first = await start(url(), 'agent', config)
    await first.call('task', { subagent_name: 'echo', goal_prompt: 'x', async: true })
    await expect.poll(() => run('store', 'show', url('agent'), '--json').then(({ out }) => out)).toContain('"owed":1')
    process.kill(first.pid, 'SIGKILL')
    await expireLease(schema)
    const second = await start(url(), 'agent', configOf({ args: ['-c', 'echo "result of {goal}"'] }))
    expect(await second.call('check_async_tasks')).toContain('result of x')
    await second.close()
    expect((await run('store', 'show', url('agent'))).out).toContain('nobody')
  }, 90_000)

  it('exits with 1 when another server has taken its session', async () => {
    const { schema, url } = freshUrl()
    const args = [main, 'mcp', '--config', configOf({ args: ['-c', 'true'] }), '--store', url(), '--session', 'agent']
    const first = spawn(process.execPath, args, { stdio: ['pipe', 'ignore', 'pipe'] })
    onTestFinished(() => void first.kill('SIGKILL'))
    let said = ''
    first.stderr.on('data', (data: Buffer) => (said += data.toString()))
    const exited = once(first, 'exit')
    const shown = (): Promise<string> => run('store', 'show', url('agent')).then(({ out }) => out)
    await expect.poll(shown, { timeout: 60_000 }).toContain('process ')
    await server.run(`UPDATE ${schema}.owners SET expires_at = now() + interval '1 h', epoch = epoch + 1`)
    expect((await exited)[0]).toBe(1)
    expect(said).toContain('another owner has taken over')
  }, 90_000)

  it('refuses a session that is in use, and programs that survive their host', async () => {
    const { url } = freshUrl()
    const config = configOf({ args: ['-c', 'true'] })
    await start(url(), 'agent', config)
    await expect(start(url(), 'agent', config)).rejects.toThrow(/in use by process \d+ on/)
    const surviving = configOf({ args: ['-c', 'true'], survivesHost: true })
    await expect(start(url(), 'other', surviving)).rejects.toThrow(/subagents\[0\]\.survivesHost/)
    expect((await run('store', 'show', url('other'))).out).toMatch(/other\s+nobody/)
  }, 90_000)
})
