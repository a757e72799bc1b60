/** Stores when runs of a subagent with a start rate have started, so that a restart does not reset the rate (promise F18). */
import { z } from 'zod'
import { elapsedMs } from '../../system/clock.js'
import { lazily } from '../../protocol/lazily.js'
import type { Feature } from '../../async-tasks/feature.js'
import { takeRows } from '../../async-tasks/recovery/state-rows.js'
import type { TaskRegistry } from '../../async-tasks/registry.js'

const FEATURE = 'rates'

/** `at` is the time of the write, in ms since the epoch. `starts` are the ages of the starts at that time, in ms. */
const windowSchema = lazily(() =>
  z.object({ at: z.number(), perMs: z.number(), starts: z.array(z.number().min(0)).min(1) }),
)

function storeStarts(
  { persistence, limits, clock }: TaskRegistry,
  { perMs }: { readonly perMs: number },
  names: readonly string[],
): void {
  const now = elapsedMs(clock)
  for (const name of names) {
    const starts = limits.rates.startsOf(name).map((at) => Math.round(now - at))
    if (starts.length === 0) persistence?.dropState(FEATURE, name)
    else persistence?.keepState(FEATURE, name, { at: clock.now(), perMs, starts })
  }
}

export const storedRates = (registry: TaskRegistry): Feature => ({
  counted: (rate, names) => storeStarts(registry, rate, names),
  states: {
    feature: FEATURE,
    restore: (rows) => {
      const { clock, limits } = registry
      takeRows(registry, { feature: FEATURE, schema: windowSchema(), rows }, ({ at, perMs, starts }, name) => {
        // The age is computed from the system time, which may have been set back since. So it is not less than 0.
        const writtenAt = elapsedMs(clock) - Math.max(clock.now() - at, 0)
        const times = starts.map((agoMs) => writtenAt - agoMs)
        limits.rates.restore(name, times, perMs)
      })
    },
  },
})
