/** A Redis that answers and refuses: after a failover, with a full memory, for a user without permissions, as a replica or as a node of a Redis Cluster. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { bullmqCluster, bullmqRunner, startWorker, type AgentWorker } from '../../src/bullmq/index.js'
import type { Runner } from '../../src/engine/runner.js'
import { startTaskServer } from '../../src/server/index.js'
import { startRedis, type RedisServerOptions } from '../support/redis-server.js'
import { startSwitchingRelay } from '../support/switching-relay.js'
import { LOCK_MS } from '../support/fleet.js'

const goal = { subagentName: 'research', goalPrompt: 'find out' }

async function newRedis(options?: RedisServerOptions) {
  const server = await startRedis(options)
  const admin = new Redis(server.url)
  admin.on('error', () => undefined)
  onTestFinished(async () => {
    admin.disconnect()
    await server.close()
  })
  return { ...server, admin }
}

type Admin = Awaited<ReturnType<typeof newRedis>>['admin']

/** A host and a worker that share a connection. */
async function fleetOn(connection: string, run: Runner) {
  const lines: string[] = []
  const log = (line: string): void => void lines.push(line)
  const options = { connection, lockMs: LOCK_MS, log }
  const worker: AgentWorker = await startWorker({ ...options, subagents: { research: run } })
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, onError: () => undefined })
  onTestFinished(async () => {
    await Promise.all([worker.close(), manager.dispose()])
  })
  return { lines, worker, manager, runner: bullmqRunner({ ...options, queue: 'research' }) }
}

/** How many commands Redis has received, refused ones included, without those of this function. */
async function commandsOf(admin: Admin): Promise<number> {
  let count = 0
  for (const [, calls, rejected] of (await admin.info('commandstats')).matchAll(
    /calls=(\d+),.*?rejected_calls=(\d+)/g,
  )) {
    count += Number(calls) + Number(rejected)
  }
  return count
}

describe('a failover that keeps the connections to the old primary', () => {
  it('W6: hosts and workers leave it for the new primary: what runs ends, and new tasks run', async () => {
    const [first, second] = [await newRedis(), await newRedis()]
    // Otherwise the primary waits 5 s for further replicas.
    await first.admin.config('SET', 'repl-diskless-sync-delay', '0')
    await second.admin.replicaof('127.0.0.1', first.port)
    while (!/master_link_status:up/.test(await second.admin.info('replication'))) await pause(10)
    const relay = await startSwitchingRelay(first.port)
    onTestFinished(() => relay.close())
    let finish: () => void = () => undefined
    const finished = new Promise<void>((resolve) => (finish = resolve))
    let started = 0
    const { manager, runner, lines } = await fleetOn(`redis://127.0.0.1:${relay.port}`, async ({ goal }) => {
      started += 1
      if (goal === 'slow') await finished
      return { final_message: goal }
    })
    const slow = manager.launch({ ...goal, goalPrompt: 'slow' }, runner)
    const waiting = manager.launch({ ...goal, goalPrompt: 'waiting' }, runner)
    while (started === 0) await pause(5)
    await first.admin.wait(1, 5000)
    await second.admin.replicaof('NO', 'ONE')
    await first.admin.replicaof('127.0.0.1', second.port)
    relay.switchTo(second.port)
    finish()
    const later = manager.launch({ ...goal, goalPrompt: 'later' }, runner)
    const { settled } = await manager.waitFor([slow.id, waiting.id, later.id], { timeoutMs: 30_000 })
    expect(settled.map(({ status, output, error }) => [status, output?.final_message ?? error])).toEqual([
      ['completed', 'slow'],
      ['completed', 'waiting'],
      ['completed', 'later'],
    ])
    expect(started).toBe(3)
    expect(lines.some((line) => /accepts no writes, and is connected again: READONLY/.test(line))).toBe(true)
    expect(lines.length).toBeLessThan(15)
  })
})

describe('a worker and a host on a Redis that refuses', () => {
  const user = 'limited'
  it.each([
    {
      what: 'is full',
      refuse: (admin: Admin) => admin.config('SET', 'maxmemory', '1'),
      accept: (admin: Admin) => admin.config('SET', 'maxmemory', '0'),
    },
    {
      what: 'has taken permissions away',
      refuse: (admin: Admin) => admin.acl('SETUSER', user, '-evalsha', '-eval', '-bzpopmin'),
      accept: (admin: Admin) => admin.acl('SETUSER', user, '+@all'),
    },
    {
      what: 'has become a replica, with no other primary',
      refuse: (admin: Admin) => admin.replicaof('127.0.0.1', 9),
      accept: (admin: Admin) => admin.replicaof('NO', 'ONE'),
    },
  ])('W6: wait longer and longer when it $what, say so once, and go on when it accepts commands again', async (to) => {
    const { port, admin } = await newRedis()
    await admin.acl('SETUSER', user, 'on', '>secret', '~*', '&*', '+@all')
    const { manager, runner, lines } = await fleetOn(`redis://${user}:secret@127.0.0.1:${port}`, async (_, context) => {
      await pause(500)
      context.append('text')
      return { final_message: 'done' }
    })
    for (let count = 0; count < 3; count += 1) manager.launch(goal, runner)
    await pause(300)
    await to.refuse(admin)
    await pause(1000)
    const [linesBefore, commandsBefore] = [lines.length, await commandsOf(admin)]
    await pause(2000)
    expect((await commandsOf(admin)) - commandsBefore).toBeLessThan(200)
    expect(lines.length - linesBefore).toBeLessThan(6)
    await to.accept(admin)
    const { id } = manager.launch(goal, runner)
    const { settled } = await manager.waitFor([id], { timeoutMs: 40_000 })
    expect(settled).toMatchObject([{ status: 'completed', output: { final_message: 'done' } }])
  })

  it('W6: is refused at once when it is a replica', async () => {
    const [primary, replica] = [await newRedis(), await newRedis()]
    await replica.admin.replicaof('127.0.0.1', primary.port)
    const subagents = { research: () => ({}) }
    await expect(startWorker({ connection: replica.url, subagents, log: () => undefined })).rejects.toMatchObject({
      code: 'REDIS_UNUSABLE',
      message: `Redis at 127.0.0.1:${replica.port}: This Redis is a replica of 127.0.0.1:${primary.port}, and a replica accepts no tasks. Connect to its primary.`,
    })
    await expect(
      startTaskServer({ port: 0, env: {}, logLevel: 'silent', cluster: bullmqCluster({ connection: replica.url }) }),
    ).rejects.toMatchObject({ code: 'REDIS_UNUSABLE' })
  })

  it('W6: is refused at once when it is a node of a Redis Cluster', async () => {
    const { url, port } = await newRedis({ isClusterNode: true })
    const subagents = { research: () => ({}) }
    const refused = {
      code: 'REDIS_UNUSABLE',
      message: expect.stringContaining(`127.0.0.1:${port}: This Redis is a node of a Redis Cluster`) as string,
    }
    await expect(startWorker({ connection: url, subagents, log: () => undefined })).rejects.toMatchObject(refused)
    await expect(
      bullmqCluster({ connection: url })
        .tasks({ log: () => undefined })
        .listInstances(),
    ).rejects.toMatchObject(refused)
  })
})
