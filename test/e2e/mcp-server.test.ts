/**
 * The built MCP server as agents meet it: a process behind stdio or a port, clients of both generations of the official SDK,
 * the client side of the Tasks extension, and MCP's inspector.
 */
import { execFile, execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { createTaskSessionFromClient } from '@modelcontextprotocol/ext-tasks/client'
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as FirstStdioTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { startMcpHttpServer } from '../../src/mcp/http.js'
import { isAlive, openLifelines, until } from '../support/lifelines.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const server = [join(root, 'dist/src/cli/main.js'), 'mcp']
const everything = join(root, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')
const MODERN = '2026-07-28'

beforeAll(() => {
  execFileSync('npm', ['run', '--silent', 'built'], { cwd: root, stdio: 'inherit' })
}, 120_000)

interface ToolAnswer {
  readonly content: { readonly text: string }[]
  readonly structuredContent: Record<string, unknown>
  readonly isError?: boolean
}

/** The part of a client that these tests use. */
interface AnyClient {
  listTools(): Promise<{ tools: { name: string }[] }>
  close(): Promise<void>
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<unknown>
}

function configFile(config: object): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-mcp-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'agent-tasks.config.json')
  writeFileSync(file, JSON.stringify(config))
  return file
}

const node = (name: string, script: string, more: object = {}) => ({
  name,
  description: `Runs ${name}`,
  command: process.execPath,
  args: ['-e', script, '--', '{goal}'],
  ...more,
})

const subagents = [
  node('shout', 'console.log(process.argv[1].toUpperCase())'),
  node(
    'count',
    'let i = 0; const timer = setInterval(() => { console.log("line " + ++i); if (i === 5) clearInterval(timer) }, 20)',
  ),
  node('hang', 'console.log("hanging"); setInterval(() => {}, 1000)'),
  node('crash', 'process.kill(process.pid, "SIGSEGV")'),
  { name: 'missing', description: 'Is not installed', command: '/no/such/program' },
  node('flood', 'process.stdout.write("x".repeat(3_000_000))'),
]

const argumentsFor = (config: object): string[] => [...server, '--config', configFile(config)]

const clients: readonly (readonly [string, (args: string[]) => Promise<AnyClient>])[] = [
  [
    'SDK 1.x',
    async (args) => {
      const client = new FirstClient({ name: 'first', version: '1.0.0' })
      await client.connect(new FirstStdioTransport({ command: process.execPath, args, stderr: 'ignore' }))
      return client
    },
  ],
  ['SDK 2.x, protocol of 2025', (args) => connect(args)],
  ['SDK 2.x, protocol of 2026-07-28', (args) => connect(args, MODERN)],
]

async function connect(args: string[], pin?: string): Promise<AnyClient> {
  const client = new Client(
    { name: 'second', version: '1.0.0' },
    pin === undefined ? {} : { versionNegotiation: { mode: { pin } } },
  )
  await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' }))
  return client
}

async function use(client: AnyClient, name: string, args: Record<string, unknown> = {}) {
  const answer = (await client.callTool({ name, arguments: args })) as ToolAnswer
  return { text: answer.content[0]?.text ?? '', data: answer.structuredContent, isError: answer.isError === true }
}

const exitCode = async (child: ChildProcess): Promise<unknown> => {
  const [code] = (await once(child, 'exit')) as unknown[]
  return code
}

async function launch(client: AnyClient, subagent: string, goal = 'goal'): Promise<string> {
  const { data } = await use(client, 'task', { subagent_name: subagent, goal_prompt: goal, async: true })
  return data['task_id'] as string
}

