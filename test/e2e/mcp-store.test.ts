/** MCP servers with a store, as agents meet them: real processes behind stdio that are killed, and the next one of their session. */
import { execFileSync, spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import { isAlive, until } from '../support/lifelines.js'

const root = fileURLToPath(new URL('../../', import.meta.url))
const main = join(root, 'dist/src/cli/main.js')

beforeAll(() => {
  execFileSync('npm', ['run', '--silent', 'built'], { cwd: root, stdio: 'inherit' })
}, 120_000)

interface Answer {
  readonly text: string
  readonly data: Readonly<Record<string, unknown>>
}

interface Server {
  call(name: string, args?: object): Promise<Answer>
  /** Starts a program that ends when its gate is open; resolves with the id of its task when it runs. */
  launch(subagent: string, gate: string): Promise<string>
  /** Resolves when a task has ended, without telling its result. */
  settled(id: string): Promise<void>
  /** Kills it when it has stored what its last answer changed. */
  kill(): Promise<void>
  close(): Promise<void>
}

interface SpokenServer {
  readonly server: ChildProcessByStdio<Writable, Readable, null>
  readonly ended: Promise<unknown>
  readonly say: (message: object) => void
  /** Resolves with the result, as JSON. */
  readonly ask: (method: string, params: object) => Promise<string>
}

/** A folder for the store, and programs that wait until their gate is open. */
function setUp() {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-mcp-store-'))
  const store = join(folder, 'store')
  const gateOf = (name: string): string => join(folder, `gate-${name}`)
  const open = (name: string): void => writeFileSync(gateOf(name), '')
  const script = 'echo "began $1"; until [ -e "$2/gate-$1" ]; do sleep 0.05; done; echo "result of $1"'
  const program = {
    description: 'Waits for its gate',
    command: 'sh',
    args: ['-c', script, 'sh', '{goal}', folder],
    graceMs: 100,
  }
  // After the first SIGTERM it cleans up for a second. A second one ends it at once.
  const cleaning = `echo "began $1"; n=0
    trap 'n=$((n + 1)); [ $n = 1 ] || exit 1; sleep 1; echo cleaned > "$2/$1"; exit 0' TERM
    while :; do sleep 0.05; done`
  const config = {
    subagents: [
      { ...program, name: 'cleaning', args: ['-c', cleaning, 'sh', '{goal}', folder], graceMs: 4000 },
      { ...program, name: 'plain' },
      { ...program, name: 'lasting', survivesHost: true },
      { ...program, name: 'repeated', retry: { attempts: 3, on: ['interrupted'] } },
    ],
  }
  const file = join(folder, 'agent-tasks.config.json')
  writeFileSync(file, JSON.stringify(config))
  const servers: Server[] = []
  onTestFinished(async () => {
    await Promise.all(servers.map((server) => server.close()))
    for (const pid of processesOf(folder)) process.kill(Number(pid), 'SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  const start = async (session: string): Promise<Server> => {
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [main, 'mcp', '--config', file, '--store', store, '--session', session],
      env: { ...(process.env as Record<string, string>), STORE_TEST: folder },
      stderr: 'ignore',
    })
    const client = new Client({ name: 'test', version: '1.0.0' })
    await client.connect(transport)
    const { pid } = transport
    const call = async (name: string, args: object = {}): Promise<Answer> => {
      const { content, structuredContent = {} } = await client.callTool({ name, arguments: { ...args } })
      const texts = (content as { text: string }[]).map(({ text }) => text)
      return { text: texts.join('\n'), data: structuredContent as Record<string, unknown> }
    }
    const server: Server = {
      call,
      launch: async (subagent_name, goal_prompt) => {
        const { data } = await call('task', { subagent_name, goal_prompt, async: true })
        const id = data['task_id'] as string
        const began = async () =>
          (await call('read_task_output', { task_id: id })).text.includes(`began ${goal_prompt}`)
        while (!(await began()));
        return id
      },
      settled: async (id) => {
        const status = async (): Promise<string> =>
          JSON.stringify((await client.readResource({ uri: `task://${id}` })).contents)
        while ((await status()).includes('running'));
      },
      kill: async () => {
        if (pid === null) throw new Error('the server has no process')
        await client.ping()
        process.kill(pid, 'SIGKILL')
        await until(() => !isAlive(pid))
      },
      close: () => client.close(),
    }
    servers.push(server)
    return server
  }
  /** A server whose client writes its messages, closes stdin and sends signals itself. */
  const startSpoken = (session: string): SpokenServer => {
    const args = [main, 'mcp', '--config', file, '--store', store, '--session', session]
    const server = spawn(process.execPath, args, {
      env: { ...process.env, STORE_TEST: folder },
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]()
    const say = (message: object): void =>
      void server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
    let id = 0
    return {
      server,
      ended: once(server, 'exit'),
      say,
      ask: async (method, params) => {
        id += 1
        say({ id, method, params })
        for (;;) {
          const message = JSON.parse((await lines.next()).value as string) as { id?: number; result?: object }
          // Notifications have no id.
          if (message.id === undefined) continue
          expect(message).toMatchObject({ id, result: {} })
          return JSON.stringify(message.result)
        }
      },
    }
  }
  /**
   * A health check as Claude Code 2.1.332 makes one (`claude mcp list`): it probes for protocol version 2026-07-28, or initializes, lists the tools,
   * and ends the server with signals.
   */
  const check = async (session: string, probes: boolean): Promise<void> => {
    const { server, ended, ask, say } = startSpoken(session)
    const clientInfo = { name: 'claude-code', title: 'Claude Code', version: '2.1.332' }
    const capabilities = { roots: { listChanged: true }, elicitation: { form: {}, url: {} } }
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': clientInfo,
      'io.modelcontextprotocol/clientCapabilities': capabilities,
    }
    if (probes) await ask('server/discover', { _meta })
    else {
      await ask('initialize', { protocolVersion: '2025-11-25', capabilities, clientInfo })
      say({ method: 'notifications/initialized' })
    }
    await ask('tools/list', probes ? { _meta } : {})
    server.kill('SIGINT')
    await ended
  }
  return { folder, store, open, start, startSpoken, check }
}

/** The processes that were started by servers of a test, and the servers. */
function processesOf(folder: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`STORE_TEST=${folder}\0`)
    } catch {
      return false
    }
  })
}

