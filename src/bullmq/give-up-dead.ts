/** Ends the jobs of workers that have died, also where their hosts have died, too. */
import type { Redis } from 'ioredis'
import { jobKeys, type QueueName } from './job-keys.js'
import { GIVE_UP } from './job-scripts.js'
import { runScript } from './script.js'
import { WORKER_DIED } from './wire.js'

/** Looks at the active jobs of a queue, unless another worker has within this time, in ms. */
export async function giveUpDead(redis: Redis, name: QueueName, everyMs: number): Promise<void> {
  const base = `${name.prefix}:${name.queue}`
  if ((await redis.set(`${base}:agent-sweep`, '1', 'PX', everyMs, 'NX')) !== 'OK') return
  for (const id of await redis.lrange(`${base}:active`, 0, -1)) {
    const { job, lock, agent, up, down, queueKeys } = jobKeys(name, id)
    if ((await redis.exists(lock)) === 1) continue
    await runScript(redis, GIVE_UP, [job, lock, agent, up, down, ...queueKeys], [id, WORKER_DIED])
  }
}
