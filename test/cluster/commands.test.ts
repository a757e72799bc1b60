/** The tool `submit_commands` of hosts that use a cluster, whose commands run on an instance of any node. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { bullmqCluster } from '../../src/bullmq/index.js'
import { createAgentTasks } from '../../src/host/agent-tasks.js'
import { sqliteStore, type Store } from '../../src/store/index.js'
import { startMortalCluster } from '../support/cluster.js'
import { connectWatched } from '../support/cluster-instance.js'
import { call, holderOf, post, submit, taskFor, taskOf, until } from '../support/cluster-client.js'
import { startNearCluster } from '../support/near-cluster.js'
import type { RedisServer } from '../support/redis-server.js'
import { startSpoken } from '../support/spoken-process.js'

/** A host in this process. */
function startHost({ redis }: { readonly redis: RedisServer }, more: { store?: Store; sendTimeoutMs?: number } = {}) {
  const { sendTimeoutMs, ...options } = more
  const lines: string[] = []
  const cluster = bullmqCluster({ connection: redis.url, ...(sendTimeoutMs !== undefined && { sendTimeoutMs }) })
  const taskManager = cluster.tasks({ log: (line) => lines.push(line) })
  const tasks = createAgentTasks({ ...options, taskManager, maxAsyncTasks: -1 })
  const manager = tasks.getAsyncTaskManager()
  const end = async (): Promise<void> => {
    await tasks.dispose()
    await taskManager.close()
  }
  onTestFinished(end)
  const owed: string[] = []
  manager.onTaskCompleted(({ id }) => owed.push(id))
  const run = (mark: string, input: { tool?: string; isAsync?: boolean; instanceId?: string; ms?: number } = {}) => {
    const { tool = 'hold', isAsync = true, instanceId = 'w', ms } = input
    const commands = [{ tool_name: tool, intention: '', args: { mark, reports: 3, ...(ms !== undefined && { ms }) } }]
    return tasks.tools.submit_commands.execute({ task_name: mark, instanceId, commands, async: isAsync })
  }
  const launch = async (mark: string, input = {}): Promise<{ id: string; commandTaskId: string }> => {
    const { metadata = {}, llmContent } = await run(mark, input)
    if (metadata['agentId'] === undefined) throw new Error(llmContent)
    return { id: metadata['agentId'], commandTaskId: metadata['commandTaskId'] as string }
  }
  const settled = async (...ids: string[]) => (await manager.waitFor(ids, { timeoutMs: 60_000 })).settled
  return { tasks, taskManager, manager, run, launch, settled, owed, lines, end }
}

function storeFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-host-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'tasks.db')
}

