/** Ends the jobs of workers that have died, also where their hosts have died, too. */
import type { Redis } from 'ioredis'
import { jobKeys, type QueueName } from './job-keys.js'
import { GIVE_UP } from './job-scripts.js'
import { runScript } from './script.js'
import { WORKER_DIED } from './wire.js'

/** What `giveUpDead` is given. */
export interface GiveUpOptions {
  readonly redis: Redis
  readonly name: QueueName
  /** How often workers look, in ms: it does nothing when another one has within this time. */
  readonly everyMs: number
  /** Whether a job without a lock is one whose worker has died, and not one whose worker is coming back. */
  readonly seesDead: () => boolean
}

/** Looks at the active jobs of a queue, and ends those whose workers have died. */
export async function giveUpDead({ redis, name, everyMs, seesDead }: GiveUpOptions): Promise<void> {
  if (!seesDead()) return
  const base = `${name.prefix}:${name.queue}`
  if ((await redis.set(`${base}:agent-sweep`, '1', 'PX', everyMs, 'NX')) !== 'OK') return
  for (const id of await redis.lrange(`${base}:active`, 0, -1)) {
    const { job, lock, agent, up, down, queueKeys } = jobKeys(name, id)
    if ((await redis.exists(lock)) === 1) continue
    // Redis may have been away before it answered.
    if (!seesDead()) return
    await runScript(redis, GIVE_UP, [job, lock, agent, up, down, ...queueKeys], [id, WORKER_DIED])
  }
}
