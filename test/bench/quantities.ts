/** What is read from a round. */
import type { Quantity } from './figure.js'
import { quantile } from './statistics.js'

export const cpuUs: Quantity = { unit: 'us', better: 'less', read: ({ cpuNs }) => cpuNs / 1000 }

/** What the subject measured itself. */
export const own = (unit: string): Quantity => ({ unit, better: 'less', read: (round) => round.own ?? NaN })

/** One of the things that the subject counted. */
export const counted = (name: string, unit: string): Quantity => ({
  unit,
  better: 'less',
  read: ({ counts }) => counts[name] ?? NaN,
})

export const perSecond = (time: 'cpuNs' | 'wallNs', processes = 1): Quantity => ({
  unit: 'a second',
  better: 'more',
  read: (round) => (processes * 1e9) / round[time],
})

export const latencyMs = (share: number): Quantity => ({
  unit: 'ms',
  better: 'less',
  read: ({ durations }) => quantile(durations, share),
})