it('P1: clients that only check the server start nothing, and use up no attempt of an interrupted task', async () => {
  const { folder, open, start, check } = setUp()
  const first = await start('a')
  const id = await first.launch('repeated', 'one')
  await first.kill()
  // The watchdog of the killed server ends its program.
  await until(() => processesOf(folder).length === 0)
  for (const probes of [false, true, false, true]) {
    await check('a', probes)
    expect(processesOf(folder)).toEqual([])
  }
  const last = await start('a')
  open('one')
  const { text } = await last.call('wait_for_async_tasks', { task_ids: [id], ...WAIT })
  expect(text).toContain('result of one')
  const output = await last.call('read_task_output', { task_id: id })
  expect(output.text.match(/began one/g)).toHaveLength(1)
})

const WAIT = { timeout_seconds: 20 }

it('K4, K7, K8: the next server of a session has what one that was killed left, once; another session goes on', async () => {
  const { open, start } = setUp()
  const [alice, bob] = [await start('alice'), await start('bob')]
  const owed = await alice.launch('plain', 'owed')
  const interrupted = await alice.launch('plain', 'interrupted')
  const lasting = await alice.launch('lasting', 'lasting')
  const bobs = await bob.launch('plain', 'bobs')
  open('owed')
  // Its end is stored before a resource shows it, and reading a resource tells the model nothing.
  await alice.settled(owed)
  await alice.kill()

  const next = await start('alice')
  const told = await next.call('list_instances')
  expect(told.text).toContain('result of owed')
  expect(told.text).toContain(interrupted)
  expect([...(told.data['earlier_session'] as string[])].sort()).toEqual([owed, interrupted].sort())
  expect((await next.call('check_async_tasks', { task_id: lasting })).data).toMatchObject({ status: 'running' })
  const again = await next.call('list_instances')
  expect(again.text).not.toMatch(/result of|interrupted/)

  open('lasting')
  const waited = await next.call('wait_for_async_tasks', WAIT)
  expect(waited.text).toContain('began lasting\\nresult of lasting')
  expect(waited.data).toMatchObject({ settled: [lasting], earlier_session: [lasting] })

  open('bobs')
  const bobsResult = await bob.call('wait_for_async_tasks', WAIT)
  expect(bobsResult.text).toContain('result of bobs')
  expect(bobsResult.data).toMatchObject({ settled: [bobs] })
  expect(bobsResult.data).not.toHaveProperty('earlier_session')
  expect((await bob.call('list_instances')).text).not.toMatch(/result of/)
})

