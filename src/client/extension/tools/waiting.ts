/** Waits that end early when a signal aborts. */
import { systemClock } from '../../../system/clock.js'

/** Resolves after `ms`. @throws the reason of the signal when it aborts */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const stop = (): void => {
      systemClock.clearTimeout(timer)
      reject(signal.reason as Error)
    }
    const timer = systemClock.setTimeout(() => {
      signal.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal.addEventListener('abort', stop, { once: true })
  })
}

/** Polls the condition. Returns whether it became true within `ms`. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  { ms, everyMs = 25, signal }: { ms: number; everyMs?: number; signal: AbortSignal },
): Promise<boolean> {
  const end = performance.now() + ms
  for (;;) {
    if (await condition()) return true
    if (performance.now() >= end) return false
    await pause(everyMs, signal)
  }
}

/** Does work with a time limit. The signal of the work aborts with the error of `late` when the limit is reached. */
export async function within<T>(
  ms: number,
  late: () => Error,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController()
  const timer = systemClock.setTimeout(() => limit.abort(late()), ms)
  try {
    return await work(AbortSignal.any([signal, limit.signal]))
  } finally {
    systemClock.clearTimeout(timer)
  }
}
