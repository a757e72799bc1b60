/** The time limit of requests to Redis. */
import { elapsedMs, withTimeLimit, type Clock } from '../../system/clock.js'
import { AgentTasksError } from '../../errors.js'

/** Returns a function that rejects with `UNAVAILABLE` when a promise has not settled after `ms` milliseconds. */
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
