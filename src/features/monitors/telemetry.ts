/** The counters of monitors. */
import type { Counter } from '../../protocol/telemetry.js'

export const monitorCounters: readonly Counter[] = [
  ['monitor_events', '{event}', 'Events of monitors.'],
  ['monitor_ends', '{monitor}', 'Monitors that have ended.'],
]
