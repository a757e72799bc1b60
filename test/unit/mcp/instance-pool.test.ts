/** Configured instances: each is connected when a call first needs it, and a broken one is tried again by the next. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../../src/system/clock.js'
import { createInstancePool } from '../../../src/mcp/instance-pool.js'
import { instancesOfPool } from '../../../src/mcp/instance-source.js'
import { createListInstancesTool } from '../../../src/tools/list-instances.js'
import { agentConfigSchema, type AgentConfigInput } from '../../../src/protocol/agent-config.js'
import { isAlive, until } from '../../support/lifelines.js'

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
  it('F13: are connected when a call first needs them, and a failure is an answer that the next call tries again', async () => {
    const { pool, logged, folder, list } = setUp(() => [
      { id: 'small', command: process.execPath, args: ['small.mjs'] },
      { id: 'broken', command: '/no/such/program' },
    ])
    expect(pool.list()).toEqual([
      { id: 'small', state: 'idle' },
      { id: 'broken', state: 'idle' },
    ])
    expect(await pool.ready()).toMatch(/^Instance small: [^]*\nInstance broken: [^]*\nThe next call tries again\.$/)
    expect(logged).toHaveLength(2)
    expect(pool.list()).toMatchObject([
      { id: 'small', state: 'failed' },
      { id: 'broken', state: 'failed', error: expect.stringContaining('/no/such/program') as unknown },
    ])
    expect((await list()).llmContent).toMatch(/^small \(failed\): .*\n?[^]*broken \(failed\): /)
    // It has been installed since.
    writeFileSync(join(folder, 'small.mjs'), program)
    expect(await pool.ready('small')).toBeUndefined()
    expect(pool.list()[0]).toEqual({ id: 'small', state: 'connected' })
    const { llmContent, metadata } = await list({ instance_id: 'small' })
    expect(llmContent).toContain('small (connected): 1 tool(s)\n- hello: Says hello\n  arguments: {')
    expect(metadata).toEqual({ instances: [{ id: 'small', state: 'connected', tools: ['hello'] }] })
  })

  it('are ready, without an id, with the first that can be connected: no other is started', async () => {
    const { pool, folder } = setUp(() => [
      { id: 'broken', command: '/no/such/program' },
      { id: 'small', command: process.execPath, args: ['small.mjs'] },
      { id: 'spare', command: process.execPath, args: ['small.mjs'] },
    ])
    writeFileSync(join(folder, 'small.mjs'), program)
    await pool.ready()
    expect(pool.list().map(({ state }) => state)).toEqual(['failed', 'connected', 'idle'])
    expect([await pool.ready(), await pool.ready('nobody')]).toEqual([undefined, undefined])
    expect(pool.list().map(({ state }) => state)).toEqual(['failed', 'connected', 'idle'])
  })

  it('F13: end with the pool while they start, and are not started after that', async () => {
    const { pool, folder, logged } = setUp((at) => [
      { id: 'mute', startTimeoutMs: 3_600_000, command: 'sh', args: ['-c', `echo $$ > ${at}/pid; exec sleep 1000`] },
    ])
    const pid = (): number => Number(existsSync(join(folder, 'pid')) && readFileSync(join(folder, 'pid'), 'utf8'))
    const ready = pool.ready('mute')
    await until(() => pid() > 0)
    expect(pool.list()).toEqual([{ id: 'mute', state: 'connecting' }])
    await pool.close()
    expect(isAlive(pid())).toBe(false)
    expect(await ready).toContain('Instance mute: ')
    rmSync(join(folder, 'pid'))
    expect(await pool.ready('mute')).toBe('The server is closing.')
    await pool.connectAll(1000)
    expect([existsSync(join(folder, 'pid')), logged]).toEqual([false, []])
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
