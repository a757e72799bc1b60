/** A server whose commands run on the instances of a cluster. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { TaskManager } from '../../../src/command-tasks/task-manager.js'
import { InstanceManager } from '../../../src/command-tasks/instances/instance-manager.js'
import { localInstance } from '../../../src/command-tasks/instances/local-instance.js'
import { startMcpStdioServer } from '../../../src/mcp/stdio.js'
import type { AgentConfigInput } from '../../../src/protocol/agent-config.js'
import type { InstanceToolContext } from '../../../src/protocol/instance-tools.js'
import { fakeCluster } from '../../support/cluster-tasks.js'
import { until } from '../../support/lifelines.js'
import { textOf, type Called } from './clients.js'
import { ALICE, setUpApp } from './wire.js'

const shot = { type: 'image', data: 'aGk=', mimeType: 'image/png' }

function setUp() {
  const instances = new InstanceManager()
  const commands = new TaskManager({ instances })
  const cluster = fakeCluster(commands, instances)
  const tools = [
    { name: 'shot', execute: () => ({ content: [shot] }) },
    { name: 'hold', execute: (_: unknown, { signal }: InstanceToolContext) => once(signal, 'never', { signal }) },
  ]
  instances.connect(localInstance({ id: 'camera', closeGraceMs: 0, tools }))
  onTestFinished(async () => {
    await commands.dispose()
    await instances.dispose()
  })
  const serve = (config: AgentConfigInput = {}) => {
    const host = setUpApp({}, config, undefined, cluster.tasks)
    onTestFinished(() => host.app.close())
    const use = async (name: string, args: object = {}): Promise<Called> =>
      (await host.call(name, args, {}, ALICE)).result as unknown as Called
    return { ...host, use }
  }
  return { ...cluster, commands, serve }
}

const call = (tool_name: string, more = {}) => ({ task_name: 'Look', commands: [{ tool_name }], ...more })

describe('a server on a cluster', () => {
  it('N3: runs commands on its instances, and has their images', async () => {
    const { serve, listInstances: list } = setUp()
    const { use, send } = serve()
    const answer = await use('submit_commands', call('shot', { async: false }))
    expect(answer.content).toContainEqual(shot)
    expect(JSON.stringify((await send('tools/list')).result)).toContain('"submit_commands"')
    const summary = { id: 'camera', kind: 'local' as const, queued: 0 }
    list.mockResolvedValue([
      { ...summary, isConnected: true, tools: [{ name: 'shot', description: 'Looks' }] },
      { ...summary, id: 'new', isConnected: true },
      { ...summary, id: 'gone', isConnected: false },
    ])
    expect(textOf(await use('list_instances'))).toBe(
      'camera (connected): 1 tool(s)\n- shot: Looks\n' +
        'new (connected): its tools could not be listed: the instance has not listed its tools yet\ngone (disconnected)',
    )
    expect(textOf(await use('list_instances', { instance_id: 'camera' }))).toContain('- shot: Looks')
    list.mockResolvedValue([])
    expect(textOf(await use('list_instances'))).toBe('The cluster has no instances.')
    list.mockRejectedValue(new Error('Redis is away'))
    expect(textOf(await use('list_instances'))).toContain('Redis is away')
  })

  it('N7, K13: leaves its commands when it ends, and the next server of its session follows them', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-mcp-cluster-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const { serve, commands } = setUp()
    const store = { store: join(folder, 'store'), session: 'one' }
    const first = serve(store)
    await first.use('submit_commands', call('hold'))
    await until(() => commands.listTasks()[0]?.status === 'running')
    await first.app.close()
    const next = serve(store)
    expect(textOf(await next.use('check_async_tasks'))).toMatch(/Look/)
    expect(commands.listTasks()[0]?.status).toBe('running')
  })

  it('has no instances of its own', () => {
    const { tasks } = setUp()
    const config = { instances: [{ id: 'own', command: 'true' }] }
    expect(() => startMcpStdioServer({ config, taskManager: tasks })).toThrow(
      'config.instances: got "own", expected no instances, because options.taskManager runs commands on the instances of a cluster',
    )
    expect(() => startMcpStdioServer({ taskManager: {} as typeof tasks })).toThrow('options.taskManager')
  })
})
