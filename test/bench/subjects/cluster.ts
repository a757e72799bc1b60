/** What a cluster costs: tasks that do nothing through its nodes, its idleness, and how soon it hears of a cancellation and of a death. */
import { watchCommands } from '../../support/redis-monitor.js'
import type { Subject } from '../subject.js'
import {
  heard,
  startBenchCluster,
  taskFrame,
  type BenchCluster,
  type BenchNode,
  type Message,
} from './cluster-fixture.js'

export interface ClusterLoad {
  /** How many nodes there are; 0 is one server without a cluster. */
  readonly nodes: number
  /** How many instances there are in all. */
  readonly instances: number
}

/** How many tasks are under way at once, over all clients. */
const AT_ONCE = 48
/** How many tasks are watched to count what is sent to Redis. */
const WATCHED = 100

const instanceIds = (count: number): string[] => Array.from({ length: count }, (_, at) => `instance-${at}`)

/** The instances of each node. */
const shares = ({ nodes, instances }: ClusterLoad): string[][] => {
  const parts = Array.from({ length: Math.max(1, nodes) }, (): string[] => [])
  for (const [at, id] of instanceIds(instances).entries()) parts[at % parts.length]?.push(id)
  return parts
}

/** Tasks of one command, for each instance in turn, by a client at each node. */
export async function tasksOfCluster(load: ClusterLoad, checkout: string): Promise<Subject> {
  const cluster = await startBenchCluster(shares(load), { checkout, sync: 'everysec', isCluster: load.nodes > 0 })
  const { redis, nodes } = cluster
  let next = 0
  let [toStart, left] = [0, 0]
  let done = (): void => undefined
  const starters = nodes.map(({ socket }) => {
    const start = (): void => {
      if (toStart === 0) return
      toStart -= 1
      next += 1
      socket.send(taskFrame(`instance-${next % load.instances}`, 'nothing'))
    }
    socket.on('message', (data: Buffer) => {
      if (data.toString('latin1', 0, 24) !== '{"type":"task_complete",') {
        if (data.includes('"success":false') || data.includes('"type":"error"')) throw new Error(data.toString())
        return
      }
      if (!data.includes('"status":"completed"')) throw new Error(data.toString())
      left -= 1
      if (left === 0) done()
      else start()
    })
    return start
  })
  const runAll = (times: number): Promise<void> => {
    toStart = left = times
    const completed = new Promise<void>((resolve) => (done = resolve))
    for (let n = 0; n < AT_ONCE; n += 1) starters[n % starters.length]?.()
    return completed
  }
  /** What is sent to Redis for a task, besides what a script does there. */
  const watch = async (): Promise<number> => {
    let sent = 0
    const stop = await watchCommands(cluster.port, () => (sent += 1))
    await runAll(WATCHED)
    stop()
    return sent / WATCHED
  }
  await runAll(WATCHED)
  const commands = load.nodes === 0 ? 0 : await watch()
  let counts: Record<string, number> = {}
  return {
    run: async (times) => {
      const before = await used(cluster)
      await runAll(times)
      const after = await used(cluster)
      const clients = String(await redis.client('LIST', 'TYPE', 'NORMAL'))
      counts = {
        commands,
        cpuUs: (after.nodesUs + after.redisUs - before.nodesUs - before.redisUs) / times,
        nodesUs: (after.nodesUs - before.nodesUs) / times,
        redisUs: (after.redisUs - before.redisUs) / times,
        connections: (clients.match(/ name=agent-tasks/g)?.length ?? 0) / nodes.length,
        rssMiB: sumOf(await Promise.all(nodes.map((node) => node.rss()))) / nodes.length / 2 ** 20,
      }
      return undefined
    },
    takeCounts: () => counts,
    close: () => cluster.close(),
  }
}

async function used(cluster: BenchCluster) {
  const all = await Promise.all(cluster.nodes.map((node) => node.cpuUs()))
  return { nodesUs: sumOf(all), redisUs: await cluster.redisCpuUs() }
}

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0)