describe.each(clients)('over stdio, a client of %s', (_name, open) => {
  it('launches two real programs in the background, checks, waits, reads by cursor, and cancels one', async () => {
    const client = await open(argumentsFor({ subagents }))
    onTestFinished(() => client.close())
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('task')
    const counting = await launch(client, 'count')
    const hanging = await launch(client, 'hang')
    const list = await use(client, 'check_async_tasks')
    expect(list.text).toMatch(/count - (running|completed)/)
    expect(list.text).toContain('hang - running')

    const waited = await use(client, 'wait_for_async_tasks', { task_ids: [counting], timeout_seconds: 20 })
    expect(waited.data).toMatchObject({ settled: [counting], pending: [] })
    expect(waited.text).toContain('line 5')

    const first = await use(client, 'read_task_output', { task_id: counting, max_bytes: 7 })
    expect(first.text).toContain('line 1')
    expect(first.text).not.toContain('line 2')
    const rest = await use(client, 'read_task_output', { task_id: counting, cursor: first.data['next_cursor'] })
    expect(rest.text).toContain('line 2\nline 3\nline 4\nline 5')

    expect((await use(client, 'cancel_async_task', { task_id: hanging })).data).toMatchObject({ cancelled: true })
    expect((await use(client, 'check_async_tasks', { task_id: hanging })).data).toMatchObject({ status: 'cancelled' })
  })

  it('continues to be served after a subagent has crashed, is missing, or floods its output', async () => {
    const client = await open(argumentsFor({ subagents }))
    onTestFinished(() => client.close())
    const crashed = await use(client, 'task', { subagent_name: 'crash', goal_prompt: 'g' })
    expect([crashed.isError, crashed.text.includes('SIGSEGV')]).toEqual([true, true])
    const missing = await use(client, 'task', { subagent_name: 'missing', goal_prompt: 'g' })
    expect([missing.isError, missing.text.includes('/no/such/program')]).toEqual([true, true])
    const flood = await use(client, 'task', { subagent_name: 'flood', goal_prompt: 'g' })
    expect(flood.text.length).toBeLessThan(25_000)
    expect((await use(client, 'task', { subagent_name: 'shout', goal_prompt: 'hello' })).text).toContain('HELLO')
  })
})

