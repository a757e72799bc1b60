/** How long a request waits for a Redis that is away. */
import { elapsedMs, type Clock } from '../../clock.js'
import { AgentTasksError } from '../../errors.js'

/** A promise that takes longer is rejected: Redis is away. */
export function withLimit(clock: Clock, ms: number) {
  return <T>(promise: Promise<T>): Promise<T> =>
    new Promise<T>((resolve, reject) => {
      const since = elapsedMs(clock)
      const timer = clock.setTimeout(() => {
        const waited = Math.round(elapsedMs(clock) - since)
        reject(new AgentTasksError('UNAVAILABLE', `Redis has not answered for ${waited} ms. Try again later.`))
      }, ms)
      promise.then(resolve, reject).finally(() => clock.clearTimeout(timer))
    })
}
