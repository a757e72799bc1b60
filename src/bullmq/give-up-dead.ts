/** Ends the jobs of workers that have died, also where their hosts have died, too. */
import { UnrecoverableError, type Job } from 'bullmq'
import type { Redis } from 'ioredis'
import { jobKeys, queueKey, RETENTION_SECONDS, type QueueName } from './job-keys.js'
import { FIND_SILENT, GIVE_UP } from './job-scripts.js'
import { runScript } from './script.js'
import { interruptedError, WORKER_DIED, writeFailure } from './wire.js'

/** How long the one who gives a job up has its lock, in ms: if it dies meanwhile, another one does it after that. */
const GIVE_UP_MS = 5000

/** Whose jobs are given up. */
export interface QueueAccess {
  readonly redis: Redis
  readonly name: QueueName
  /** Reads a job. */
  readonly findJob: (id: string) => Promise<Job | undefined>
}

/** What `giveUpDead` is given. */
export interface GiveUpOptions extends QueueAccess {
  /** How often workers look, in ms: it does nothing when another one has within this time. */
  readonly everyMs: number
  /** Whether a job without a lock is one whose worker has died, and not one whose worker is coming back. */
  readonly seesDead: () => boolean
}

/** Looks at the active jobs of a queue, and ends those whose workers have died. */
export async function giveUpDead({ everyMs, seesDead, ...access }: GiveUpOptions): Promise<void> {
  const { redis, name } = access
  if (!seesDead()) return
  const queue = queueKey(name)
  if ((await redis.set(`${queue}:agent-sweep`, '1', 'PX', everyMs, 'NX')) !== 'OK') return
  for (const id of (await runScript(redis, FIND_SILENT, {}, { queue })) as string[]) {
    // Redis may have been away before it answered.
    if (!seesDead()) return
    await giveUp(access, id)
  }
}

/** Fails a job whose worker has died. It does nothing when the worker is back, or another one has given the job up. */
export async function giveUp({ redis, name, findJob }: QueueAccess, id: string): Promise<void> {
  const { queue, agent } = jobKeys(name, id)
  const token = `given-up:${globalThis.crypto.randomUUID()}`
  const args = {
    queue,
    id,
    token,
    lockMs: GIVE_UP_MS,
    keptSeconds: RETENTION_SECONDS,
    failure: writeFailure(interruptedError(WORKER_DIED)),
  }
  if ((await runScript(redis, GIVE_UP, { agent }, args)) !== 1) return
  const job = await findJob(id)
  await job?.moveToFailed(new UnrecoverableError(WORKER_DIED), token)
}