it('K9: two servers of one session have a file each; when one is killed, the next has its results, and the other its own', async () => {
  const { open, start, store } = setUp()
  const [first, second] = [await start('same'), await start('same')]
  const firsts = await first.launch('lasting', 'firsts')
  const seconds = await second.launch('plain', 'seconds')
  expect(readdirSync(store).filter((name) => name.endsWith('.db'))).toHaveLength(2)
  await first.kill()

  const third = await start('same')
  const list = (await third.call('check_async_tasks')).text
  expect(list).toContain('lasting - running')
  expect(list).not.toContain('plain')
  open('firsts')
  open('seconds')
  const [thirdTold, secondTold] = await Promise.all([
    third.call('wait_for_async_tasks', WAIT),
    second.call('wait_for_async_tasks', WAIT),
  ])
  expect(thirdTold.data).toMatchObject({ settled: [firsts], earlier_session: [firsts] })
  expect(secondTold.data).toMatchObject({ settled: [seconds] })
  expect(secondTold.data).not.toHaveProperty('earlier_session')
  for (const server of [second, third]) {
    expect((await server.call('list_instances')).text).not.toContain('result of')
    await server.kill()
  }
  // Both were told and confirmed: the next server has one file, and owes nothing.
  const last = await start('same')
  expect((await last.call('list_instances')).text).not.toContain('result of')
  expect(readdirSync(store).filter((name) => name.endsWith('.db'))).toHaveLength(1)
})

it('K5: an answer that was written before the server was killed is delivered again, as a possible repeat', async () => {
  const { open, start } = setUp()
  const first = await start('repeat')
  const id = await first.launch('plain', 'mine')
  open('mine')
  const told = await first.call('wait_for_async_tasks', WAIT)
  expect(told.text).toContain('result of mine')
  await first.kill()

  const second = await start('repeat')
  const again = await second.call('list_instances')
  expect(again.text).toContain('result of mine')
  expect(again.data).toMatchObject({ possible_repeats: [id], earlier_session: [id] })
  expect(again.data['delivery_ids']).toEqual(told.data['delivery_ids'])
  // The next call shows that it has arrived.
  await second.call('list_instances')
  await second.kill()
  expect((await (await start('repeat')).call('list_instances')).text).not.toContain('result of mine')
})

it('K8: a program that does not survive ends with a server that was killed, and one that does ends when it is cancelled', async () => {
  const { folder, start } = setUp()
  const first = await start('programs')
  await first.launch('plain', 'plain')
  const lasting = await first.launch('lasting', 'lasting')
  const before = processesOf(folder).length
  await first.kill()
  await until(() => processesOf(folder).length < before - 1)
  expect(processesOf(folder).length).toBeGreaterThan(0)
  const next = await start('programs')
  expect((await next.call('cancel_async_task', { task_id: lasting })).data).toMatchObject({ cancelled: true })
  await next.close()
  await until(() => processesOf(folder).length === 0)
})

it.each([
  [
    'as Codex does',
    [
      ['end', 0],
      ['SIGTERM', 1],
      ['SIGKILL', 2000],
    ],
  ],
  [
    'as Claude Code does',
    [
      ['SIGINT', 0],
      ['SIGTERM', 100],
      ['SIGKILL', 500],
    ],
  ],
] as const)(
  'F22, K8: a program cleans up when the client ends the server %s, and the next server reports it',
  async (_client, steps) => {
    const { folder, start, startSpoken } = setUp()
    const { server, ended, ask } = startSpoken('client')
    await ask('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    })
    const call = (name: string, args: object) => ask('tools/call', { name, arguments: args })
    const launched = await call('task', { subagent_name: 'cleaning', goal_prompt: 'one', async: true })
    const task_id = /"task_id":"([^"]+)"/.exec(launched)?.[1]
    while (!(await call('read_task_output', { task_id })).includes('began one'));
    for (const [what, ms] of steps) setTimeout(() => (what === 'end' ? server.stdin.end() : server.kill(what)), ms)
    await ended
    await until(() => existsSync(join(folder, 'one')) && processesOf(folder).length === 0)
    const next = await start('client')
    const { text } = await next.call('wait_for_async_tasks', { task_ids: [task_id], ...WAIT })
    expect(text).toContain('INTERRUPTED')
  },
)

it('a file of another session that is damaged stops nobody else; its own session says which file it is', async () => {
  const { start, store } = setUp()
  const first = await start('damaged')
  await first.launch('plain', 'x')
  await first.kill()
  const [name] = readdirSync(store).filter((file) => file.endsWith('.db'))
  writeFileSync(join(store, name!), 'not a store')
  const other = await start('sound')
  expect((await other.call('list_instances')).text).toBe('No instances are configured.')
  const args = [main, 'mcp', '--store', store, '--session', 'damaged']
  const run = (): string => execFileSync(process.execPath, args, { input: '', encoding: 'utf8', stdio: 'pipe' })
  expect(run).toThrow(expect.objectContaining({ status: 2, stderr: expect.stringContaining(name!) as string }) as Error)
})
