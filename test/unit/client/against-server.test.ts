/** The client and the worker against the real server, over loopback. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { connectInstance, createTaskClient, instanceTool } from '../../../src/client/index.js'
import type { InstanceToolContext } from '../../../src/client/index.js'
import { localInstance } from '../../../src/command-tasks/instances/local-instance.js'
import { startTaskServer, type TaskServer, type TaskServerOptions } from '../../../src/server/start-task-server.js'
import { cuttableSockets } from '../../support/cuttable-sockets.js'
import { read, words } from './client-host.js'
import type { TaskClientOptions } from '../../../src/client/task-client.js'

/** A promise that the test resolves. */
function signalled<T = undefined>() {
  let fire: (value: T) => void = () => undefined
  const fired = new Promise<T>((resolve) => (fire = resolve))
  return { fire, fired }
}

/** A tool whose call ends when the test says so. */
function gate() {
  const entered = signalled<{ signal: AbortSignal }>()
  const left = signalled<unknown>()
  const tool = instanceTool({
    name: 'gate',
    execute: async (_input, { signal }) => {
      entered.fire({ signal })
      const aborted = new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error)),
      )
      return Promise.race([left.fired, aborted])
    },
  })
  return { tool, entered: entered.fired, open: left.fire }
}

const add = instanceTool({
  name: 'add',
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => String(a + b),
})

async function startServer(options: TaskServerOptions = {}): Promise<TaskServer> {
  const server = await startTaskServer({
    env: {},
    port: 0,
    logLevel: 'silent',
    ...options,
    tasks: { wsPort: 0, drainMs: 0, ...options.tasks },
  })
  onTestFinished(() => server.close())
  return server
}

function connectClient(options: TaskClientOptions) {
  const client = createTaskClient({ reconnect: { initialMs: 1, maxMs: 5 }, ...options })
  onTestFinished(() => client.close())
  return client
}

it('gives its token to no server that it is redirected to', async () => {
  const seen: string[] = []
  const elsewhere = createServer((request, response) => {
    seen.push(`${request.url} ${request.headers.authorization}`)
    response.end('{}')
  }).listen(0, '127.0.0.1')
  await once(elsewhere, 'listening')
  const address = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`
  const redirecting = createServer((_request, response) => {
    response.writeHead(307, { location: `${address}/register` }).end()
  }).listen(0, '127.0.0.1')
  await once(redirecting, 'listening')
  onTestFinished(async () => {
    for (const server of [elsewhere, redirecting]) await new Promise((resolve) => server.close(resolve))
  })
  const url = `http://127.0.0.1:${(redirecting.address() as AddressInfo).port}`
  await expect(connectInstance(url, { tools: [add], token: 'secret' })).rejects.toMatchObject({
    code: 'CONNECTION_FAILED',
    message: expect.stringContaining('redirect') as string,
  })
  expect(seen).toEqual([])
})

const calc = (...tools: Parameters<typeof localInstance>[0]['tools']) =>
  localInstance({ id: 'calc', tools: [add, ...tools] })

const adding = { tool_name: 'add', intention: 'find the answer', args: { a: 20, b: 22 } }
const gated = { tool_name: 'gate', intention: '', args: {} }