describe('over stdio', () => {
  it('commands run on a real MCP server of the configuration, and end with it', async () => {
    const instances = [
      { id: 'everything', command: process.execPath, args: [everything, 'stdio'] },
      { id: 'broken', command: '/no/such/server' },
    ]
    const client = await connect(argumentsFor({ instances }))
    onTestFinished(() => client.close())
    const commands = [{ tool_name: 'echo', args: { message: 'hello' } }]
    const run = await use(client, 'submit_commands', {
      task_name: 'Echo',
      instanceId: 'everything',
      commands,
      async: false,
    })
    expect(run.text).toContain('Echo: hello')
    const { text: list, data } = await use(client, 'list_instances')
    expect(list).toContain('everything (connected)')
    expect(data['instances']).toMatchObject([
      { id: 'everything', state: 'connected' },
      { id: 'broken', state: 'failed' },
    ])
    const refused = await use(client, 'submit_commands', { task_name: 'x', instanceId: 'broken', commands })
    expect(refused.isError).toBe(true)
    const slow = [{ tool_name: 'trigger-long-running-operation', args: { duration: 60, steps: 60 } }]
    const { data: launched } = await use(client, 'submit_commands', { task_name: 'Slow', commands: slow })
    expect(launched).toMatchObject({ status: 'running', instance_id: 'everything' })
    const { data: cancelled } = await use(client, 'cancel_async_task', { task_id: launched['task_id'] })
    expect(cancelled).toMatchObject({ cancelled: true })
  })

  it('a missing configuration file stops the start', async () => {
    const child = spawn(process.execPath, [...server, '--config', '/no/such/file'], {
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    const [out, said, code] = await Promise.all([text(child.stdout), text(child.stderr), exitCode(child)])
    expect([out, code]).toEqual(['', 2])
    expect(said).toMatch(
      /^agent-tasks: \/no\/such\/file: cannot be read \(ENOENT\)\. To write a working example, run `npx --no-install agent-tasks mcp --init --config "\/no\/such\/file"`/,
    )
  })

  it('a client is notified when its tasks change', async () => {
    const client = new Client({ name: 'second', version: '1.0.0' })
    const told: string[] = []
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => void told.push(params.uri))
    client.setNotificationHandler('notifications/resources/list_changed', () => void told.push('list'))
    const args = argumentsFor({ subagents })
    await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' }))
    onTestFinished(() => client.close())
    const id = await launch(client, 'hang')
    await client.subscribeResource({ uri: `task://${id}` })
    await use(client, 'cancel_async_task', { task_id: id })
    await until(() => told.includes('list') && told.includes(`task://${id}`))
    const { contents } = await client.readResource({ uri: `task://${id}` })
    expect(JSON.parse((contents[0] as { text: string }).text)).toMatchObject({ id, status: 'cancelled' })
  })

  it('nothing is left when the client is killed', async () => {
    const lifelines = await openLifelines()
    onTestFinished(lifelines.close)
    const tree = {
      name: 'tree',
      description: 'A program with a child',
      command: process.execPath,
      args: lifelines.argumentsOf({
        name: 'parent',
        ignoresSigterm: true,
        child: { name: 'child', output: 'inherit' },
      }),
      graceMs: 200,
    }
    const call = { name: 'task', arguments: { subagent_name: 'tree', goal_prompt: 'g', async: true } }
    const spec = { command: process.execPath, args: argumentsFor({ subagents: [tree] }), calls: [call] }
    const host = spawn(process.execPath, [join(root, 'test/support/programs/mcp-host.mjs'), JSON.stringify(spec)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void host.kill('SIGKILL'))
    const [pid] = (await once(createInterface({ input: host.stdout }), 'line')) as [string]
    const [parent, child] = await Promise.all([lifelines.program('parent'), lifelines.program('child')])
    host.kill('SIGKILL')
    await Promise.all([parent.gone, child.gone])
    await until(() => !isAlive(Number(pid)))
  })

  it('SIGTERM that comes again after a second kills its programs at once, however long their grace is', async () => {
    const lifelines = await openLifelines()
    onTestFinished(lifelines.close)
    const stubborn = {
      name: 'stubborn',
      description: 'Ignores SIGTERM',
      command: process.execPath,
      graceMs: 3_600_000,
      args: lifelines.argumentsOf({ name: 'stubborn', ignoresSigterm: true }),
    }
    const child = spawn(process.execPath, argumentsFor({ subagents: [stubborn] }), {
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    const tell = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
    const clientInfo = { name: 'raw', version: '1.0.0' }
    tell({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo } })
    tell({ method: 'notifications/initialized' })
    const call = { name: 'task', arguments: { subagent_name: 'stubborn', goal_prompt: 'g', async: true } }
    tell({ id: 2, method: 'tools/call', params: call })
    const program = await lifelines.program('stubborn')
    child.stdin.end()
    await program.heard('SIGTERM')
    child.kill('SIGTERM')
    await setTimeout(1100)
    expect(child.exitCode).toBeNull()
    child.kill('SIGTERM')
    await program.gone
    expect(await once(child, 'exit')).toEqual([143, null])
  })

  it('only protocol messages are written to stdout, and the server ends with its input', async () => {
    const child = spawn(process.execPath, argumentsFor({ subagents }), { stdio: ['pipe', 'pipe', 'pipe'] })
    onTestFinished(() => void child.kill('SIGKILL'))
    const said = text(child.stderr)
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const ask = async (id: number, method: string, params: object) => {
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
      for (;;) {
        const message = JSON.parse((await lines.next()).value as string) as {
          jsonrpc: string
          id?: number
          result?: object
        }
        if (message.id === id) return message
        expect(message).toMatchObject({ jsonrpc: '2.0', method: 'notifications/resources/list_changed' })
      }
    }
    const clientInfo = { name: 'raw', version: '1.0.0' }
    await ask(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo })
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })}\n`)
    for (const [id, subagent_name] of ['shout', 'crash', 'missing'].entries()) {
      const answer = await ask(id + 2, 'tools/call', { name: 'task', arguments: { subagent_name, goal_prompt: 'g' } })
      expect(answer).toMatchObject({ jsonrpc: '2.0', id: id + 2, result: { content: [{ type: 'text' }] } })
    }
    child.stdin.end()
    expect(await once(child, 'exit')).toEqual([0, null])
    // It may still have said that the list of tasks has changed.
    for (let line = await lines.next(); line.done !== true; line = await lines.next()) {
      expect(JSON.parse(line.value)).toMatchObject({ jsonrpc: '2.0', method: 'notifications/resources/list_changed' })
    }
    expect(await said).toContain('6 subagent(s)')
  })

  it.each([
    [{ subagents: [{ name: 'a', description: 'd' }] }, 'subagents[0].command: got undefined, expected a string.'],
    [{ subagent: [] }, 'subagent: unknown field; did you mean subagents?'],
  ])('a configuration like %j stops the start', async (config, problem) => {
    const file = configFile(config)
    const child = spawn(process.execPath, [...server, '--config', file], { stdio: ['pipe', 'pipe', 'pipe'] })
    const [out, said, code] = await Promise.all([text(child.stdout), text(child.stderr), exitCode(child)])
    expect([out, said, code]).toEqual(['', `agent-tasks: ${file}: ${problem}\n`, 2])
  })

  it('an invalid argument is reported, with exit code 2', async () => {
    const child = spawn(process.execPath, [...server, '--port', 'x'], { stdio: ['pipe', 'pipe', 'pipe'] })
    const [said, code] = await Promise.all([text(child.stderr), exitCode(child)])
    expect([said.includes('--port: got "x", expected an integer from 0'), code]).toEqual([true, 2])
  })

  it('the MCP inspector lists the tools and runs one', async () => {
    const file = configFile({ subagents })
    const cwd = dirname(file)
    // The inspector takes --config for its own.
    const script = join(cwd, 'server.mjs')
    const ownArgs = [...server.slice(1), '--config', file]
    writeFileSync(
      script,
      `process.argv.push(...${JSON.stringify(ownArgs)})\nawait import(${JSON.stringify(pathToFileURL(server[0]!).href)})\n`,
    )
    const packages = ['-y', '-p', 'node@22', '-p', '@modelcontextprotocol/inspector@2.12.0']
    const inspect = async (...more: string[]) => {
      const args = [...packages, 'mcp-inspector', '--cli', process.execPath, script, ...more]
      const { stdout } = await promisify(execFile)('npx', args, { cwd })
      return JSON.parse(stdout) as Record<string, unknown>
    }
    expect(JSON.stringify(await inspect('--method', 'tools/list'))).toContain('wait_for_async_tasks')
    const call = ['--method', 'tools/call', '--tool-name', 'task']
    const args = ['--tool-arg', 'subagent_name=shout', '--tool-arg', 'goal_prompt=hello']
    expect(JSON.stringify(await inspect(...call, ...args))).toContain('HELLO')
  }, 180_000)
})

/** Starts the built server on a free port. */
async function serveHttp(config: object, ...more: string[]): Promise<{ url: string; stop: () => Promise<unknown> }> {
  const child = spawn(process.execPath, [...argumentsFor(config), '--http', '--port', '0', ...more], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  for await (const line of createInterface({ input: child.stderr })) {
    const url = /MCP at (\S+)/.exec(line)?.[1]
    if (url === undefined) continue
    return {
      url,
      stop: () => {
        const exited = once(child, 'exit')
        child.kill('SIGTERM')
        return exited
      },
    }
  }
  throw new Error('the server did not start')
}

async function connectHttp(url: string, { pin, token }: { pin?: string; token?: string } = {}): Promise<AnyClient> {
  const client = new Client(
    { name: 'second', version: '1.0.0' },
    pin === undefined ? {} : { versionNegotiation: { mode: { pin } } },
  )
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }))
  onTestFinished(() => client.close())
  return client
}

describe('over HTTP', () => {
  it.each([
    ['two sessions of 2025', {}, {}],
    ['two tokens of 2026-07-28', { pin: MODERN, token: 'one' }, { pin: MODERN, token: 'two' }],
    ['one of each', {}, { pin: MODERN, token: 'two' }],
  ])('%s cannot see each other’s tasks', async (_who, first, second) => {
    const { url, stop } = await serveHttp({ subagents })
    const [alice, bob] = [await connectHttp(url, first), await connectHttp(url, second)]
    const id = await launch(alice, 'hang')
    expect((await use(alice, 'check_async_tasks')).text).toContain('hang - running')
    expect((await use(bob, 'check_async_tasks')).text).toBe('No async tasks.')
    expect((await use(bob, 'cancel_async_task', { task_id: id })).isError).toBe(true)
    expect((await use(bob, 'read_task_output', { task_id: id })).isError).toBe(true)
    expect((await use(alice, 'check_async_tasks', { task_id: id })).data).toMatchObject({ status: 'running' })
    expect(await stop()).toEqual([0, null])
  })

  it('the programs of a session end when its client deletes it', async () => {
    const lifelines = await openLifelines()
    onTestFinished(lifelines.close)
    const args = lifelines.argumentsOf({ name: 'program' })
    const tree = { name: 'tree', description: 'd', command: process.execPath, args }
    const { url } = await serveHttp({ subagents: [tree] })
    const client = new Client({ name: 'second', version: '1.0.0' })
    const transport = new StreamableHTTPClientTransport(new URL(url))
    await client.connect(transport)
    await launch(client, 'tree')
    const program = await lifelines.program('program')
    await transport.terminateSession()
    await program.gone
    await client.close()
  })

  it('F8: a task of another client waits for a slot, says its place, and runs when it is free; a full queue is refused', async () => {
    const queue = { whenFull: 'queue', maxAsyncTasks: 1, queueMax: 1 }
    const { url, stop } = await serveHttp({ subagents, ...queue })
    const [alice, bob] = [await connectHttp(url), await connectHttp(url)]
    const hanging = await launch(alice, 'hang')
    const call = { subagent_name: 'shout', goal_prompt: 'hello', async: true }
    const waiting = await use(bob, 'task', call)
    expect(waiting.text).toContain('No slot is free: it is number 1 in the queue, and starts by itself.')
    expect(waiting.data).toMatchObject({ status: 'queued', async: true, queue_position: 1 })
    const id = waiting.data['task_id'] as string
    expect((await use(bob, 'check_async_tasks')).text).toContain('number 1 in the queue')
    expect((await use(bob, 'check_async_tasks', { task_id: id })).text).toContain('"queuePosition": 1')

    // Alice has a place of her own left, but the queue of all is full.
    const ofAll = await use(alice, 'task', call)
    expect(ofAll.isError).toBe(true)
    expect(ofAll.text).toMatch(/^Max async tasks \(1\) reached, and the queue is full \(1 waiting, queue.max\)\. /)

    await use(alice, 'cancel_async_task', { task_id: hanging })
    const waited = await use(bob, 'wait_for_async_tasks', { task_ids: [id], timeout_seconds: 30 })
    expect(waited.data).toMatchObject({ settled: [id], pending: [] })
    expect(waited.text).toContain('HELLO')

    await launch(alice, 'hang')
    await launch(alice, 'hang')
    const ofClient = await use(alice, 'task', call)
    expect(ofClient.isError).toBe(true)
    expect(ofClient.text).toMatch(
      /^Max async tasks \(1\) reached, and the queue of this client is full \(1, queueMax\)\. Wait until/,
    )
    expect(await stop()).toEqual([0, null])
  })

  it('the client side of the Tasks extension follows a task of a real program to its end', async () => {
    const { url } = await serveHttp({ subagents, tasks: { pollIntervalMs: 50 } })
    const session = await openTaskSession(url, 'alice')
    const execution = await session.callTool('task', { subagent_name: 'count', goal_prompt: 'g' })
    expect(execution.kind).toBe('task')
    const { outcome } = await execution.settle()
    expect(outcome).toMatchObject({ status: 'completed', result: { structuredContent: { status: 'completed' } } })
    expect(JSON.stringify(outcome)).toContain('line 5')
    const hanging = await session.callTool('task', { subagent_name: 'hang', goal_prompt: 'g' })
    await hanging.cancel()
    expect((await (await session.callTool('check_async_tasks', {})).settle()).outcome.status).toBe('completed')
    await session.close()
  })

  it('the client side of the Tasks extension answers the question of a run', async () => {
    const host = await startMcpHttpServer({
      port: 0,
      config: { tasks: { pollIntervalMs: 50 } },
      writeLog: () => undefined,
      subagents: {
        careful: {
          run: async (_request, context) => {
            const { content } = await context.ask('Which branch?')
            return { final_message: `on ${String(content?.['answer'])}` }
          },
        },
      },
    })
    onTestFinished(() => host.close())
    const asked: unknown[] = []
    const session = await openTaskSession(host.url, 'alice', (request) => {
      asked.push(request)
      return { action: 'accept', content: { answer: 'main' } }
    })
    const execution = await session.callTool('task', { subagent_name: 'careful', goal_prompt: 'g' })
    const { outcome } = await execution.settle()
    expect(outcome.status).toBe('completed')
    expect(JSON.stringify(outcome)).toContain('on main')
    expect(asked).toMatchObject([{ kind: 'elicitation', params: { message: 'Which branch?' } }])
    await session.close()
  })

  it.each([
    ['another Host', { host: 'evil.example' }, 403],
    ['the Origin of a web page', { origin: 'http://127.0.0.1:8080' }, 403],
    ['no token where one is needed', {}, 401],
    ['a wrong token', { authorization: 'Bearer wrong' }, 401],
  ])('a request with %s is refused', async (_what, headers, status) => {
    const { url } = await serveHttp({ http: { tokens: ['right'] } })
    const answered = await new Promise<number | undefined>((resolve, reject) => {
      const sent = httpRequest(url, { method: 'POST', headers: { 'content-type': 'application/json', ...headers } })
      sent.on('response', (response) => resolve(response.resume().statusCode)).on('error', reject)
      sent.end('{}')
    })
    expect(answered).toBe(status)
  })

  it('other machines are not served without a token', async () => {
    const child = spawn(process.execPath, [...argumentsFor({}), '--http', '--host', '0.0.0.0', '--port', '0'])
    onTestFinished(() => void child.kill('SIGKILL'))
    const [said, code] = await Promise.all([text(child.stderr), exitCode(child)])
    expect([said.includes('Setting http.host: got "0.0.0.0", expected a loopback address'), code]).toEqual([true, 2])
  })
})

/** The answer in a response: its whole body, or the data of its last event. */
const answerIn = (body: string): string =>
  body
    .match(/^data: (\{.*)$/gm)
    ?.at(-1)
    ?.slice('data: '.length) ?? body

type TaskSession = ReturnType<typeof createTaskSessionFromClient>
type Answer = { action: 'accept'; content: Record<string, string> }

/** The official client side of the extension. It needs `rawDispatch`, since the SDK's codec rejects task handles. */
async function openTaskSession(
  url: string,
  token: string,
  answer?: (request: unknown) => Answer,
): Promise<TaskSession> {
  const capabilities = { elicitation: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } }
  const info = { name: 'tasks', version: '1.0.0' }
  const authorization = `Bearer ${token}`
  const client = new Client(info, { capabilities, versionNegotiation: { mode: { pin: MODERN } } })
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { authorization } } }))
  onTestFinished(() => client.close())
  let lastId = 1000
  return createTaskSessionFromClient(client, {
    endpointId: 'agent-tasks',
    v2RequestFraming: { protocolVersion: MODERN, clientInfo: info, clientCapabilities: capabilities },
    rawDispatch: async (request) => {
      const { method, params } = request as { method: string; params: { name?: string; taskId?: string } }
      const response = await fetch(url, {
        method: 'POST',
        headers: {
          authorization,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': MODERN,
          'mcp-method': method,
          'mcp-name': params.taskId ?? params.name ?? '',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: ++lastId, method, params }),
      })
      const { result, error } = JSON.parse(answerIn(await response.text())) as {
        result: never
        error?: { code: number; message: string }
      }
      return error === undefined ? { kind: 'result', result } : { kind: 'error', error }
    },
    ...(answer && { onInputRequest: (request) => Promise.resolve(answer(request) as never) }),
  })
}
