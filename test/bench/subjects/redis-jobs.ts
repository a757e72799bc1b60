/** Jobs that do nothing, in BullMQ on a Redis that syncs every write. It listens on a socket file only. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Queue, Worker } from 'bullmq'
import { requireRedis } from '../../support/redis-server.js'
import type { Subject } from '../subject.js'
import type { Load } from './command-tasks.js'

/** How many jobs are queued at once. */
const BATCH = 90

export async function redisJobs({ lanes = 1 }: Load): Promise<Subject> {
  const program = requireRedis()
  const folder = mkdtempSync(join(tmpdir(), 'agent-tasks-bench-'))
  const path = join(folder, 'redis.sock')
  const server = spawn(
    program,
    [
      ...['--port', '0', '--unixsocket', path, '--dir', folder, '--save', ''],
      ...['--appendonly', 'yes', '--appendfsync', 'always'],
    ],
    { stdio: 'ignore' },
  )
  while (!existsSync(path)) await new Promise((resolve) => setTimeout(resolve, 10))
  const connection = { path, maxRetriesPerRequest: null }
  let left = 0
  let resolve = (): void => undefined
  const pairs = Array.from({ length: lanes }, (_, lane) => {
    const name = `lane-${lane}`
    const worker = new Worker(name, () => Promise.resolve('done'), { connection })
    worker.on('completed', () => {
      left -= 1
      if (left === 0) resolve()
    })
    return { queue: new Queue(name, { connection }), worker }
  })
  await Promise.all(pairs.flatMap(({ queue, worker }) => [queue.waitUntilReady(), worker.waitUntilReady()]))
  return {
    run: async (times) => {
      for (let toStart = times; toStart > 0; toStart -= BATCH) {
        const count = Math.min(toStart, BATCH)
        left = count
        const completed = new Promise<void>((settle) => (resolve = settle))
        // Each is on the disk when it is accepted, as each submission is.
        const added = Array.from({ length: count }, async (_, at) => pairs[at % lanes]?.queue.add('nothing', { at }))
        await Promise.all(added)
        await completed
      }
      return undefined
    },
    close: async () => {
      await Promise.all(pairs.flatMap(({ queue, worker }) => [worker.close(), queue.close()]))
      server.kill()
      await once(server, 'exit')
      rmSync(folder, { recursive: true })
    },
  }
}
