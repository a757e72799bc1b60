/** Sessions over HTTP that a server left when it was killed: who gets what they had. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager } from 'agent-tasks'
import { createManualClock } from 'agent-tasks/testing'
import { STDIO_OWNER } from '../../../src/mcp/callers.js'
import { createLeftSessions } from '../../../src/mcp/left-sessions.js'
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
  await until(() => manager.getTask(id)?.status === 'completed' && manager.registry.persistence?.isSettled() === true)
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
    expect(logged.join('\n')).toContain('dropped the results of 1 task(s) of an earlier session')
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

describe('the timer of what was left', () => {
  function setUp(owners: readonly string[]) {
    const clock = createManualClock()
    const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
    for (const owner of owners) manager.registerTask({ id: `of ${owner}`, subagentName: 's', goalPrompt: 'g', owner })
    const [ended, logged]: [string[], string[]] = [[], []]
    const backend = { manager, session: {}, clock, log: (_level: string, text: string) => void logged.push(text) }
    const end = (owner: string): void => {
      ended.push(owner)
      manager.releaseOwner(owner)
    }
    const left = createLeftSessions(backend as never, end, 1000)
    return { clock, manager, ended, logged, left }
  }
  const caller = (owner: string, isAnonymous = false) => ({ owner, isAnonymous })
  const TOKEN_OWNER = `client-${'0'.repeat(16)}`

  it('is set again as long as a task of a session runs, and is gone when no session is left', () => {
    const { clock, manager, ended, logged } = setUp(['session-1', 'session-2'])
    manager.cancelTask('of session-1')
    manager.markNotified('of session-1')
    clock.advance(1000)
    expect([ended, logged]).toEqual([['session-1'], []])
    clock.advance(3000)
    expect([ended, clock.pending]).toEqual([['session-1'], 1])
    manager.completeTask('of session-2', {})
    clock.advance(999)
    expect(ended).toEqual(['session-1'])
    clock.advance(1)
    expect([ended, clock.pending]).toEqual([['session-1', 'session-2'], 0])
    expect(logged).toEqual(['dropped the results of 1 task(s) of an earlier session: no client asked for them in time'])
  })

  it('is not set for owners that are no sessions, and gone when the server closes', () => {
    expect(setUp(['helper', 'other-session-1', 'client-1/session-1']).clock.pending).toBe(0)
    const { clock, left } = setUp([STDIO_OWNER])
    expect(clock.pending).toBe(1)
    left.close()
    expect(clock.pending).toBe(0)
  })

  it('does not end what was handed over: neither the whole of a token nor what was named', () => {
    const { clock, manager, ended, left } = setUp([`${TOKEN_OWNER}/session-1`, 'session-2', 'session-3'])
    left.handOver(caller('anonymous', true), 'session-9')
    left.handOver(caller(TOKEN_OWNER), `${TOKEN_OWNER}/session-8`)
    left.handOverNamed(caller(TOKEN_OWNER), ['of session-2'], `${TOKEN_OWNER}/session-8`)
    left.handOverNamed(caller('anonymous', true), ['of session-3', 'unknown'], 'session-9')
    expect(manager.getAllTasks().map(({ id, owner }) => [id, owner])).toEqual([
      [`of ${TOKEN_OWNER}/session-1`, `${TOKEN_OWNER}/session-8`],
      ['of session-2', 'session-2'],
      ['of session-3', 'session-9'],
    ])
    for (const { id } of manager.getAllTasks()) manager.completeTask(id, {})
    clock.advance(1000)
    expect([ended, clock.pending]).toEqual([['session-2'], 0])
  })
})

describe('schedules of a session that a server left', () => {
  const config = { schedules: {} }

  it('F16: pass to the next session of the client, and are its own there', async () => {
    const folder = newFolder()
    const first = await overHttp({ store: folder, session: 'key', ...config }, TOKEN)
    await first.call('schedule', { in_seconds: 3600, message: 'look' })
    const copy = newFolder()
    cpSync(folder, copy, { recursive: true })
    const second = await overHttp({ store: copy, session: 'key', ...config }, TOKEN)
    expect(textOf(await second.call('schedule', { action: 'list' }))).toContain('message: look')
    expect(second.manager.schedules()[0]?.owner).toMatch(/^client-[0-9a-f]{16}\/session-/)
  })

  it('F16: end as an idle session does when nobody asks for them', async () => {
    const folder = newFolder()
    const first = await overHttp({ store: folder, session: 'key', ...config }, TOKEN)
    await first.call('schedule', { every_seconds: 3600, message: 'look' })
    const copy = newFolder()
    cpSync(folder, copy, { recursive: true })
    const second = await overHttp({ store: copy, session: 'key', ...config }, OTHER)
    expect(second.manager.schedules()).toHaveLength(1)
    const clock = createManualClock()
    createLeftSessions({ ...second.backend, clock }, (owner) => void second.manager.releaseOwner(owner), 1000)
    clock.advance(1000)
    expect(second.manager.schedules()).toEqual([])
  })
})
