/** When the work of a server over stdio begins: not with a client that only looks whether the server answers. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { PassThrough } from 'node:stream'
import { describe, expect, it, onTestFinished } from 'vitest'
import { memoryStore, openStore } from 'agent-tasks/store'
import { startMcpStdioServer } from '../../../src/mcp/stdio.js'
import type { McpServerOptions } from '../../../src/mcp/backend.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { until } from '../../support/lifelines.js'
import { CLIENT, textOf, type Called } from './clients.js'

const HOUR = 3_600_000
const START = Date.UTC(2026, 0, 1)

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-begin-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'store')
}

/** A server, with a client that writes its messages itself. */
function serve(store: NonNullable<McpServerOptions['store']>, now = START) {
  /** The attempts that have begun. */
  const runs: number[] = []
  const [input, output] = [new PassThrough(), new PassThrough()]
  const clock = createManualClock(now)
  const server = startMcpStdioServer({
    input,
    output,
    clock,
    store,
    ...(typeof store === 'string' && { session: 'key' }),
    config: { schedules: {} },
    writeLog: () => undefined,
    subagents: {
      slow: {
        retry: { attempts: 3, on: ['interrupted'] },
        run: (_request, { signal, attempt }) => {
          runs.push(attempt)
          return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))
        },
      },
    },
  })
  onTestFinished(() => server.close())
  const answers = new Map<number, Called & Record<string, unknown>>()
  createInterface({ input: output }).on('line', (line) => {
    const { id, result, error } = JSON.parse(line) as { id?: number; result?: Called; error?: Called }
    if (id !== undefined) answers.set(id, (result ?? error) as Called & Record<string, unknown>)
  })
  let lastId = 0
  const ask = async (method: string, params: object = {}) => {
    const id = ++lastId
    input.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    await until(() => answers.has(id))
    return answers.get(id)!
  }
  const initialize = () => ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: CLIENT })
  const call = (name: string, args: object = {}) => ask('tools/call', { name, arguments: args })
  return { server, input, clock, ask, call, initialize, runs }
}

/** The store of a server that was killed while a task ran, and with a schedule that fires in an hour. */
async function killed(): Promise<string> {
  const folder = newFolder()
  const { initialize, call, runs } = serve(folder)
  await initialize()
  await call('task', { subagent_name: 'slow', goal_prompt: 'g', async: true })
  await call('schedule', { in_seconds: 3600, message: 'look at it' })
  await until(() => runs.length === 1)
  const copy = newFolder()
  cpSync(folder, copy, { recursive: true })
  return copy
}

/** The files of a store that have content. */
const dataIn = (store: string): string[] => readdirSync(store).filter((name) => /\.(db|json)$/.test(name))

const modern = {
  _meta: {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': CLIENT,
    'io.modelcontextprotocol/clientCapabilities': {},
  },
}

/** What clients ask of a server to learn whether it answers, and what it offers. */
const LOOKS: readonly (readonly [string, readonly (readonly [string, object])[]])[] = [
  [
    '2025-11-25',
    [
      ['initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: CLIENT }],
      ['ping', {}],
      ['tools/list', {}],
      ['prompts/list', {}],
      ['prompts/get', { name: 'background-tasks' }],
      ['resources/templates/list', {}],
    ],
  ],
  [
    '2026-07-28',
    [
      ['server/discover', modern],
      ['tools/list', modern],
      ['prompts/list', modern],
    ],
  ],
]

describe('a server over stdio with a store', () => {
  it.each(LOOKS)('P1: does no work for a client of %s that only looks what it offers', async (_version, requests) => {
    const store = await killed()
    const names = dataIn(store)
    for (let session = 0; session < 3; session += 1) {
      const host = serve(store, START + 2 * HOUR)
      for (const [method, params] of requests) await host.ask(method, params)
      host.clock.advance(HOUR)
      host.input.end()
      await host.server.closed
      expect(host.runs).toEqual([])
    }
    expect(dataIn(store)).toEqual(names)
    const { initialize, call, clock, runs } = serve(store, START + 2 * HOUR)
    await initialize()
    expect(textOf(await call('check_async_tasks'))).toContain('slow')
    await until(() => runs.length === 1)
    clock.advance(1)
    const later = await call('check_async_tasks')
    expect(textOf(later)).toContain('look at it')
    expect(runs).toEqual([2])
  })

  it.each([
    ['resources/list', {}],
    ['resources/read', { uri: 'task://none' }],
    ['resources/subscribe', { uri: 'task://none' }],
    ['tasks/list', {}],
    ['tasks/get', { taskId: 'none' }],
    ['tools/call', { name: 'list_instances', arguments: {} }],
  ])('P1: begins its work with %s', async (method, params) => {
    const { initialize, ask, runs } = serve(await killed())
    await initialize()
    expect(runs).toEqual([])
    await ask(method, params)
    await until(() => runs.length === 1)
  })

  it('P1: leaves the tasks to the server whose client works, while another one idles', async () => {
    const store = await killed()
    const idle = serve(store)
    await idle.initialize()
    const busy = serve(store)
    await busy.initialize()
    expect(textOf(await busy.call('check_async_tasks'))).toContain('slow')
    expect(textOf(await idle.call('check_async_tasks'))).not.toContain('slow')
  })

  it('P1: answers calls with the reason while the store cannot be opened, and works when it can', async () => {
    const store = await killed()
    const { initialize, ask, call, runs } = serve(store)
    await initialize()
    const file = join(
      store,
      readdirSync(store).find((name) => name.endsWith('.db') && !name.includes('history'))!,
    )
    const content = readFileSync(file)
    writeFileSync(file, 'no database')
    expect(await call('check_async_tasks')).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining(file) as unknown }],
    })
    expect(await ask('resources/list')).toMatchObject({
      code: -32603,
      message: expect.stringContaining(file) as unknown,
    })
    writeFileSync(file, content)
    expect(textOf(await call('check_async_tasks'))).toContain('slow')
    await until(() => runs.length === 1)
  })

  it('P1: refuses a store that cannot be used when it starts', async () => {
    const store = await killed()
    const file = join(
      store,
      readdirSync(store).find((name) => name.endsWith('.db') && !name.includes('history'))!,
    )
    writeFileSync(file, 'no database')
    expect(() => serve(store)).toThrow(file)
  })

  it('closes an open store that it has not used', async () => {
    const inner = memoryStore()
    let closed = 0
    const close = (): void => {
      closed += 1
      inner.close()
    }
    const { server, initialize } = serve(await openStore({ ...inner, close }))
    await initialize()
    await server.close()
    expect(closed).toBe(1)
  })
})