describe('the client with a real server', () => {
  it.each(['httpUrl', 'wsUrl'] as const)('submits over its %s and gets all events', async (which) => {
    const server = await startServer({ instances: [calc()] })
    const client = connectClient({ url: server[which] })
    const { taskId, queuePosition } = await client.submit({ task_name: 'sum', commands: [adding, adding] })
    expect(queuePosition).toBe(1)
    const events = []
    for await (const event of client.watch(taskId)) events.push(event)
    expect(words(events)).toEqual(['0 running', '0 success', '1 running', '1 success', 'completed'])
    expect(events.at(-1)).toMatchObject({ taskId, instanceId: 'calc', summary: { successfulCommands: 2 } })
    expect(await client.get(taskId)).toMatchObject({ id: taskId, status: 'completed', name: 'sum' })
    expect(await client.cancel(taskId)).toBe(false)
    const late = read(client.watch(taskId))
    await client.get('task_unknown')
    expect(words(late.events)).toEqual(['completed'])
  })

  it('lists tasks by page, newest first, and the instances', async () => {
    const server = await startServer({ instances: [calc()] })
    const client = connectClient({ url: server.httpUrl })
    const ids: string[] = []
    for (let n = 0; n < 3; n += 1) ids.unshift((await client.submit({ task_name: `n${n}`, commands: [adding] })).taskId)
    const first = await client.list({ limit: 2 })
    const second = await client.list({ limit: 2, cursor: first.nextCursor ?? '' })
    expect([...first.tasks, ...second.tasks].map(({ id }) => id)).toEqual(ids)
    expect(second.nextCursor).toBeUndefined()
    expect(await client.list({ instanceId: 'unknown' })).toEqual({ tasks: [] })
    expect(await client.instances()).toMatchObject([{ id: 'calc', kind: 'local', isConnected: true }])
  })

  it('rejects with the codes of the server', async () => {
    const server = await startServer({ instances: [calc()] })
    const client = connectClient({ url: server.httpUrl })
    const submit = (task: object) => client.submit({ task_name: 'sum', commands: [adding], ...task })
    await expect(submit({ commands: [] })).rejects.toMatchObject({ code: 'NO_COMMANDS' })
    await expect(submit({ instanceId: 'unknown' })).rejects.toMatchObject({ code: 'INVALID_INSTANCE' })
    await expect(submit({ task_name: 7 })).rejects.toMatchObject({ code: 'INVALID_TASK' })
    await expect(client.cancel('task_unknown')).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' })
    expect(await client.get('task_unknown')).toBeUndefined()
    const watched = client.watch('task_unknown')[Symbol.asyncIterator]()
    await expect(watched.next()).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' })
    await expect(connectClient({ url: server.wsUrl }).instances()).rejects.toMatchObject({ status: 426 })
  })

  it('authenticates with a token, and rejects at once without a valid one', async () => {
    const server = await startServer({ instances: [calc()], auth: { tokens: ['right-token'] } })
    const right = connectClient({ url: server.httpUrl, token: 'right-token' })
    expect(await right.list()).toEqual({ tasks: [] })
    expect(await right.instances()).toHaveLength(1)
    for (const options of [{ token: 'wrong-token' }, {}]) {
      const wrong = connectClient({ url: server.httpUrl, ...options })
      await expect(wrong.list()).rejects.toMatchObject({ code: 'UNAUTHORIZED' })
      await expect(wrong.instances()).rejects.toMatchObject({ code: 'UNAUTHORIZED', status: 401 })
    }
  })

  it('S7: lets one client watch and cancel the task of another; both get task_complete once', async () => {
    const { tool, entered } = gate()
    const server = await startServer({ instances: [calc(tool)] })
    const [one, two] = [connectClient({ url: server.httpUrl }), connectClient({ url: server.wsUrl })]
    const { taskId } = await one.submit({ task_name: 'sum', commands: [gated, adding] })
    const mine = read(one.watch(taskId))
    const { signal } = await entered
    const seen: string[] = []
    const reading = (async () => {
      for await (const event of two.watch(taskId, { onSnapshot: (task) => void seen.push(task.status) })) {
        seen.push(event.type)
      }
    })()
    await two.list()
    expect(await two.cancel(taskId)).toBe(true)
    await reading
    expect(signal.aborted).toBe(true)
    expect(seen).toEqual(['running', 'task_complete'])
    await one.list()
    expect(words(mine.events)).toEqual(['0 running', 'cancelled'])
  })

  it('S7: gets task_complete when the connection is cut while the task ends', async () => {
    for (const loss of ['cut', 'deafen'] as const) {
      const { tool, entered, open } = gate()
      const server = await startServer({ instances: [calc(tool)] })
      const sockets = cuttableSockets()
      const client = connectClient({ url: server.httpUrl, WebSocket: sockets.WebSocket })
      const { taskId } = await client.submit({ task_name: 'sum', commands: [gated, adding] })
      const reading = (async () => {
        const events = []
        for await (const event of client.watch(taskId)) events.push(event)
        return words(events)
      })()
      await entered
      const ended = new Promise((resolve) => server.taskManager.on('complete', resolve))
      sockets[loss]()
      open('done')
      await ended
      sockets.cut()
      expect((await reading).at(-1)).toBe('completed')
      expect(sockets.count).toBeGreaterThanOrEqual(2)
    }
  })

  it('S9: throws TASK_EXPIRED when a restarted server no longer has the task', async () => {
    const { tool, entered } = gate()
    const first = await startServer({ instances: [calc(tool)] })
    const sockets = cuttableSockets()
    const client = connectClient({ url: first.httpUrl, WebSocket: sockets.WebSocket })
    const { taskId } = await client.submit({ task_name: 'sum', commands: [gated] })
    const iterator = client.watch(taskId)[Symbol.asyncIterator]()
    expect((await iterator.next()).value).toMatchObject({ type: 'task_progress' })
    await entered
    // Like a crash: no close frame arrives.
    sockets.deafen()
    await first.close()
    await startServer({ instances: [calc()], port: Number(new URL(first.httpUrl).port) })
    await expect(iterator.next()).rejects.toMatchObject({ code: 'TASK_EXPIRED', taskId })
    expect(await client.list()).toEqual({ tasks: [] })
  })

  it('gets task_complete of a task that a closing server cancels', async () => {
    const { tool, entered } = gate()
    const server = await startServer({ instances: [calc(tool)] })
    const client = connectClient({ url: server.httpUrl })
    const { taskId } = await client.submit({ task_name: 'sum', commands: [gated] })
    const reading = (async () => {
      const events = []
      for await (const event of client.watch(taskId)) events.push(event)
      return words(events)
    })()
    await entered
    await server.close()
    expect((await reading).at(-1)).toBe('cancelled')
  })

  it('rejects at once when there is no server', async () => {
    const server = await startServer()
    await server.close()
    const client = connectClient({ url: server.httpUrl })
    await expect(client.list()).rejects.toMatchObject({ code: 'CONNECTION_FAILED' })
    await expect(client.instances()).rejects.toMatchObject({ code: 'CONNECTION_FAILED' })
  })
})

