/** Sessions over HTTP that a server left when it was killed: who gets what they had. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startMcpStdioServer } from '../../../src/mcp/stdio.js'
import { PassThrough } from 'node:stream'
import { until } from '../../support/lifelines.js'
import { overHttp, textOf } from './clients.js'

const TOKEN = { authorization: 'Bearer alice' }
const OTHER = { authorization: 'Bearer bob' }
const NOBODY = {}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-left-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'store')
}

const serve = (store: string, headers: Record<string, string>) => overHttp({ store, session: 'key' }, headers)

/** A server that was killed after a session had got a result that it was not told of. */
async function killed(headers: Record<string, string>) {
  const folder = newFolder()
  const { launch, end, manager, server } = await serve(folder, headers)
  const id = await launch()
  end(id, 'the answer')
  await until(() => manager.getTask(id)?.status === 'completed' && manager.registry.persistence?.isPending === false)
  const copy = newFolder()
  cpSync(folder, copy, { recursive: true })
  return { id, copy, folder, server }
}

describe('a client with a token', () => {
  it('gets what its session left in its next one, once', async () => {
    const { id, copy } = await killed(TOKEN)
    const { call, manager } = await serve(copy, TOKEN)
    const told = await call('list_instances')
    expect(textOf(told)).toContain('the answer')
    expect(told.structuredContent).toMatchObject({ earlier_session: [id] })
    expect(textOf(await call('list_instances'))).not.toContain('the answer')
    expect(manager.getTask(id)?.owner).toMatch(/^client-[0-9a-f]{16}\/session-/)
  })

  it.each([
    ['another token', OTHER],
    ['no token', NOBODY],
  ])('has what its session left to itself: a client with %s gets none of it', async (_who, headers) => {
    const { id, copy } = await killed(TOKEN)
    const { call } = await serve(copy, headers)
    expect(textOf(await call('list_instances'))).not.toContain('the answer')
    expect(textOf(await call('check_async_tasks', { task_id: id }))).toContain('No async task found')
  })

  it('gets it also after the server was closed in order', async () => {
    const { folder, server } = await killed(TOKEN)
    await server.close()
    const { call } = await serve(folder, TOKEN)
    expect(textOf(await call('list_instances'))).toContain('the answer')
  })
})

describe('a client without a token', () => {
  it('gets what its session left when it names a task of it, and not before', async () => {
    const { id, copy } = await killed(NOBODY)
    const { call } = await serve(copy, NOBODY)
    expect(textOf(await call('list_instances'))).not.toContain('the answer')
    expect(textOf(await call('check_async_tasks', { task_id: id.slice(0, -1) }))).not.toContain('the answer')
    expect(textOf(await call('check_async_tasks', { task_id: id }))).toContain('the answer')
  })
})

describe('a session that nobody comes back to', () => {
  it('ends after the idle time, and the log says what is lost', async () => {
    const { id, copy } = await killed(TOKEN)
    const { manager, clock, logged } = await serve(copy, OTHER)
    clock.advance(1_799_999)
    expect(manager.getTask(id)?.delivery).toBe('owed')
    clock.advance(1)
    expect(manager.getTask(id)?.delivery).toBe('none')
    expect(logged.join('\n')).toContain('the results of 1 task(s) of an earlier session were dropped')
  })
})

describe('the client of a server over stdio', () => {
  it('gets what a server over HTTP left', async () => {
    const { copy } = await killed(TOKEN)
    const [input, output] = [new PassThrough(), new PassThrough()]
    const server = startMcpStdioServer({ input, output, store: copy, session: 'key', writeLog: () => undefined })
    onTestFinished(() => server.close())
    const say = (message: object) => void input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
    const clientInfo = { name: 'raw', version: '1' }
    say({ id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo } })
    say({ id: 1, method: 'tools/call', params: { name: 'list_instances', arguments: {} } })
    let said = ''
    output.on('data', (chunk) => (said += String(chunk)))
    await until(() => said.includes('"id":1'))
    expect(said).toContain('the answer')
  })
})
