/** Fails the jobs of dead workers. Workers and hosts both do this, so that a job also fails when its own host is dead. */
import { UnrecoverableError, type Job } from 'bullmq'
import type { Redis } from 'ioredis'
import { jobKeys, queueKey, RETENTION_SECONDS, type QueueName } from './job-keys.js'
import { FIND_SILENT, GIVE_UP } from './job-scripts.js'
import { runScript } from './script.js'
import { interruptedError, WORKER_DIED, writeFailure } from './wire.js'

/** How long the lock for failing a job lasts, in ms. If the client that holds this lock dies, another client can fail the job after that time. */
const GIVE_UP_MS = 5000

export interface QueueAccess {
  readonly redis: Redis
  readonly name: QueueName
  readonly findJob: (id: string) => Promise<Job | undefined>
}

export interface GiveUpOptions extends QueueAccess {
  /** The interval between checks, in ms. All clients of the queue together make at most one check in this time. */
  readonly everyMs: number
  /** Whether a job without a lock really has a dead worker. This is false while live workers may still be reconnecting to Redis. */
  readonly seesDead: () => boolean
}

/** Checks the active jobs of a queue, and fails those whose workers are dead. */
export async function giveUpDead({ everyMs, seesDead, ...access }: GiveUpOptions): Promise<void> {
  const { redis, name } = access
  if (!seesDead()) return
  const queue = queueKey(name)
  if ((await redis.set(`${queue}:agent-sweep`, '1', 'PX', everyMs, 'NX')) !== 'OK') return
  for (const id of (await runScript(redis, FIND_SILENT, {}, { queue })) as string[]) {
    // The connection to Redis may have been lost during the script. Then locks of live workers may have expired.
    if (!seesDead()) return
    await giveUp(access, id)
  }
}

/** Fails a job whose worker is dead. Does nothing when the worker has taken its lock again, or when another client has failed the job. */
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
