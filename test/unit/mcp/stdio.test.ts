/** The server over stdio, on streams of the test: notifications for clients of both generations, and how it ends. */
import { PassThrough } from 'node:stream'
import { createInterface } from 'node:readline'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startMcpStdioServer } from '../../../src/mcp/stdio.js'
import type { SubagentRunner } from '../../../src/tools/subagents.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { until } from '../../support/lifelines.js'

interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: { readonly uri?: string }
  readonly result?: { readonly structuredContent?: Record<string, unknown> }
}

const hanging: SubagentRunner = (_request, { signal }) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))

function setUp() {
  const clock = createManualClock(Date.UTC(2026, 0, 1))
  const [input, output] = [new PassThrough(), new PassThrough()]
  const logged: string[] = []
  const server = startMcpStdioServer({
    input,
    output,
    clock,
    subagents: { hangs: { run: hanging } },
    writeLog: (line) => logged.push(line),
  })
  onTestFinished(() => server.close())
  const told: Message[] = []
  createInterface({ input: output }).on('line', (line) => told.push(JSON.parse(line) as Message))
  let lastId = 0
  const say = (message: object) => void input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const ask = async (method: string, params: object = {}): Promise<Message> => {
    const id = ++lastId
    say({ id, method, params })
    await until(() => told.some((message) => message.id === id))
    return told.find((message) => message.id === id)!
  }
  const launch = async (more: object = {}): Promise<string> => {
    const call = { name: 'task', arguments: { subagent_name: 'hangs', goal_prompt: 'g', async: true }, ...more }
    const { result } = await ask('tools/call', call)
    return result!.structuredContent!['task_id'] as string
  }
  /** What it was told of its own accord since, in words. */
  const notices = () =>
    told
      .splice(0)
      .filter(({ method }) => method !== undefined)
      .map(({ method, params }) => [method!.replace('notifications/', ''), params?.uri].filter(Boolean).join(' '))
  return { clock, input, output, server, logged, say, ask, launch, notices }
}

const CLIENT = { name: 'raw', version: '1' }

describe('a client of 2025', () => {
  it('is notified of the tasks it subscribed to, once for changes at the same time, and not after it has unsubscribed', async () => {
    const { clock, say, ask, launch, notices } = setUp()
    await ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: CLIENT })
    say({ method: 'notifications/initialized' })
    const [first, second] = [await launch(), await launch()]
    await ask('resources/subscribe', { uri: `task://${first}` })
    notices()
    clock.advance(100)
    await ask('ping')
    expect(notices()).toEqual(['resources/list_changed', `resources/updated task://${first}`])
    for (const task_id of [first, second]) {
      await ask('tools/call', { name: 'cancel_async_task', arguments: { task_id } })
    }
    notices()
    clock.advance(100)
    await ask('ping')
    expect(notices()).toEqual([`resources/updated task://${first}`])
    const third = await launch()
    await ask('resources/subscribe', { uri: `task://${third}` })
    await ask('resources/unsubscribe', { uri: `task://${third}` })
    notices()
    clock.advance(100)
    await ask('ping')
    expect(notices()).toEqual(['resources/list_changed'])
  })
})

describe('a client of 2026-07-28', () => {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': CLIENT,
    'io.modelcontextprotocol/clientCapabilities': {},
  }

  it('is notified of what it listens for', async () => {
    const { clock, say, ask, launch, notices } = setUp()
    await ask('server/discover', { _meta })
    const id = await launch({ _meta })
    const notifications = { resourceSubscriptions: [`task://${id}`] }
    say({ id: 'listening', method: 'subscriptions/listen', params: { _meta, notifications } })
    await ask('tools/list', { _meta })
    notices()
    clock.advance(100)
    await ask('tools/list', { _meta })
    expect(notices()).toEqual([`resources/updated task://${id}`])
  })
})

describe('the server', () => {
  it.each([
    ['its input ends', ({ input }: ReturnType<typeof setUp>) => void input.end()],
    ['its output is closed', ({ output }: ReturnType<typeof setUp>) => void output.destroy()],
    ['it is closed', ({ server }: ReturnType<typeof setUp>) => void server.close()],
  ])('ends with its tasks when %s', async (_how, end) => {
    const host = setUp()
    await host.ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: CLIENT })
    await host.launch()
    end(host)
    await host.server.closed
    expect(host.clock.pending).toBe(0)
  })

  it('continues after a line that is not a message, and logs it', async () => {
    const { input, ask, logged } = setUp()
    input.write('this is no JSON\n')
    input.write('{"jsonrpc":"2.0","id":{}}\n')
    const { result } = await ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: CLIENT })
    expect(result).toMatchObject({ serverInfo: { name: 'agent-tasks' } })
    expect(logged).toEqual([expect.stringMatching(/^agent-tasks warn: connection: /)])
  })
})
