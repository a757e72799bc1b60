/** The counters of schedules. */
import type { Counter } from '../../protocol/telemetry.js'

export const scheduleCounters: readonly Counter[] = [
  ['firings', '{firing}', 'Firings of schedules, including those that replace missed firings.'],
  ['missed_firings', '{firing}', 'Firings of schedules that were due while no host was running.'],
  ['skipped_firings', '{firing}', 'Firings of schedules that were skipped because an earlier task had not ended.'],
]
