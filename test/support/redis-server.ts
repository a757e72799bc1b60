/** Runs Debian's `redis-server`: a server for each test, in its own folder, on a port that the system chooses. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { freePort } from './free-port.js'

/** The path of `redis-server`; undefined if it is not installed. */
export function findRedis(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  return folders.map((folder) => join(folder, 'redis-server')).find((file) => existsSync(file))
}

/** The path of `redis-server`. @throws Error when it is not installed, with the command that installs it */
export function requireRedis(): string {
  const program = findRedis()
  if (program === undefined) {
    throw new Error('There is no redis-server. Install it with: apt-get install -y redis-server')
  }
  return program
}

/** How a Redis is set up. */
export interface RedisServerOptions {
  /**
   * How often Redis writes its file to the disk. Default `always`: nothing is lost when Redis is killed. `no file`: Redis keeps nothing when it ends.
   */
  readonly appendfsync?: 'always' | 'everysec' | 'no' | 'no file'
  /** The password. Default: none. */
  readonly password?: string
  /** What Redis does when its memory is full. Default `noeviction`. */
  readonly maxmemoryPolicy?: string
  /** Whether it is a node of a Redis Cluster. Default false. */
  readonly isClusterNode?: boolean
}

/** A Redis of one test. */
export interface RedisServer {
  /** `redis://127.0.0.1:<port>`, with the password if there is one. */
  readonly url: string
  readonly port: number
  /** Returns the pid of its present process. */
  readonly pid: () => number
  /** Kills Redis (SIGKILL). Its data remains. */
  kill(): Promise<void>
  /** Stops Redis as an administrator does. Its data remains. */
  stop(): Promise<void>
  /** Starts Redis again, on the same port with the same data. */
  start(): Promise<void>
  /** Sends SIGSTOP, so that Redis does not answer. */
  pause(): void
  /** Sends SIGCONT. */
  resume(): void
  /** Ends Redis, and removes its data. */
  close(): Promise<void>
}

/** How long Redis may take to answer, in ms. It is long, because only a hang should fail. */
const START_MS = 30_000

/** Starts a Redis. Resolves when Redis answers. */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const { appendfsync = 'always', password, maxmemoryPolicy = 'noeviction', isClusterNode = false } = options
  const program = requireRedis()
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-redis-'))
  const port = await freePort()
  const url = `redis://${password === undefined ? '' : `:${password}@`}127.0.0.1:${port}`
  const args = [
    ...['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', ''],
    ...['--maxmemory-policy', maxmemoryPolicy],
    ...(isClusterNode ? ['--cluster-enabled', 'yes'] : []),
    ...(password === undefined ? [] : ['--requirepass', password]),
    ...(appendfsync === 'no file' ? ['--appendonly', 'no'] : ['--appendonly', 'yes', '--appendfsync', appendfsync]),
  ]
  let server: ChildProcess | undefined
  const start = async (): Promise<void> => {
    server = spawn(program, args, { stdio: 'ignore' })
    await answers(url, server)
  }
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const ended = server
    server = undefined
    if (ended === undefined || ended.exitCode !== null || ended.signalCode !== null) return
    const exited = once(ended, 'exit')
    ended.kill(signal)
    await exited
  }
  await start()
  return {
    url,
    port,
    pid: () => server?.pid ?? 0,
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    start,
    pause: () => void server?.kill('SIGSTOP'),
    resume: () => void server?.kill('SIGCONT'),
    close: async () => {
      await end('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function answers(url: string, server: ChildProcess): Promise<void> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: null, maxRetriesPerRequest: 0 })
  redis.on('error', () => undefined)
  try {
    for (let waited = 0; ; waited += 10) {
      if (server.exitCode !== null) throw new Error(`redis-server has ended with ${server.exitCode}`)
      try {
        await redis.connect()
        await redis.ping()
        return
      } catch (error) {
        if (waited >= START_MS) throw error
        await pause(10)
      }
    }
  } finally {
    redis.disconnect()
  }
}
