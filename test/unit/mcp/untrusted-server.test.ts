/** F13: a server whose configuration was found and is not trusted starts, lists its tools, and answers every call with what the user can do. */
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { createInterface } from 'node:readline'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createBackend } from '../../../src/mcp/backend.js'
import { loadAgentConfig } from '../../../src/mcp/config-file.js'
import { createMcpApp } from '../../../src/mcp/mcp-app.js'
import { startMcpStdioServer } from '../../../src/mcp/stdio.js'
import { trustFile } from '../../../src/mcp/trust.js'
import { until } from '../../support/lifelines.js'
import { CLIENT, type Called } from './clients.js'
import { ALICE, send, TASKS } from './wire.js'

/** A checkout that wants to run something as soon as it can. */
function checkout() {
  const at = realpathSync(mkdtempSync(join(tmpdir(), 'agent-tasks-untrusted-')))
  onTestFinished(() => rmSync(at, { recursive: true, force: true }))
  const folder = join(at, 'checkout')
  mkdirSync(folder)
  vi.stubEnv('HOME', at)
  vi.stubEnv('XDG_CONFIG_HOME', undefined)
  onTestFinished(() => void vi.unstubAllEnvs())
  const run = { command: 'sh', args: ['-c', `touch ${at}/MARK`] }
  const config = {
    subagents: [{ name: 'evil', description: 'Runs', ...run }],
    instances: [{ id: 'x', ...run }],
    commands: { shell: true },
    store: 'store',
    http: { port: 1 },
  }
  const file = join(folder, 'agent-tasks.config.json')
  writeFileSync(file, JSON.stringify(config))
  const { config: used, untrusted } = loadAgentConfig(undefined, folder)
  return { at, folder, file, hasRun: () => existsSync(join(at, 'MARK')), options: { config: used, folder, untrusted } }
}

interface Reply {
  readonly id: number
  readonly result?: Record<string, unknown>
  readonly error?: Record<string, unknown>
}

const evil = { subagent_name: 'evil', goal_prompt: 'g' }

describe('a server that does not trust its configuration', () => {
  it('F13: answers every call of a client of 2026-07-28, and runs nothing', async () => {
    const { folder, file, options, hasRun } = checkout()
    const app = createMcpApp(createBackend({ ...options, store: join(folder, 'store'), writeLog: () => undefined }))
    onTestFinished(() => app.close())
    const { tools } = (await send(app, ALICE, 'tools/list')).result as {
      tools: { name: string; description: string }[]
    }
    expect(tools.map(({ name }) => name)).toContain('task')
    expect(tools[0]?.description).toContain('is not trusted yet')
    const names = [...tools.map(({ name }) => name), 'run_command', 'submit_commands', 'unknown']
    for (const name of names) {
      const { result } = await send(app, ALICE, 'tools/call', { name, arguments: evil }, TASKS)
      const { content, isError } = result as unknown as Called & { isError: boolean }
      expect([isError, content[0]?.text]).toEqual([true, expect.stringContaining(`mcp --trust ${file}`)])
      expect(content[0]?.text).toContain('do not run the command yourself')
    }
    expect([hasRun(), existsSync(join(folder, 'store'))]).toEqual([false, false])
  })

  it('F13: answers a client of 2025 over stdio, also one that wants a task, and says when the file is trusted', async () => {
    const { file, options, hasRun } = checkout()
    const [input, output] = [new PassThrough(), new PassThrough()]
    const server = startMcpStdioServer({ input, output, ...options, writeLog: () => undefined })
    onTestFinished(() => server.close())
    const answers = new Map<number, Record<string, unknown>>()
    createInterface({ input: output }).on('line', (line) => {
      const { id, result, error } = JSON.parse(line) as Reply
      answers.set(id, result ?? error ?? {})
    })
    const ask = async (id: number, method: string, params: object): Promise<Record<string, unknown>> => {
      input.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
      await until(() => answers.has(id))
      return answers.get(id)!
    }
    const hello = await ask(1, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: CLIENT })
    expect(hello['instructions']).toContain('is not trusted yet')
    expect(await ask(2, 'tools/call', { name: 'task', arguments: evil })).toMatchObject({ isError: true })
    expect(await ask(3, 'tools/call', { name: 'task', arguments: evil, task: {} })).toMatchObject({
      message: expect.stringContaining(`mcp --trust ${file}`) as unknown,
    })
    trustFile(file, process.env, () => undefined)
    const since = (await ask(4, 'tools/call', { name: 'task', arguments: evil })) as unknown as Called
    expect(since.content[0]?.text).toBe(
      `The configuration ${file} is trusted now. Ask the user to restart this MCP server, which reads it when it starts.`,
    )
    rmSync(file)
    const gone = (await ask(5, 'tools/call', { name: 'task', arguments: evil })) as unknown as Called
    expect(gone.content[0]?.text).toContain('is gone')
    expect(hasRun()).toBe(false)
  })

  it('refuses an option that is no untrusted file', () => {
    expect(() => startMcpStdioServer({ untrusted: 'x' as never })).toThrow('options.untrusted')
  })
})
