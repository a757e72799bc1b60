/** Waits and time limits. */
import { systemClock, unrefTimer, withTimeLimit } from '../clock.js'

/** Resolves after so many ms. */
export const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    systemClock.setTimeout(resolve, ms)
  })

/** Calls `run` again and again, until the returned function is called. It does not keep the process alive. */
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

/** Settles as the promise does, or rejects when the time has passed. */
export function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  const late = (): never => {
    throw new Error('Redis did not answer in time.')
  }
  return withTimeLimit(promise, { clock: systemClock, ms: Math.max(0, ms), late })
}
