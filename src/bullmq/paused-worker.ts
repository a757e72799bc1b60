/** Pauses a worker of BullMQ after an error of Redis. BullMQ itself fetches the next job again at once, a thousand times a second. */
import type { Worker } from 'bullmq'
import { systemClock } from '../system/clock.js'
import { createBackoff } from './backoff.js'

/** The first pause, in ms. */
const FIRST_MS = 1000

/** An error that comes later than this after a pause, in ms, is a new failure. */
const CALM_MS = 5000

/**
 * Pauses the worker after each error, longer each time. Running jobs continue.
 * @param isReady whether the worker is connected; BullMQ waits by itself while it is not
 * @returns a function that ends the pauses
 */
export function pauseOnErrors(worker: Worker, isReady: () => boolean): () => void {
  const backoff = createBackoff(FIRST_MS)
  let timer: unknown
  let resumedAt = -Infinity
  const resume = (): void => {
    timer = undefined
    resumedAt = performance.now()
    void worker.resume()
  }
  const pauseNow = (): void => {
    if (timer !== undefined || !isReady()) return
    if (performance.now() - resumedAt > CALM_MS) backoff.reset()
    // BullMQ reports errors of a pause as errors of the worker.
    void worker.pause(true)
    timer = systemClock.setTimeout(resume, backoff.next())
  }
  worker.on('error', pauseNow)
  return () => {
    worker.off('error', pauseNow)
    systemClock.clearTimeout(timer)
  }
}
