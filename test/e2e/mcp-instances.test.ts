/** Commands against real MCP servers: the reference server over stdio and over streamable HTTP. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { TaskManager } from '../../src/command-tasks/task-manager.js'
import { InstanceError } from '../../src/errors.js'
import type { Instance } from '../../src/command-tasks/instances/instance.js'
import { InstanceManager } from '../../src/command-tasks/instances/instance-manager.js'
import { mcpInstance } from '../../src/command-tasks/instances/mcp-instance.js'
import type { TaskCompleteMessage, TaskProgressMessage } from '../../src/protocol/command-tasks.js'
import { callOf } from '../support/instance-suite.js'
import { isAlive } from '../support/lifelines.js'

const everything = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url),
)
const LONG = { duration: 30, steps: 100 }

interface Opened {
  readonly instance: Instance
  readonly pid: () => number
  readonly kill: () => void
  readonly stop: () => Promise<unknown>
}

/** The children of a process, as the system sees them, without the watchdog of its runs. */
async function childrenOf(pid: number): Promise<number[]> {
  const { readFile, readdir } = await import('node:fs/promises')
  const found: number[] = []
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const stat = await readFile(`/proc/${name}/stat`, 'latin1').catch(() => '')
    if (Number(/\) \S (\d+)/.exec(stat)?.[1]) !== pid) continue
    const command = await readFile(`/proc/${name}/cmdline`, 'latin1').catch(() => '')
    if (!command.includes('agent-tasks-watchdog')) found.push(Number(name))
  }
  return found
}

