/** Configured instances: a broken one does not delay the others, and is tried again when a call needs it. */
import { writeFileSync, mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../../src/clock.js'
import { createInstancePool } from '../../../src/mcp/instance-pool.js'
import { instancesOfPool } from '../../../src/mcp/instance-source.js'
import { createListInstancesTool } from '../../../src/mcp/list-instances.js'
import { agentConfigSchema, type AgentConfigInput } from '../../../src/protocol/agent-config.js'
import { until } from '../../support/lifelines.js'

/** A small MCP server, which can be started once its file is written. */
const sdk = createRequire(import.meta.url).resolve('@modelcontextprotocol/server')
const sdkModule = join(sdk, '../index.mjs')
const program = `
import { McpServer } from ${JSON.stringify(sdkModule)}
import { serveStdio } from ${JSON.stringify(join(sdkModule, '../stdio.mjs'))}
serveStdio(() => {
  const server = new McpServer({ name: 'small', version: '1.0.0' }, { capabilities: { tools: {} } })
  server.registerTool('hello', { description: 'Says hello' }, () => ({ content: [{ type: 'text', text: 'hello' }] }))
  return server
})
`

function setUp(instances: (folder: string) => AgentConfigInput['instances']) {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-pool-'))
  const logged: string[] = []
  const config = agentConfigSchema.parse({ instances: instances(folder) })
  const log = (_level: string, line: string): void => void logged.push(line)
  const pool = createInstancePool(config.instances, { folder, clock: systemClock, log })
  onTestFinished(async () => {
    await pool.close()
    rmSync(folder, { recursive: true })
  })
  const list = createListInstancesTool(instancesOfPool(pool), 20_000)
  return { pool, logged, folder, list: (input: object = {}) => list.execute(input) }
}

describe('the instances', () => {
  it('are connected in the background', async () => {
    const { pool, logged, folder, list } = setUp(() => [
      { id: 'small', command: process.execPath, args: ['small.mjs'] },
      { id: 'broken', command: '/no/such/program' },
    ])
    expect(pool.list().map(({ state }) => state)).toEqual(['connecting', 'connecting'])
    await until(() => logged.length === 2)
    expect(pool.list()).toMatchObject([
      { id: 'small', state: 'failed' },
      { id: 'broken', state: 'failed', error: expect.stringContaining('/no/such/program') as unknown },
    ])
    expect((await list()).llmContent).toMatch(/^small \(failed\): .*\n?[^]*broken \(failed\): /)
    // It has been installed since.
    writeFileSync(join(folder, 'small.mjs'), program)
    await pool.ready('small')
    expect(pool.list()[0]).toEqual({ id: 'small', state: 'connected' })
    const { llmContent, metadata } = await list({ instance_id: 'small' })
    expect(llmContent).toContain('small (connected): 1 tool(s)\n- hello: Says hello\n  arguments: {')
    expect(metadata).toEqual({ instances: [{ id: 'small', state: 'connected', tools: ['hello'] }] })
  })

  it('are ready, without an id, as soon as one of them is', async () => {
    const { pool, folder } = setUp(() => [
      { id: 'broken', command: '/no/such/program' },
      { id: 'small', command: process.execPath, args: ['small.mjs'] },
    ])
    writeFileSync(join(folder, 'small.mjs'), program)
    await pool.ready()
    expect(pool.instances.first()?.id).toBe('small')
    await pool.ready('nobody')
  })

  it('are connected again after a disconnect', async () => {
    const { pool, folder } = setUp((at) => {
      writeFileSync(join(at, 'small.mjs'), program)
      return [{ id: 'small', command: process.execPath, args: ['small.mjs'] }]
    })
    expect(folder).toBeTruthy()
    await pool.ready('small')
    await pool.instances.disconnect('small', 'It was sent away.')
    expect(pool.list()).toEqual([{ id: 'small', state: 'failed', error: 'It was sent away.' }])
    await pool.ready('small')
    expect(pool.list()).toEqual([{ id: 'small', state: 'connected' }])
  })

  it('are refused by name when they are unknown', async () => {
    const { list } = setUp(() => [])
    expect((await list()).llmContent).toBe('No instances are configured.')
    expect((await list({ instance_id: 'x' })).error?.message).toContain(
      'expected the ID of an instance. No instances are configured.',
    )
  })
})
