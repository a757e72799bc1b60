/** The hooks of clients over MCP: two tools that are in no list, for one or several conversations of a connection. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { createInterface } from 'node:readline'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { hookFolder, readServerFiles } from '../../../../src/features/hooks/hook-folder.js'
import { startMcpStdioServer, type McpStdioServer, type McpStdioServerOptions } from '../../../../src/mcp/stdio.js'
import { ANONYMOUS } from '../../../../src/mcp/callers.js'
import { readSessionsAt } from '../../../../src/store/locations/read-store-at.js'
import { createManualClock } from '../../../../src/testing/index.js'
import { until } from '../../../support/lifelines.js'
import { controlled } from '../../mcp/clients.js'
import { ALICE, send, setUpApp } from '../../mcp/wire.js'

interface Result {
  readonly content: readonly { readonly text: string }[]
  readonly structuredContent?: Readonly<Record<string, unknown>>
}

const servers: McpStdioServer[] = []
const filesOfThisProcess = () => readServerFiles(hookFolder()).filter(([, { server }]) => server.pid === process.pid)
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()))
  expect(filesOfThisProcess()).toEqual([])
})

const sessionsIn = async (store: string) => (await readSessionsAt(store))?.map(({ session }) => session)

async function connect(clientName: string, options: McpStdioServerOptions = {}) {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const subagent = controlled()
  const server = startMcpStdioServer({
    input,
    output,
    subagents: { slow: { run: subagent.run } },
    writeLog: () => undefined,
    ...options,
  })
  servers.push(server)
  const told: { readonly id?: number; readonly result?: Result; readonly error?: object }[] = []
  createInterface({ input: output }).on('line', (line) => told.push(JSON.parse(line) as (typeof told)[number]))
  let lastId = 0
  const say = (message: object) => void input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const ask = async (method: string, params: object = {}) => {
    const id = ++lastId
    say({ id, method, params })
    await until(() => told.some((message) => message.id === id))
    return told.find((message) => message.id === id)!
  }
  const clientInfo = { name: clientName, version: '1' }
  await ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo })
  say({ method: 'notifications/initialized' })
  const call = async (name: string, args: object, meta: object = {}) =>
    (await ask('tools/call', { name, arguments: args, _meta: meta })).result!
  const hook = async (name: string, args: object, meta: object = {}): Promise<string> =>
    (await call(name, args, meta)).content[0]?.text ?? ''
  const launch = async (meta: object = {}, args: object = {}): Promise<string> => {
    const { structuredContent } = await call(
      'task',
      { subagent_name: 'slow', goal_prompt: 'g', async: true, ...args },
      meta,
    )
    return structuredContent!['task_id'] as string
  }
  return { server, ask, call, hook, launch, end: subagent.end }
}

describe('the tools of hooks', () => {
  it('are in no list, and answer in the form of the client', async () => {
    const { ask, hook, launch, end } = await connect('codex-mcp-client')
    expect(JSON.stringify((await ask('tools/list')).result)).not.toContain('agent_tasks_')
    const meta = { threadId: 'one' }
    const id = await launch(meta)
    end(id, 'the result')
    const text = await hook('agent_tasks_prompt', { session_id: 'one', prompt: 'Hello' }, meta)
    expect(JSON.parse(text)).toMatchObject({ hookSpecificOutput: { hookEventName: 'UserPromptSubmit' } })
    expect(text).toContain('the result')
    expect(await hook('agent_tasks_stop', { session_id: 'one', stop_hook_active: false }, meta)).toBe('{}')
  })

  it('say which field is wrong', async () => {
    const { ask } = await connect('codex-mcp-client')
    const { error } = await ask('tools/call', { name: 'agent_tasks_stop', arguments: { session_id: 1 } })
    expect(JSON.stringify(error)).toContain('session_id: got 1, expected a string')
  })

  it('answer {} to a client that has no hooks, and while the configuration is untrusted', async () => {
    const { hook } = await connect('raw')
    expect(await hook('agent_tasks_stop', {})).toBe('{}')
    const untrusted = { file: '/a/agent-tasks.config.json', reason: 'unknown' } as never
    const other = await connect('claude-code', { untrusted })
    expect(await other.hook('agent_tasks_stop', { session_id: 'one' })).toBe('{}')
  })

  it('do not exist for anonymous clients', async () => {
    const { app } = setUpApp({ slow: controlled().run })
    const call = { name: 'agent_tasks_stop', arguments: {} }
    expect((await send(app, ANONYMOUS, 'tools/call', call)).error?.message).toContain('There is no tool')
    expect((await send(app, ALICE, 'tools/call', call)).result['content']).toEqual([{ type: 'text', text: '{}' }])
  })
})

describe('a client whose hooks are there', () => {
  it('need not call a tool for a result, and the answer to a launch says so', async () => {
    const { call, hook } = await connect('claude-code')
    const launch = { subagent_name: 'slow', goal_prompt: 'g', async: true }
    expect((await call('task', launch)).content[0]?.text).toContain('do not poll for it. If you have no other work')
    await hook('agent_tasks_prompt', { session_id: 'one', prompt: 'Hello' })
    expect((await call('task', launch)).content[0]?.text).toContain('also after the end of your turn')
  })

  it('has a result with the next prompt if nothing can wake it, and the answer to a launch says so', async () => {
    const { call, hook } = await connect('codex-mcp-client')
    const meta = { threadId: 'one' }
    await hook('agent_tasks_prompt', { session_id: 'one', prompt: 'Hello' }, meta)
    const { content } = await call('task', { subagent_name: 'slow', goal_prompt: 'g', async: true }, meta)
    expect(content[0]?.text).toContain('with the next prompt of the user')
  })

  it.each(['mcporter', 'inspector-cli'])(
    '%s gets no result by itself, and the answer to a launch says so',
    async (name) => {
      const { call } = await connect(name)
      const { content } = await call('task', { subagent_name: 'slow', goal_prompt: 'g', async: true })
      expect(content[0]?.text).toContain('start the task without async')
      expect(content[0]?.text).not.toContain('next call')
    },
  )

  it('is not kept waiting for longer than it waits for a tool', async () => {
    const clock = createManualClock(0)
    const { launch, call } = await connect('opencode', { clock })
    await launch()
    const waited = call('wait_for_async_tasks', { timeout_seconds: 600 })
    await until(() => clock.nextDue !== undefined)
    clock.advance(55_000)
    expect((await waited).content[0]?.text).toContain('still running')
  })
})

describe('a client with several conversations on one connection', () => {
  it('gets the results of each in that one alone', async () => {
    const { hook, launch, end, call } = await connect('codex-mcp-client')
    const [one, two] = [{ threadId: 'one' }, { threadId: 'two' }]
    const [first, second] = [await launch(one), await launch(two)]
    end(first, 'for one')
    end(second, 'for two')
    const prompt = (id: string, meta: object) => hook('agent_tasks_prompt', { session_id: id, prompt: 'Hello' }, meta)
    const texts = [await prompt('two', two), await prompt('one', one)]
    expect(texts.map((text) => [text.includes('for one'), text.includes('for two')])).toEqual([
      [false, true],
      [true, false],
    ])
    const { content } = await call('check_async_tasks', { task_id: second }, one)
    expect(content[0]?.text).toContain('No async task found')
  })

  it('gets nothing with an id that the call itself does not have', async () => {
    const { hook, launch, end } = await connect('codex-mcp-client')
    const one = { threadId: 'one' }
    end(await launch(one), 'for one')
    expect(await hook('agent_tasks_stop', { session_id: 'one' }, { threadId: 'two' })).toBe('{}')
    expect(await hook('agent_tasks_prompt', { session_id: 'one', prompt: 'x' }, one)).toContain('for one')
  })
})

describe('the store of a conversation', () => {
  it('is found again by the id of the conversation, and not by that of another one', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hooks-store-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const store = join(folder, 'store')
    const open = (config = {}) => connect('codex-mcp-client', { store, folder, projectFolder: folder, config })
    const one = { threadId: 'one' }
    const first = await open()
    const id = await first.launch(one)
    first.end(id, 'kept')
    expect((await first.hook('agent_tasks_stop', { session_id: 'one' }, one)).includes('kept')).toBe(true)
    await first.server.close()
    const prompt = { session_id: 'x', prompt: 'Hello' }
    const other = await open()
    expect(await other.hook('agent_tasks_prompt', { ...prompt, session_id: 'two' }, { threadId: 'two' })).toBe('{}')
    await other.server.close()
    const again = await open()
    const text = await again.hook('agent_tasks_prompt', { ...prompt, session_id: 'one' }, one)
    expect(text).toContain('possible repeat')
    expect(text).toContain('kept')
  })

  it('is found by the end of a turn, if the server was started after the prompt', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hooks-store-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const options = { store: join(folder, 'store'), folder, projectFolder: folder }
    const first = await connect('opencode', options)
    await first.hook('agent_tasks_prompt', { session_id: 'one', prompt: 'Hello' })
    first.end(await first.launch(), 'kept')
    await first.server.close()
    const again = await connect('opencode', options)
    expect(await again.hook('agent_tasks_stop', { session_id: 'one' })).toContain('kept')
  })

  it.each(['2025-11-25', '2026-07-28'])(
    'is that of the environment, whatever a client of %s asks first',
    async (version) => {
      const folder = mkdtempSync(join(tmpdir(), 'hooks-store-'))
      vi.stubEnv('CLAUDE_CODE_SESSION_ID', 'one')
      onTestFinished(() => {
        vi.unstubAllEnvs()
        rmSync(folder, { recursive: true, force: true })
      })
      const [input, output] = [new PassThrough(), new PassThrough()]
      const store = join(folder, 'store')
      const answered: string[] = []
      createInterface({ input: output }).on('line', (line) => answered.push(line))
      servers.push(
        startMcpStdioServer({ input, output, store, projectFolder: folder, subagents: {}, writeLog: () => undefined }),
      )
      const clientInfo = { name: 'claude-code', version: '1' }
      const say = (message: object) => void input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
      if (version === '2025-11-25') {
        say({ id: 1, method: 'initialize', params: { protocolVersion: version, capabilities: {}, clientInfo } })
      }
      const _meta = {
        'io.modelcontextprotocol/protocolVersion': version,
        'io.modelcontextprotocol/clientInfo': clientInfo,
        'io.modelcontextprotocol/clientCapabilities': {},
      }
      say({ id: 2, method: 'resources/list', params: version === '2025-11-25' ? {} : { _meta } })
      await until(() => answered.some((line) => line.includes('"resources":[]')))
      expect(await sessionsIn(store)).toEqual(['claude one'])
    },
  )

  it('is opened by the first hook, not by a look at the resources, if only hooks name the conversation', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hooks-store-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const store = join(folder, 'store')
    const { ask, hook } = await connect('gemini-cli-mcp-client', { store, folder, projectFolder: folder })
    expect((await ask('resources/list')).result).toMatchObject({ resources: [] })
    await hook('agent_tasks_prompt', { session_id: 'one', prompt: 'Hello' })
    expect(await sessionsIn(store)).toEqual(['gemini one'])
  })
})

describe('the file of a server', () => {
  it('has the client, its process and its conversations, and is gone with the server', async () => {
    const { hook, server } = await connect('gemini-cli-mcp-client')
    const mine = () => filesOfThisProcess()[0]?.[1]
    await until(() => mine() !== undefined)
    expect(mine()).toMatchObject({ client: 'gemini', sessionIds: [] })
    await hook('agent_tasks_prompt', { session_id: 'one', prompt: 'Hello' })
    expect(mine()?.sessionIds).toEqual(['one'])
    await server.close()
    expect(mine()).toBeUndefined()
  })
})