/** A cluster that does nothing: what it sends to Redis, and what that costs. */
export async function idleCluster(
  { windowMs, ...load }: ClusterLoad & { readonly windowMs: number },
  checkout: string,
): Promise<Subject> {
  const cluster = await startBenchCluster(shares(load), { checkout, sync: 'everysec' })
  let counts: Record<string, number> = {}
  return {
    run: async () => {
      const window = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, windowMs))
      const before = await used(cluster)
      await window()
      const after = await used(cluster)
      // What is watched costs more.
      let sent = 0
      const stop = await watchCommands(cluster.port, () => (sent += 1))
      await window()
      stop()
      const seconds = windowMs / 1000
      counts = {
        commands: sent / seconds / cluster.nodes.length,
        nodesMs: (after.nodesUs - before.nodesUs) / 1000 / seconds / cluster.nodes.length,
        redisMs: (after.redisUs - before.redisUs) / 1000 / seconds,
      }
      return undefined
    },
    takeCounts: () => counts,
    close: () => cluster.close(),
  }
}

/** A client of one node cancels what an instance of another one runs, and waits for its end. */
export async function cancels(_load: unknown, checkout: string): Promise<Subject> {
  const cluster = await startBenchCluster([[], ['instance-0']], { checkout, sync: 'always' })
  const [client] = cluster.nodes
  const durations: number[] = []
  return {
    run: async (times) => {
      for (let n = 0; n < times; n += 1) {
        const taskId = await startHeld(client)
        const start = performance.now()
        const ended = heard(
          client?.socket ?? fail(),
          ({ type, taskId: id }) => type === 'task_complete' && id === taskId,
        )
        client?.socket.send(JSON.stringify({ type: 'task_cancel', taskId }))
        await ended
        durations.push(performance.now() - start)
      }
      return undefined
    },
    takeDurations: () => durations.splice(0),
    close: () => cluster.close(),
  }
}

/** Submits a task that runs until it is cancelled; resolves with its id when it runs. */
async function startHeld(client: BenchNode | undefined): Promise<string> {
  const { socket } = client ?? fail()
  const running = heard(socket, ({ type }) => type === 'task_progress')
  socket.send(taskFrame('instance-0', 'hold'))
  return (await running).taskId ?? ''
}

/** A round trip to such a Redis: one write, which is on the disk when it is answered. */
export async function writes(_load: unknown, checkout: string): Promise<Subject> {
  const cluster = await startBenchCluster([], { checkout, sync: 'always' })
  const durations: number[] = []
  return {
    run: async (times) => {
      for (let n = 0; n < times; n += 1) {
        const start = performance.now()
        await cluster.redis.set('written', n)
        durations.push(performance.now() - start)
      }
      return undefined
    },
    takeDurations: () => durations.splice(0),
    close: () => cluster.close(),
  }
}

/** From the death of a node to the start of the next command of its instance, at the node that stands by with the same; in ms. */
export async function deaths({ lockMs }: { readonly lockMs: number }, checkout: string): Promise<Subject> {
  const id = ['instance-0']
  const cluster = await startBenchCluster([[], id, id], { checkout, sync: 'always', lockMs })
  // The one that was there first has the instance.
  const [client, ...holders] = cluster.nodes
  return {
    run: async () => {
      const { socket } = client ?? fail()
      const held = await startHeld(client)
      socket.send(taskFrame('instance-0', 'nothing'))
      await heard(socket, ({ type }) => type === 'task_submit_response')
      const isNext = ({ type, taskId }: Message): boolean => type === 'task_progress' && taskId !== held
      const next = heard(socket, isNext)
      const start = performance.now()
      await holders.shift()?.kill()
      await next
      const took = performance.now() - start
      holders.push(await cluster.startNode(id))
      return took
    },
    close: () => cluster.close(),
  }
}

const fail = (): never => {
  throw new Error('the cluster of the benchmark has no such node')
}
