/** A clock whose timers do not keep the process alive. */
import type { Clock } from '../../system/clock.js'

export function idleClock(clock: Clock): Clock {
  return {
    now: () => clock.now(),
    clearTimeout: (timer) => clock.clearTimeout(timer),
    setTimeout: (run, ms) => {
      const timer = clock.setTimeout(run, ms)
      const { unref } = (timer ?? {}) as { unref?: unknown }
      if (typeof unref === 'function') unref.call(timer)
      return timer
    },
  }
}
