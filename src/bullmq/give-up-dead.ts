/** Fails the jobs of dead workers, also when their hosts are dead. */
import { UnrecoverableError, type Job } from 'bullmq'
import type { Redis } from 'ioredis'
import { jobKeys, queueKey, RETENTION_SECONDS, type QueueName } from './job-keys.js'
import { FIND_SILENT, GIVE_UP } from './job-scripts.js'
import { runScript } from './script.js'
import { interruptedError, WORKER_DIED, writeFailure } from './wire.js'

/** How long the lock for failing a job lasts, in ms. If its holder dies, another client tries again after that. */
const GIVE_UP_MS = 5000

/** Access to the queue. */
export interface QueueAccess {
  readonly redis: Redis
  readonly name: QueueName
  /** Reads a job. */
  readonly findJob: (id: string) => Promise<Job | undefined>
}

/** Options of `giveUpDead`. */
export interface GiveUpOptions extends QueueAccess {
  /** The interval between checks, in ms. A check is skipped when another worker has made one within this time. */
  readonly everyMs: number
  /** Whether a job without a lock really has a dead worker. False while workers may still be reconnecting. */
  readonly seesDead: () => boolean
}

/** Checks the active jobs of a queue, and fails those whose workers are dead. */
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

/** Fails a job whose worker is dead. No-op when the worker is back, or another client has failed the job. */
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