async function openStdio(): Promise<Opened> {
  const before = await childrenOf(process.pid)
  const instance = await mcpInstance({ id: 'everything', command: process.execPath, args: [everything, 'stdio'] })
  const [pid = 0] = (await childrenOf(process.pid)).filter((one) => !before.includes(one))
  return { instance, pid: () => pid, kill: () => process.kill(pid, 'SIGKILL'), stop: () => instance.close() }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

async function openHttp(): Promise<Opened> {
  const port = await freePort()
  const child: ChildProcess = spawn(process.execPath, [everything, 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const exited = once(child, 'exit')
  await once(child.stderr!, 'data')
  const instance = await mcpInstance({ id: 'everything', url: `http://127.0.0.1:${port}/mcp` })
  return {
    instance,
    pid: () => child.pid!,
    kill: () => child.kill('SIGKILL'),
    stop: async () => {
      await instance.close()
      child.kill('SIGKILL')
      await exited
    },
  }
}

describe.each([
  ['stdio', openStdio],
  ['streamable HTTP', openHttp],
])('the reference MCP server over %s', (kind, open) => {
  let opened: Opened
  let instances: InstanceManager
  let tasks: TaskManager
  let progress: TaskProgressMessage[]
  const submit = (...commands: { tool_name: string; args: Record<string, unknown>; timeout?: number }[]): string => {
    const result = tasks.submitTask({ task_name: 'e2e', commands })
    if ('error' in result) throw new Error(result.error)
    return result.taskId
  }
  const completion = (taskId: string): Promise<TaskCompleteMessage> =>
    new Promise((resolve) => tasks.on('complete', (message) => message.taskId === taskId && resolve(message)))
  const firstProgress = (): Promise<TaskProgressMessage> =>
    new Promise((resolve) => tasks.on('progress', (message) => message.progress !== undefined && resolve(message)))

  beforeEach(async () => {
    opened = await open()
    instances = new InstanceManager()
    instances.connect(opened.instance)
    tasks = new TaskManager({ instances })
    progress = []
    tasks.on('progress', (message) => progress.push(message))
  })
  afterEach(async () => {
    await tasks.dispose()
    await instances.dispose()
    await opened.stop()
    expect(isAlive(opened.pid())).toBe(false)
  })

  it('says what it can do', async () => {
    const names = (await opened.instance.listTools()).map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['echo', 'get-sum', 'trigger-long-running-operation']))
  })

  it('performs the commands of a task in order, with the arguments as they are', async () => {
    const done = await completion(
      submit({ tool_name: 'echo', args: { message: 'hello' } }, { tool_name: 'get-sum', args: { a: 2, b: 40 } }),
    )
    expect(done.status).toBe('completed')
    expect(done.results).toMatchObject([
      { status: 'success', result: { content: [{ type: 'text', text: 'Echo: hello' }] } },
      { status: 'success', result: { content: [{ type: 'text', text: 'The sum of 2 and 40 is 42.' }] } },
    ])
  })

  it('passes the progress of a long command on', async () => {
    const done = await completion(
      submit({ tool_name: 'trigger-long-running-operation', args: { duration: 0.4, steps: 4 } }),
    )
    expect(done.status).toBe('completed')
    const steps = progress.flatMap((message) => (message.progress === undefined ? [] : [message]))
    expect(steps.map(({ progress: step }) => step)).toEqual([1, 2, 3, 4])
    expect(steps.every(({ total, status }) => total === 4 && status === 'running')).toBe(true)
  })

  it('fails a task with the words of the server', async () => {
    const done = await completion(
      submit({ tool_name: 'get-sum', args: { a: 'two', b: 40 } }, { tool_name: 'echo', args: { message: 'never' } }),
    )
    expect(done).toMatchObject({ status: 'failed', summary: { failedCommandIndex: 0, successfulCommands: 0 } })
    expect(done.results[0]!.error!.message).toMatch(/a/)
    expect(done.results[1]!.status).toBe('skipped')
  })

  it('S5: a cancelled command is aborted, and the next task runs', async () => {
    const taskId = submit({ tool_name: 'trigger-long-running-operation', args: LONG })
    await firstProgress()
    const done = completion(taskId)
    expect(tasks.cancelTask(taskId)).toBe(true)
    expect(await done).toMatchObject({ status: 'cancelled', results: [{ status: 'skipped' }] })
    const next = await completion(submit({ tool_name: 'echo', args: { message: 'next' } }))
    expect(next.status).toBe('completed')
  })

  it('a command that takes too long fails as COMMAND_TIMEOUT', async () => {
    const done = await completion(submit({ tool_name: 'trigger-long-running-operation', args: LONG, timeout: 300 }))
    expect(done).toMatchObject({
      status: 'failed',
      error: { code: 'COMMAND_TIMEOUT', message: 'Command timeout after 300ms', commandId: 'cmd_1' },
    })
  })

  it('S1: a server that is killed in the middle fails its tasks once, as INSTANCE_DISCONNECTED', async () => {
    const lost: string[] = []
    instances.onDisconnect((_id, reason) => lost.push(reason))
    const running = submit({ tool_name: 'trigger-long-running-operation', args: LONG })
    const queued = submit({ tool_name: 'echo', args: { message: 'never' } })
    await firstProgress()
    const ends: TaskCompleteMessage[] = []
    tasks.on('complete', (message) => ends.push(message))
    const both = Promise.all([completion(running), completion(queued)])
    opened.kill()
    await both
    await delay(50)
    expect(ends.map(({ taskId, status, error }) => [taskId, status, error?.code])).toEqual([
      [running, 'failed', 'INSTANCE_DISCONNECTED'],
      [queued, 'failed', 'INSTANCE_DISCONNECTED'],
    ])
    expect(lost).toHaveLength(1)
    if (kind === 'stdio') expect(lost[0]).toContain('it was ended by SIGKILL')
    expect(instances.get('everything')).toBeUndefined()
    await expect(opened.instance.callTool(callOf('echo', { message: 'x' }))).rejects.toBeInstanceOf(InstanceError)
  })

  it('an idle server that is killed is noticed at the latest by the next command', async () => {
    opened.kill()
    const done = await completion(submit({ tool_name: 'echo', args: { message: 'x' } }))
    expect(done).toMatchObject({ status: 'failed', error: { code: 'INSTANCE_DISCONNECTED' } })
    expect(instances.first()).toBeUndefined()
  })
})

it('an MCP server that ignores the end of its stdin and SIGTERM does not outlive close, nor does its child', async () => {
  const script = `
    import { spawn } from 'node:child_process'
    process.on('SIGTERM', () => {})
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' })
    process.env.CHILD = String(child.pid)
    setInterval(() => {}, 1000)
    await import(${JSON.stringify(everything)})
  `
  const before = await childrenOf(process.pid)
  const instance = await mcpInstance({
    id: 'stubborn',
    command: process.execPath,
    args: ['--input-type=module', '-e', script],
    closeGraceMs: 200,
  })
  const [pid = 0] = (await childrenOf(process.pid)).filter((one) => !before.includes(one))
  const [child = 0] = await childrenOf(pid)
  expect([isAlive(pid), isAlive(child)]).toEqual([true, true])
  await instance.close()
  expect(isAlive(pid)).toBe(false)
  while (isAlive(child)) await delay(10)
})
