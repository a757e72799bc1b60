/** Timers that do not keep a process alive, as nothing does that only shows what others do. */
import type { Clock } from '../clock.js'

/** Calls `run` once, `ms` milliseconds from now, unless the process has ended by then. @returns what takes it back */
export function setIdleTimeout(clock: Clock, run: () => void, ms: number): () => void {
  const timer = clock.setTimeout(run, ms)
  const { unref } = (timer ?? {}) as { unref?: unknown }
  if (typeof unref === 'function') unref.call(timer)
  return () => clock.clearTimeout(timer)
}