describe('a host', () => {
  it('N3, N7: runs commands on an instance of any node, streams their progress, and owes each result once', async () => {
    const cluster = await startNearCluster(2, { hasOwnAddresses: true })
    const workers = [
      await connectWatched(cluster.nodes[0]?.httpUrl ?? '', 'w'),
      await connectWatched(cluster.nodes[1]?.httpUrl ?? '', 'v'),
    ]
    const host = startHost(cluster)
    for (const [index, instanceId] of ['w', 'v'].entries()) {
      const mark = `one on ${instanceId}`
      const { id, commandTaskId } = await host.launch(mark, { instanceId })
      await workers[index]?.untilStarted(mark)
      await until(() => Promise.resolve(host.manager.getTask(id)?.progress !== undefined))
      // Another one that follows it changes nothing for the first.
      const steps: string[] = []
      const { signal } = new AbortController()
      void host.taskManager.followTask(commandTaskId, { signal, onProgress: ({ status }) => steps.push(status) })
      await until(() => Promise.resolve(steps.length > 1))
      // Its metadata tell whoever looks at the command task which async task follows it.
      const { body } = await call(cluster.nodes[index]?.httpUrl ?? '', `/tasks/${commandTaskId}`)
      expect(body['task']).toMatchObject({ status: 'running', instanceId, metadata: { asyncTaskId: id } })
      workers[index]?.finish(mark)
      expect(await host.settled(id)).toMatchObject([
        { status: 'completed', output: { command_task_id: commandTaskId, instance_id: instanceId } },
      ])
      expect(host.manager.readOutput(id)?.text).toBe('[1/1] hold: running\n[1/1] hold: success: ' + mark + '\n')
      expect(host.owed.filter((each) => each === id)).toEqual([id])
    }
    const inPlace = await host.run('in place', { tool: 'do', isAsync: false })
    expect(inPlace.llmContent).toContain('do: success: in place')
    expect(await host.taskManager.listInstances()).toMatchObject([{ id: 'w' }, { id: 'v' }])
    expect(host.lines).toEqual([])
  })

  it('N7: cancels commands that are queued, and commands that run, and is notified when others cancel them', async () => {
    const cluster = await startNearCluster(2)
    const worker = await connectWatched(cluster.url, 'w')
    const host = startHost(cluster)
    const running = await host.launch('running')
    await worker.untilStarted('running')
    const queued = await host.launch('queued')
    expect(host.manager.cancelTask(queued.id)).toBe(true)
    const { url } = cluster
    const hasEnded = (id: string) => until(async () => (await taskOf(url, id)).status === 'cancelled')
    await hasEnded(queued.commandTaskId)
    expect(host.manager.cancelTask(running.id)).toBe(true)
    await hasEnded(running.commandTaskId)
    await until(() => Promise.resolve(worker.deeds.some(({ step }) => step === 'end')))
    const other = await host.launch('other')
    await worker.untilStarted('other')
    await post(url, `/tasks/${other.commandTaskId}/cancel`)
    const [failed] = await host.settled(other.id)
    expect(failed).toMatchObject({ status: 'failed', error: expect.stringContaining('cancelled elsewhere') as string })
    // With its manager.
    const last = await host.launch('last')
    await worker.untilStarted('last')
    await host.end()
    await hasEnded(last.commandTaskId)
    expect(worker.started()).toEqual(['running', 'other', 'last'])
  })

  it('N5: says why commands were refused, with the limits of the nodes', async () => {
    const cluster = await startNearCluster(1, { server: { tasks: { maxQueueSize: 1 } } })
    const worker = await connectWatched(cluster.url, 'w')
    const host = startHost(cluster)
    const first = await host.launch('first')
    await worker.untilStarted('first')
    expect((await host.run('too many')).llmContent).toContain('Task queue is full (max 1, maxQueueSize) (QUEUE_FULL)')
    expect((await host.run('nowhere', { instanceId: 'x' })).error?.type).toBe('parameter_validation')
    expect(host.manager.getAllTasks()).toHaveLength(1)
    worker.finish('first')
    await host.settled(first.id)
  })

  it('N4: receives the failure of commands whose node died, and the results of those behind them, which run elsewhere', async () => {
    const cluster = await startMortalCluster(2)
    const { nodes, url } = cluster
    const worker = await connectWatched(url, 'w', 500)
    const host = startHost(cluster)
    const lost = await host.launch('lost')
    const next = await host.launch('next', { tool: 'do' })
    await worker.untilStarted('lost')
    await nodes[await holderOf(nodes.map(({ httpUrl }) => httpUrl))]?.kill()
    const ended = await host.settled(lost.id, next.id)
    const of = (id: string) => ended.find((task) => task.id === id)
    expect(of(lost.id)).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('INSTANCE_DISCONNECTED') as string,
    })
    expect(of(next.id)).toMatchObject({ status: 'completed' })
  })

  it('N7: follows commands over the end of Redis, and cancels them when it is back', async () => {
    const cluster = await startNearCluster(2)
    const { redis, url } = cluster
    const worker = await connectWatched(url, 'w')
    const host = startHost(cluster, { sendTimeoutMs: 300 })
    const one = await host.launch('one')
    const two = await host.launch('two')
    await worker.untilStarted('one')
    await redis.kill()
    expect((await host.run('three')).llmContent).toContain('NOT_STORED')
    host.manager.cancelTask(two.id)
    // Longer than a request waits for Redis.
    await host.run('four')
    await redis.start()
    await until(async () => (await taskOf(url, two.commandTaskId)).status === 'cancelled')
    worker.finish('one')
    expect(await host.settled(one.id)).toMatchObject([{ status: 'completed' }])
    expect(worker.started()).toEqual(['one'])
    expect(host.lines.join('\n')).toMatch(/cluster host\): .*Reconnecting until[^]*is back/)
  })
})

