/** Waits and time limits. */
import { systemClock, unrefTimer, withTimeLimit } from '../system/clock.js'

export const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    systemClock.setTimeout(resolve, ms)
  })

/** Calls `run` every `ms` milliseconds, until the returned function is called. The timer does not keep the process alive. */
export function every(ms: number, run: () => void): () => void {
  let timer: unknown
  const next = (): void => {
    timer = systemClock.setTimeout(() => {
      next()
      run()
    }, ms)
    unrefTimer(timer)
  }
  next()
  return () => systemClock.clearTimeout(timer)
}

/** Settles like `promise`, or rejects after `ms` milliseconds. */
export function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  const limitMs = Math.max(0, ms)
  const late = (): never => {
    throw new Error(`Redis did not answer within ${Math.round(limitMs)} ms.`)
  }
  return withTimeLimit(promise, { clock: systemClock, ms: limitMs, late })
}
