/** `agent-tasks mcp --cluster` as an agent meets it: a process behind stdio whose commands run on an instance of a node. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { expect, it, onTestFinished } from 'vitest'
import { connectWatched } from '../support/cluster-instance.js'
import { startNearCluster } from '../support/near-cluster.js'

const main = fileURLToPath(new URL('../../dist/src/cli/main.js', import.meta.url))

/** Starts a server for one client; the next one of the same folder is of the same session. */
async function startMcp(folder: string, connection: string) {
  const file = join(folder, 'agent-tasks.config.json')
  writeFileSync(file, '{}')
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [
      ...[main, 'mcp', '--cluster', 'agent-tasks', '--config', file],
      ...['--store', join(folder, 'store'), '--session', 'one'],
    ],
    env: { ...(process.env as Record<string, string>), AGENT_TASKS_CONNECTION: connection },
    stderr: 'ignore',
  })
  const client = new Client({ name: 'test', version: '1.0.0' })
  await client.connect(transport)
  const { pid } = transport
  onTestFinished(() => client.close())
  return {
    client,
    use: async (name: string, args: object = {}) => {
      const { content, structuredContent = {} } = await client.callTool({ name, arguments: { ...args } })
      const text = (content as { text: string }[]).map((block) => block.text).join('\n')
      return { text, data: structuredContent as Record<string, unknown> }
    },
    kill: () => process.kill(pid ?? 0, 'SIGKILL'),
  }
}

const holding = (mark: string, more = {}) => ({
  task_name: mark,
  commands: [{ tool_name: 'hold', intention: '', args: { mark } }],
  ...more,
})

it('N3, N7: MCP submits to an instance of any node, waits and cancels, and the next server of the session delivers what a killed or ended one left', async () => {
  const { url, redis } = await startNearCluster(2)
  const worker = await connectWatched(url, 'w')
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-mcp-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const first = await startMcp(folder, redis.url)
  expect((await first.use('list_instances')).text).toBe('w (connected): 2 tool(s)\n- do\n- hold')
  const inPlace = first.use('submit_commands', holding('waited for', { instanceId: 'w', async: false }))
  await worker.untilStarted('waited for')
  worker.finish('waited for')
  expect((await inPlace).text).toContain('1. hold: success: waited for')
  const cancelled = await first.use('submit_commands', holding('cancelled'))
  await worker.untilStarted('cancelled')
  await first.use('cancel_async_task', { task_id: cancelled.data['task_id'] })
  const left = await first.use('submit_commands', holding('left'))
  expect(left.data).toMatchObject({ instance_id: 'w', status: 'running' })
  await worker.untilStarted('left')
  first.kill()
  const second = await startMcp(folder, redis.url)
  worker.finish('left')
  const told = await second.use('wait_for_async_tasks')
  expect(told.text).toContain('1. hold: success: left')
  expect(told.data).toMatchObject({ settled: [left.data['task_id']] })
  const last = await second.use('submit_commands', holding('last'))
  await worker.untilStarted('last')
  // What runs on the node outlives a server whose client disconnects, as it outlives a killed one.
  await second.client.close()
  const third = await startMcp(folder, redis.url)
  worker.finish('last')
  const toldLater = await third.use('wait_for_async_tasks')
  expect(toldLater.text).toContain('1. hold: success: last')
  expect(toldLater.data).toMatchObject({ settled: [last.data['task_id']] })
  expect(worker.started()).toEqual(['waited for', 'cancelled', 'left', 'last'])
})
