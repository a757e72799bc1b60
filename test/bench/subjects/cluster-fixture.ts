/** A cluster of processes on a Redis of its own, or one server without a cluster, and a client on each. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { Redis } from 'ioredis'
import { WebSocket } from 'ws'
import { startRedis } from '../../support/redis-server.js'
import type { Question, ServerSpec } from './cluster-server.js'

/** What was sent to a client. */
export interface Message {
  readonly type: string
  readonly taskId?: string
  readonly status?: string
}

export interface BenchNode {
  readonly process: ChildProcess
  readonly socket: WebSocket
  /** The processor time that it has used. */
  cpuUs(): Promise<number>
  /** Its memory, after its garbage has been collected. */
  rss(): Promise<number>
  /** Kills it (SIGKILL). */
  kill(): Promise<void>
}

export interface BenchCluster {
  readonly redis: Redis
  readonly port: number
  readonly nodes: readonly BenchNode[]
  startNode(instances: readonly string[]): Promise<BenchNode>
  /** The processor time that Redis has used, in us. */
  redisCpuUs(): Promise<number>
  close(): Promise<void>
}

/** How a cluster is set up. */
export interface BenchClusterOptions {
  readonly checkout: string
  /** When Redis syncs: each write, as nodes want it; or each second, so that the disk is not what is measured. */
  readonly sync: 'always' | 'everysec'
  readonly isCluster?: boolean
  readonly lockMs?: number
}

/** @param instances those of each node */
export async function startBenchCluster(
  instances: readonly (readonly string[])[],
  { checkout, sync, isCluster = true, lockMs }: BenchClusterOptions,
): Promise<BenchCluster> {
  const server = await startRedis({ appendfsync: sync })
  const redis = new Redis(server.url)
  const nodes: BenchNode[] = []
  const startNode = async (own: readonly string[]): Promise<BenchNode> => {
    const connection = isCluster ? server.url : undefined
    const node = await startProcess({
      checkout,
      instances: own,
      ...(connection !== undefined && { connection }),
      ...(lockMs !== undefined && { lockMs }),
    })
    nodes.push(node)
    return node
  }
  for (const own of instances) await startNode(own)
  const cluster: BenchCluster = {
    redis,
    port: server.port,
    nodes,
    startNode,
    redisCpuUs: async () => {
      const info = await redis.info('cpu')
      const read = (field: string): number => Number(new RegExp(`^${field}:(.*)$`, 'm').exec(info)?.[1])
      return (read('used_cpu_sys') + read('used_cpu_user')) * 1e6
    },
    close: async () => {
      await Promise.all(nodes.map((node) => node.kill()))
      redis.disconnect()
      await server.close()
    },
  }
  const count = isCluster ? new Set(instances.flat()).size : 0
  while ((await redis.zcard('{agent-tasks}:cluster:instances')) < count) {
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  return cluster
}

async function startProcess(spec: ServerSpec): Promise<BenchNode> {
  const child = fork(new URL('cluster-server.js', import.meta.url), [JSON.stringify(spec)])
  const [url] = (await once(child, 'message')) as [string]
  const socket = new WebSocket(url)
  await once(socket, 'open')
  const ask = async (question: Question): Promise<number> => {
    const answer = once(child, 'message') as Promise<[number]>
    child.send(question)
    return (await answer)[0]
  }
  return {
    process: child,
    socket,
    cpuUs: () => ask('cpuUs'),
    rss: () => ask('rss'),
    kill: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      socket.terminate()
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** A task of one command. */
export const taskFrame = (instanceId: string, tool: 'nothing' | 'hold'): string =>
  JSON.stringify({
    type: 'task_submit',
    task_name: 'task',
    task_intention: 'do nothing',
    instanceId,
    commands: [{ tool_name: tool, intention: 'do nothing', args: {} }],
  })

/** Resolves with the first message to a client that fits. */
export function heard(socket: WebSocket, fits: (message: Message) => boolean): Promise<Message> {
  return new Promise((resolve) => {
    const onMessage = (data: Buffer): void => {
      const message = JSON.parse(data.toString()) as Message
      if (!fits(message)) return
      socket.off('message', onMessage)
      resolve(message)
    }
    socket.on('message', onMessage)
  })
}
