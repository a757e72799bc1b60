/** How long a request waits for a Redis that is away. */
import { elapsedMs, withTimeLimit, type Clock } from '../../clock.js'
import { AgentTasksError } from '../../errors.js'

/** A promise that takes longer is rejected: Redis is away. */
export function withLimit(clock: Clock, ms: number) {
  return <T>(promise: Promise<T>): Promise<T> => {
    const since = elapsedMs(clock)
    const late = (): never => {
      const waited = Math.round(elapsedMs(clock) - since)
      throw new AgentTasksError('UNAVAILABLE', `Redis has not answered for ${waited} ms. Try again later.`)
    }
    return withTimeLimit(promise, { clock, ms, late })
  }
}
