/** A cluster for tests. It has its own Redis, nodes as processes that can be killed and paused, and one address in front of the nodes. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'
import type { BullmqClusterOptions } from '../../src/bullmq/cluster/bullmq-cluster.js'
import type { TaskServerOptions } from '../../src/server/index.js'
import { inTurn, startFront } from './front.js'
import { shiftedClock } from './shifted-clock.js'
import { startRedis, type RedisServer, type RedisServerOptions } from './redis-server.js'

export interface NodeProcess {
  readonly pid: number
  readonly httpUrl: string
  readonly wsUrl: string
  /** The lines of its log. */
  readonly log: string[]
  readonly ended: Promise<number | null>
  readonly isEnded: boolean
  /** Whether the node is paused. The address in front of the nodes leaves out a paused node. */
  readonly isPaused: boolean
  /** Sends SIGKILL. */
  kill(): Promise<void>
  /** Sends SIGSTOP. */
  pause(): void
  /** Sends SIGCONT. */
  resume(): void
  /** Sends SIGTERM, so that the node drains. Resolves with its exit code. */
  stop(): Promise<number | null>
}

export interface NodeSetup {
  readonly cluster?: { readonly [Name in keyof BullmqClusterOptions]?: BullmqClusterOptions[Name] | undefined }
  readonly server?: TaskServerOptions
  /** The id of an instance in the process of the node. */
  readonly local?: string
  /** How far the clock of the node is ahead, in ms. */
  readonly clockShiftMs?: number
}

export interface TestCluster {
  readonly redis: RedisServer
  /** The address in front of all nodes. Each connection goes to the next node that lives. */
  readonly url: string
  readonly nodes: readonly NodeProcess[]
  readonly startNode: (setup?: NodeSetup) => Promise<NodeProcess>
  /** Cuts the connections through the address: all of them, or every n-th. */
  readonly cut: (each?: number) => void
}

/**
 * After this time a silent node counts as dead, in ms. It is short, because tests wait for it. On a machine that is too busy, living nodes count as
 * dead, too.
 */
export const LOCK_MS = 3000

/** Starts a cluster that notices dead nodes early. */
export const startMortalCluster = (
  count: number,
  setup: NodeSetup = {},
  redisOptions?: RedisServerOptions,
): Promise<TestCluster> =>
  startCluster(count, { ...setup, cluster: { lockMs: LOCK_MS, ...setup.cluster } }, redisOptions)

/** Starts a cluster that ends with the test. */
export async function startCluster(
  count: number,
  setup: NodeSetup = {},
  redisOptions: RedisServerOptions = {},
): Promise<TestCluster> {
  const redis = await startRedis(redisOptions)
  onTestFinished(() => redis.close())
  const nodes: NodeProcess[] = []
  const front = await startFront(inTurn(() => nodes))
  const url = `http://127.0.0.1:${front.port}`
  const startNode = async (own: NodeSetup = {}): Promise<NodeProcess> => {
    const options = {
      cluster: { connection: redis.url, publicUrl: url, ...setup.cluster, ...own.cluster },
      server: { logLevel: 'info', ...setup.server, ...own.server },
      ...((own.local ?? setup.local) !== undefined && { local: own.local ?? setup.local }),
    }
    const program = new URL('./programs/cluster-node.ts', import.meta.url).pathname
    const { clockShiftMs } = own
    const clock = clockShiftMs === undefined ? {} : shiftedClock(clockShiftMs)
    const node = await startServer([program], { NODE_SETUP: JSON.stringify(options), ...clock })
    nodes.push(node)
    return node
  }
  await Promise.all(Array.from({ length: count }, () => startNode()))
  return { redis, url, nodes, startNode, cut: front.cut }
}

/** Starts a server as a separate process, which ends with the test. The first line of its output has its URLs, as JSON. */
export async function startServer(args: readonly string[], env: Record<string, string> = {}): Promise<NodeProcess> {
  const child = spawn(process.execPath, ['--import', 'tsx', ...args], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const log: string[] = []
  createInterface({ input: child.stderr }).on('line', (line) => log.push(line))
  const exited = once(child, 'exit').then(([code]) => code as number | null)
  onTestFinished(async () => {
    if (hasEnded(child)) return
    child.kill('SIGKILL')
    await exited
  })
  const lines = createInterface({ input: child.stdout })
  const first = await Promise.race([once(lines, 'line').then(([line]) => line as string), exited])
  if (typeof first !== 'string') throw new Error(`The node has not started:\n${log.join('\n')}`)
  const { httpUrl, wsUrl } = JSON.parse(first) as { httpUrl: string; wsUrl: string }
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    child.kill(signal)
    return exited
  }
  let isPaused = false
  return {
    pid: child.pid ?? 0,
    httpUrl,
    wsUrl,
    log,
    ended: exited,
    get isEnded() {
      return hasEnded(child)
    },
    get isPaused() {
      return isPaused
    },
    kill: async () => {
      await end('SIGKILL')
    },
    pause: () => {
      isPaused = true
      child.kill('SIGSTOP')
    },
    resume: () => {
      isPaused = false
      child.kill('SIGCONT')
    },
    stop: () => end('SIGTERM'),
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null
