/** Timers that do not keep the process alive: an inspector must not. */
import type { Clock } from '../clock.js'

/** Calls `run` once after `ms` milliseconds, unless the process ends before. @returns a function that cancels the timer */
export function setIdleTimeout(clock: Clock, run: () => void, ms: number): () => void {
  const timer = clock.setTimeout(run, ms)
  const { unref } = (timer ?? {}) as { unref?: unknown }
  if (typeof unref === 'function') unref.call(timer)
  return () => clock.clearTimeout(timer)
}
