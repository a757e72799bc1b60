/** What connects with `pg`: the store, and the commands that take the URL of one. On PGlite, behind a port of the loopback. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { Connection, connectWithPg, type PostgresClient } from '../../../../src/store/postgres/connection.js'
import { postgresStore } from '../../../../src/store/postgres/index.js'
import { openStore } from '../../../../src/store/index.js'
import { localPostgres, type LocalPostgres } from '../../../support/pglite.js'
import { listenLocally, servePostgres, type LocalServer } from '../../../support/served-pglite.js'
import { jsonLines, run } from '../../cli/command-line.js'
import { storedTask } from '../stored-task.js'
import { waitFor } from '../../../support/wait-for.js'

let postgres: LocalPostgres
let server: LocalServer

beforeAll(async () => {
  postgres = await localPostgres()
  server = await servePostgres(postgres.database)
})
afterAll(async () => {
  await server.close()
  await postgres.close()
})

const urlOf = (schema: string, session: string): string => `${server.url}?schema=${schema}&session=${session}`

/** A session that holds a task which has ended. */
async function fill(schema: string, session: string) {
  const store = await openStore(postgresStore({ connection: server.url, schema, session }))
  await store.write([{ table: 'tasks', put: storedTask('done', { record: { goalPrompt: 'the login page' } }) }])
  return store
}

describe('a connection', () => {
  it('says why there is none: nobody listens, or the server hangs up', async () => {
    const closed = await listenLocally(() => undefined)
    await closed.close()
    await expect(connectWithPg(closed.url)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    const rude = await listenLocally((socket) => socket.once('data', () => socket.end()))
    onTestFinished(() => rude.close())
    await expect(connectWithPg({ host: '127.0.0.1', port: rude.port })).rejects.toThrow('Connection terminated')
  })

  it('that the server resets while nothing is asked is opened again, and is no uncaught error', async () => {
    const clients: PostgresClient[] = []
    const connection = new Connection(async () => {
      const client = await connectWithPg(server.url)
      clients.push(client)
      return client
    })
    onTestFinished(() => connection.close())
    expect(await connection.query('SELECT 1 AS one')).toEqual([{ one: 1 }])
    const ended = new Promise<void>((resolve) => clients[0]?.on?.('end', resolve))
    server.reset()
    await ended
    expect(await connection.query('SELECT $1::int AS two', [2])).toEqual([{ two: 2 }])
    expect(clients).toHaveLength(2)
  })
})

describe('the URL of a store', () => {
  it('is what doctor looks at: its session, and who has it', async () => {
    const store = await fill('checked', 'mine')
    const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-socket-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const findings = async (location: string) => {
      const file = join(folder, 'config.json')
      writeFileSync(file, JSON.stringify({ store: location }))
      const env = { PORT: '0', TASKS_WS_PORT: '0', PATH: process.env['PATH'] ?? '' }
      const { stdout } = await run(['doctor', '--json', '--config', file], { env })
      return (jsonLines(stdout) as { check: string }[]).find(({ check }) => check === 'store')
    }
    const url = urlOf('checked', 'mine')
    const detail = expect.stringMatching(/^PostgreSQL: session "mine", in use by \S+/) as string
    expect(await findings(url)).toEqual({ check: 'store', state: 'ok', detail })
    expect(await findings(urlOf('checked', 'other'))).toMatchObject({ detail: 'PostgreSQL: session "other"' })
    await postgres.database.query(`UPDATE checked.rows SET body = body || ' ' WHERE id = 'done'`)
    const damaged = expect.stringContaining('the row "done" of tasks is damaged') as string
    expect(await findings(url)).toMatchObject({ state: 'missing', detail: damaged })
    await store.close()
    const gone = await listenLocally(() => undefined)
    await gone.close()
    const refused = await findings(gone.url)
    expect(refused).toMatchObject({ state: 'missing', detail: expect.stringContaining('ECONNREFUSED') as string })
    expect(JSON.stringify(refused)).not.toContain('secret')
  })

  it('is what the commands for stores read, and they do not print its password', async () => {
    const store = await fill('read', 'mine')
    await store.close()
    const url = urlOf('read', 'mine')
    const shown = await run(['store', 'show', url])
    expect(shown.stdout).toMatch(/^SESSION[^]*\nmine\s+nobody\s+1\s/)
    const checked = await run(['store', 'check', url])
    expect(checked.stdout).toContain('is sound: 1 tasks')
    const others = [await run(['store', 'show', url, '--json']), await run(['store', 'export', url])]
    expect(others.map(({ exitCode }) => exitCode)).toEqual([0, 0])
    expect(JSON.stringify([shown, checked, others])).not.toContain('secret')
    const { stdout } = await run(['tasks', 'history', '--json', '--store', url])
    expect(jsonLines(stdout)).toMatchObject([{ task_id: 'done', status: 'completed' }])
  })

  it('is where `mcp` keeps its session, and another owner of the session ends it with exit code 1', async () => {
    const { exitCode } = process
    const exit = vi.spyOn(process, 'exit').mockImplementation(() => undefined as never)
    const said = vi.spyOn(console, 'error').mockReturnValue()
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
    const before = signals.map((name) => process.listeners(name))
    // The lease is renewed after some seconds.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => {
      process.exitCode = exitCode
      vi.useRealTimers()
      for (const spy of [exit, said]) spy.mockRestore()
      for (const [at, name] of signals.entries()) {
        for (const each of process.listeners(name)) if (before[at]?.includes(each) !== true) process.off(name, each)
      }
    })
    const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-socket-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const config = join(folder, 'config.json')
    writeFileSync(config, '{}')
    const args = ['mcp', '--config', config, '--http', '--port', '0', '--store', urlOf('served', 'mine')]
    expect(await run(args)).toMatchObject({ exitCode: 0, stdout: '' })
    const lines = (): string => said.mock.calls.flat().join('\n')
    const name = `postgres://127.0.0.1:${server.port}/tasks (schema served, session mine)`
    expect(lines()).toContain(`agent-tasks info: store: ${name}\n`)
    const [, url = ''] = /MCP at (\S+)/.exec(lines()) ?? []
    expect((await fetch(url)).status).toBeLessThan(500)
    expect(exit).not.toHaveBeenCalled()
    await postgres.database.query('UPDATE served.owners SET epoch = epoch + 1')
    await waitFor(() => expect(exit).toHaveBeenCalledExactlyOnceWith())
    expect(lines()).toContain(`agent-tasks error: ${name}: another owner has taken over.`)
    expect(process.exitCode).toBe(1)
    await expect(fetch(url)).rejects.toThrow()
  })
})
