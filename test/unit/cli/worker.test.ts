/** `agent-tasks worker` with settings that cannot be used; test/cluster/command-line.test.ts runs it on a Redis. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { sentSubagents, workersAccess, workerSubagents } from '../../../src/cli/worker-subagents.js'
import { startMcpStdioServer } from '../../../src/mcp/stdio.js'
import { agentConfigSchema, type AgentConfigInput } from '../../../src/protocol/agent-config.js'
import { run } from './command-line.js'

const subagent = { name: 'far', description: 'runs elsewhere', command: 'sh', runsOn: 'workers' } as const

function configFile(config: object): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-worker-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'config.json')
  writeFileSync(file, JSON.stringify(config))
  return file
}

const worker = (config: object, ...args: string[]) => run(['worker', '--config', configFile(config), ...args])

describe('agent-tasks worker', () => {
  it('needs a subagent that runs on workers', async () => {
    const { exitCode, stderr } = await worker({ subagents: [{ ...subagent, runsOn: 'server' }] })
    expect(exitCode).toBe(2)
    expect(stderr).toContain('subagents: got 1, expected at least one subagent with "runsOn": "workers"')
  })

  it('needs a Redis', async () => {
    const { exitCode, stderr } = await worker({ subagents: [subagent] })
    expect(exitCode).toBe(2)
    expect(stderr).toContain('workers.connection: got undefined, expected the URL of a Redis')
  })

  it('refuses a Redis of others without a password, and does not show one', async () => {
    const { exitCode, stderr } = await worker({ subagents: [subagent] }, '--connection', 'redis://redis.example')
    expect(exitCode).toBe(2)
    expect(stderr).toContain('expected a Redis with a password or on a loopback address')
    const hidden = await worker({ subagents: [subagent] }, '--connection', 'http://:secret@redis.example')
    expect(hidden.exitCode).toBe(2)
    expect(hidden.stderr).not.toContain('secret')
    const inFile = await worker({ subagents: [subagent], workers: { connection: ['redis://:secret@x'] } })
    expect(inFile.stderr).toContain('workers.connection')
    expect(inFile.stderr).not.toContain('secret')
  })

  it('refuses numbers out of their range', async () => {
    const { stderr } = await worker(
      { subagents: [subagent] },
      '--connection',
      'redis://localhost',
      '--concurrency',
      '0',
    )
    expect(stderr).toContain('--concurrency')
  })
})

describe('a subagent on workers', () => {
  const parse = (config: AgentConfigInput) => agentConfigSchema.parse(config)

  it('is a runner of its queue for a server, and a program for a worker', async () => {
    const retry = { attempts: 2, on: ['interrupted' as const] }
    const config = parse({
      subagents: [
        { ...subagent, retry, maxRunSeconds: 5, stdin: 'messages' },
        { ...subagent, name: 'near', runsOn: 'server' },
      ],
      workers: { connection: 'redis://localhost' },
    })
    const sent = await sentSubagents(config, {}, () => undefined)
    expect(Object.keys(sent)).toEqual(['far'])
    expect(sent['far']).toMatchObject({
      name: 'far',
      description: 'runs elsewhere',
      retry,
      budget: { seconds: 5 },
      survivesHost: true,
      takesMessages: true,
    })
    expect(Object.keys(workerSubagents(config, '/'))).toEqual(['far'])
    expect(await sentSubagents(parse({}), {}, () => undefined)).toEqual({})
  })

  it('finds its Redis in the option, the file or the environment', () => {
    const env = { AGENT_TASKS_CONNECTION: 'redis://environment' }
    const inFile = parse({ workers: { connection: 'redis://file', allowNoPassword: true } })
    expect(workersAccess(inFile, env, 'redis://option').connection).toBe('redis://option')
    expect(workersAccess(inFile, env)).toEqual({ connection: 'redis://file', allowNoPassword: true })
    expect(workersAccess(parse({}), env)).toEqual({ connection: 'redis://environment', allowNoPassword: false })
  })

  it('does not survive its server in another way too', () => {
    expect(() => parse({ subagents: [{ ...subagent, survivesHost: true }] })).toThrow(/survivesHost is true/)
  })

  it('needs a runner where a program serves MCP', () => {
    expect(() => startMcpStdioServer({ config: { subagents: [subagent] } })).toThrow(
      /config\.subagents\[0\]\.runsOn: got "workers", expected 'server', or a runner for this subagent in options\.subagents/,
    )
  })
})
