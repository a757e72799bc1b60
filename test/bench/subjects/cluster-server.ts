/**
 * A server of `cluster.ts`: `node cluster-server.js <ServerSpec as JSON>` starts one, sends its URL, and answers each message with what it has used.
 * With a `connection` it is a node of a cluster.
 */
import { importEntry } from '../package.js'

export interface ServerSpec {
  readonly checkout: string
  /** The URL of Redis. */
  readonly connection?: string
  readonly lockMs?: number
  /** Its own instances. They have the tools `nothing`, and `hold`, which ends when it is aborted. */
  readonly instances: readonly string[]
}

/** What a server is asked: the processor time that it has used, or its memory. */
export type Question = 'cpuUs' | 'rss'

const { checkout, connection, lockMs, instances } = JSON.parse(process.argv[2] ?? '') as ServerSpec
const { localInstance, startTaskServer } = await importEntry(checkout, './server')
const { bullmqCluster } = await importEntry(checkout, './bullmq')

const hold = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))

const server = await startTaskServer({
  port: 0,
  tasks: { wsPort: 0 },
  limits: { framesPerMinute: 1e9 },
  env: {},
  writeLog: () => undefined,
  ...(connection !== undefined && { cluster: bullmqCluster({ connection, ...(lockMs !== undefined && { lockMs }) }) }),
  instances: instances.map((id) =>
    localInstance({
      id,
      tools: [
        { name: 'nothing', execute: () => undefined },
        { name: 'hold', execute: (_args, { signal }) => hold(signal) },
      ],
    }),
  ),
})
process.once('disconnect', () => process.exit())
process.on('message', (question: Question) => {
  if (question === 'rss') {
    globalThis.gc?.()
    process.send?.(process.memoryUsage.rss())
  } else {
    const { user, system } = process.cpuUsage()
    process.send?.(user + system)
  }
})
process.send?.(server.wsUrl)
