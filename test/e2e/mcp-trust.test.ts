/** F13: the built MCP server in the folder of a checkout that wants to run something, as clients start it: over stdio in that folder, and over HTTP. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))
const main = join(root, 'dist/src/cli/main.js')

beforeAll(() => {
  execFileSync('npm', ['run', '--silent', 'built'], { cwd: root, stdio: 'inherit' })
}, 120_000)

function checkout() {
  const at = realpathSync(mkdtempSync(join(tmpdir(), 'agent-tasks-e2e-')))
  onTestFinished(() => rmSync(at, { recursive: true, force: true }))
  const folder = join(at, "somebody's checkout")
  mkdirSync(folder)
  const run = { command: 'sh', args: ['-c', `touch '${at}/MARK'; echo done`] }
  const config = {
    subagents: [{ name: 'evil', description: 'Runs', ...run }],
    instances: [{ id: 'x', ...run }],
    commands: { shell: true },
    store: 'kept',
    session: 's',
  }
  writeFileSync(join(folder, 'agent-tasks.config.json'), JSON.stringify(config))
  return { at, folder, hasRun: () => existsSync(join(at, 'MARK')), env: { HOME: at, PATH: process.env['PATH'] ?? '' } }
}

interface Answer {
  readonly content: readonly { readonly text: string }[]
  readonly isError?: boolean
}

const EVIL = { subagent_name: 'evil', goal_prompt: 'g' }

async function callTask(client: Client): Promise<{ text: string; isError: boolean }> {
  const { content, isError = false } = (await client.callTool({ name: 'task', arguments: EVIL })) as unknown as Answer
  return { text: content[0]?.text ?? '', isError }
}

describe.each([undefined, '2026-07-28'])('over stdio, in the folder, a client of %s', (pin) => {
  it('F13: runs nothing before its file is trusted, and answers with the command that trusts it', async () => {
    const { folder, hasRun, env } = checkout()
    const connect = async (): Promise<Client> => {
      const options = pin === undefined ? {} : { versionNegotiation: { mode: { pin } } }
      const client = new Client({ name: 'client', version: '1.0.0' }, options)
      onTestFinished(() => client.close())
      const server = { command: process.execPath, args: [main, 'mcp'], cwd: folder, env, stderr: 'ignore' as const }
      await client.connect(new StdioClientTransport(server))
      return client
    }
    const first = await connect()
    expect((await first.listTools()).tools.map(({ name }) => name)).toContain('task')
    const { text, isError } = await callTask(first)
    expect([isError, hasRun(), readdirSync(folder)]).toEqual([true, false, ['agent-tasks.config.json']])
    await first.close()
    const command = text.trim().split('\n').at(-1)!
    // Wherever the person runs it.
    expect(execFileSync('sh', ['-c', command], { cwd: '/', env, encoding: 'utf8' })).toContain('subagent evil: "sh"')
    const second = await connect()
    const { text: result } = await callTask(second)
    expect([result.includes('done'), hasRun()]).toEqual([true, true])
    // Opened only now.
    expect(readdirSync(folder)).toContain('kept')
  })
})

describe('over HTTP', () => {
  it('F13: standard error and every answer have the command', async () => {
    const { folder, hasRun, env } = checkout()
    const child = spawn(process.execPath, [main, 'mcp', '--http', '--port', '0'], { cwd: folder, env })
    onTestFinished(() => void child.kill('SIGKILL'))
    let said = ''
    let url: string | undefined
    for await (const chunk of child.stderr.setEncoding('utf8')) {
      said += String(chunk)
      url = /MCP at (\S+)/.exec(said)?.[1]
      if (url !== undefined) break
    }
    expect(said).toContain(' mcp --trust ')
    const client = new Client({ name: 'client', version: '1.0.0' })
    onTestFinished(() => client.close())
    await client.connect(new StreamableHTTPClientTransport(new URL(url!)))
    const { text, isError } = await callTask(client)
    expect([isError, hasRun()]).toEqual([true, false])
    expect(said).toContain(text.trim().split('\n').at(-1)!)
    child.kill('SIGTERM')
    await once(child, 'exit')
    expect(readdirSync(folder)).toEqual(['agent-tasks.config.json'])
  })
})