describe('a host that dies', () => {
  it('N7: leaves its commands to the next one on its store, which follows them and owes each result once', async () => {
    const cluster = await startNearCluster(2)
    const { redis, url } = cluster
    const worker = await connectWatched(url, 'w')
    const file = storeFile()
    const dead = startSpoken('cluster-host', [redis.url, file, 'ended', 'running', 'queued', 'unwanted'])
    await dead.says('launched', ({ launched }) => launched === 'unwanted')
    await worker.untilStarted('ended')
    dead.signal('SIGKILL')
    await dead.ended
    // It ends while nobody is there to hear of it.
    worker.finish('ended')
    await worker.untilStarted('running')
    const idOf = (mark: string): string => dead.said.find(({ launched }) => launched === mark)?.['id'] as string
    // It starts while Redis is away.
    await redis.kill()
    const host = startHost(cluster, { store: sqliteStore(file), sendTimeoutMs: 300 })
    const { adopted } = await host.manager.recovered
    expect((await host.run('refused')).llmContent).toContain('NOT_STORED')
    await redis.start()
    expect(adopted).toEqual(['ended', 'running', 'queued', 'unwanted'].map(idOf))
    host.manager.cancelTask(idOf('unwanted'))
    const states = async (): Promise<string[]> =>
      ((await call(url, '/tasks')).body['tasks'] as { name: string; status: string }[]).map(
        ({ name, status }) => `${name} ${status}`,
      )
    await until(async () => (await states()).includes('unwanted cancelled'))
    worker.finish('running')
    await worker.untilStarted('queued')
    worker.finish('queued')
    const ids = ['ended', 'running', 'queued'].map(idOf)
    const { settled, deliveryId } = await host.manager.waitFor(ids, { timeoutMs: 60_000 })
    expect(settled.map(({ status }) => status)).toEqual(Array(3).fill('completed'))
    // All of its output, from the beginning.
    expect(host.manager.readOutput(idOf('ended'))?.text).toBe('[1/1] hold: running\n[1/1] hold: success: ended\n')
    host.manager.confirm(deliveryId ?? '')
    expect(await states()).toEqual([
      ...['unwanted cancelled', 'queued completed', 'running completed', 'ended completed'],
    ])
    expect(worker.started()).toEqual(['ended', 'running', 'queued'])
    expect(new Set(host.owed).size).toBe(host.owed.length)
    await host.end()
    const last = startHost(cluster, { store: sqliteStore(file) })
    await last.manager.recovered
    expect(ids.map((id) => last.manager.getTask(id)?.delivery)).toEqual(Array(3).fill('delivered'))
  })

  it('N7: and whose command task the cluster has forgotten: the next one says that its end is not known', async () => {
    const cluster = await startNearCluster(1, { server: { tasks: { maxRetained: 0 } } })
    const { redis, url } = cluster
    const worker = await connectWatched(url, 'w')
    const file = storeFile()
    const dead = startSpoken('cluster-host', [redis.url, file, 'one'])
    const { id } = await dead.says('launched')
    await worker.untilStarted('one')
    dead.signal('SIGKILL')
    await dead.ended
    worker.finish('one')
    await submit(url, taskFor('w', 'do', { mark: 'two' }))
    await worker.untilStarted('two')
    const host = startHost(cluster, { store: sqliteStore(file) })
    const [failed] = await host.settled(String(id))
    expect(failed).toMatchObject({ status: 'failed', errorCode: 'INTERRUPTED' })
    expect(worker.started()).toEqual(['one', 'two'])
  })
})