describe('the worker with a real server', () => {
  const double = instanceTool({
    name: 'double',
    inputSchema: z.strictObject({ n: z.number() }),
    execute: ({ n }, { progress }) => {
      progress({ progress: 1, total: 2, message: 'half way' })
      return { doubled: 2 * n }
    },
  })

  async function connectWorker(server: TaskServer, options: Partial<Parameters<typeof connectInstance>[1]> = {}) {
    const worker = await connectInstance(server.httpUrl, {
      tools: [double],
      id: 'worker-1',
      reconnect: { initialMs: 1, maxMs: 5 },
      ...options,
    })
    onTestFinished(() => worker.close())
    return worker
  }

  /** A tool whose calls end when they are aborted. */
  function holding() {
    const started = signalled<InstanceToolContext>()
    const tool = instanceTool({
      name: 'hold',
      execute: (_input, context) => {
        started.fire(context)
        return new Promise((_resolve, reject) => {
          context.signal.addEventListener('abort', () => reject(context.signal.reason as Error))
        })
      },
    })
    return { tool, started: started.fired }
  }

  const command = (tool_name: string, args: Record<string, unknown> = {}) => ({ tool_name, intention: '', args })

  async function run(server: TaskServer, ...commands: ReturnType<typeof command>[]) {
    const client = connectClient({ url: server.httpUrl })
    const { taskId } = await client.submit({ task_name: 'work', instanceId: 'worker-1', commands })
    const events = []
    for await (const event of client.watch(taskId)) events.push(event)
    return { client, events }
  }

  it('runs commands and reports their progress', async () => {
    const server = await startServer()
    const worker = await connectWorker(server)
    expect([worker.instanceId, worker.isConnected]).toEqual(['worker-1', true])
    const { client, events } = await run(server, command('double', { n: 21 }))
    expect(words(events)).toEqual(['0 running', '0 running', '0 success', 'completed'])
    expect(events[1]).toMatchObject({ progress: 1, total: 2, message: 'half way' })
    expect(events[2]).toMatchObject({ result: { structuredContent: { doubled: 42 } } })
    expect(await client.instances()).toMatchObject([{ id: 'worker-1', kind: 'websocket', tools: [{ name: 'double' }] }])
  })

  it.each([
    [command('double', { n: 'x' }), 'INVALID_ARGUMENTS'],
    [command('double', { n: 1, m: 2 }), 'INVALID_ARGUMENTS'],
    [command('nothing'), 'UNKNOWN_TOOL'],
    [command('broken'), 'NOT_FOUND'],
    [command('big'), 'RESULT_TOO_LARGE'],
  ])('fails the command %j with the code %s, and stays connected', async (failing, code) => {
    const broken = instanceTool({
      name: 'broken',
      execute: () => Promise.reject(Object.assign(new Error('no such button'), { code: 'NOT_FOUND' })),
    })
    const big = instanceTool({ name: 'big', execute: () => 'x'.repeat(2_000_000) })
    const server = await startServer()
    const worker = await connectWorker(server, { tools: [double, broken, big] })
    const { events } = await run(server, failing)
    expect(events.at(-1)).toMatchObject({ status: 'failed', error: { code } })
    expect(worker.isConnected).toBe(true)
  })

  it('S5: aborts the tool of a command that is cancelled', async () => {
    const { tool, started } = holding()
    const server = await startServer()
    const worker = await connectWorker(server, { tools: [tool, double] })
    const client = connectClient({ url: server.httpUrl })
    const { taskId } = await client.submit({ task_name: 'work', commands: [command('hold')] })
    const { signal, taskId: told } = await started
    expect(told).toBe(taskId)
    const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve))
    expect(await client.cancel(taskId)).toBe(true)
    await aborted
    const { events } = await run(server, command('double', { n: 1 }))
    expect(words(events).at(-1)).toBe('completed')
    expect(worker.runningCalls).toBe(0)
  })

  it('authenticates with a token, and rejects with an invalid one', async () => {
    const server = await startServer({ auth: { tokens: ['right-token'] } })
    const worker = await connectWorker(server, { token: 'right-token' })
    expect(worker.isConnected).toBe(true)
    await expect(connectWorker(server, { token: 'wrong-token', id: 'other' })).rejects.toMatchObject({
      code: 'UNAUTHORIZED',
    })
  })

  it('may send a token to a server that requires none', async () => {
    const server = await startServer()
    const worker = await connectWorker(server, { token: 'needless-token' })
    expect(worker.isConnected).toBe(true)
  })

  it('reconnects after its connection was cut: the running command fails, the next one runs', async () => {
    const { tool, started } = holding()
    const server = await startServer()
    const sockets = cuttableSockets()
    const worker = await connectWorker(server, { tools: [tool, double], WebSocket: sockets.WebSocket })
    const client = connectClient({ url: server.httpUrl })
    const { taskId } = await client.submit({ task_name: 'work', commands: [command('hold')] })
    const watched = client.watch(taskId)[Symbol.asyncIterator]()
    const { signal } = await started
    const back = connection(server)
    sockets.cut()
    let last = await watched.next()
    while (last.done !== true && last.value.type !== 'task_complete') last = await watched.next()
    expect(last.value).toMatchObject({ status: 'failed', error: { code: 'INSTANCE_DISCONNECTED' } })
    expect(signal.aborted).toBe(true)
    expect(await back).toBe('worker-1')
    const { events } = await run(server, command('double', { n: 1 }))
    expect(words(events).at(-1)).toBe('completed')
    expect(worker.instanceId).toBe('worker-1')
  })

  it('does not reconnect when the server disconnects it on purpose', async () => {
    const server = await startServer()
    const worker = await connectWorker(server)
    const connects: string[] = []
    server.instances.onConnect((id) => connects.push(id))
    await server.instances.disconnect('worker-1')
    expect(await worker.closed).toMatchObject({ code: 'INSTANCE_DISCONNECTED' })
    expect([worker.isConnected, connects, server.instances.get('worker-1')]).toEqual([false, [], undefined])
  })

  it('registers again, with its id, on a restarted server', async () => {
    const first = await startServer()
    const worker = await connectWorker(first)
    await first.close()
    const second = await startServer({ port: Number(new URL(first.httpUrl).port) })
    // It may connect while the server is still starting.
    const [there] = second.instances.list().filter(({ isConnected }) => isConnected)
    expect(there?.id ?? (await connection(second))).toBe('worker-1')
    const { events } = await run(second, command('double', { n: 1 }))
    expect(words(events).at(-1)).toBe('completed')
    expect(worker.instanceId).toBe('worker-1')
  })

  it('disconnects when it is closed: the running command fails', async () => {
    const { tool, started } = holding()
    const server = await startServer()
    const worker = await connectWorker(server, { tools: [tool] })
    const client = connectClient({ url: server.httpUrl })
    const { taskId } = await client.submit({ task_name: 'work', commands: [command('hold')] })
    const watched = read(client.watch(taskId))
    await started
    const gone = new Promise<string>((resolve) => server.instances.onDisconnect(resolve))
    await worker.close()
    expect(await gone).toBe('worker-1')
    expect(await worker.closed).toBeUndefined()
    await client.list()
    expect(words(watched.events).at(-1)).toBe('failed')
  })

  /** The next instance that connects. */
  function connection(server: TaskServer): Promise<string> {
    return new Promise((resolve) => server.instances.onConnect(resolve))
  }
})
