/** What the model and the real manager have in common: both take actions, keep a log, and show their state. */
import type { Action, TopAction } from './actions.js'
import type { Answer } from './drawing.js'

export interface Host {
  /** Takes an action. */
  act(action: TopAction): Answer
  /** Completes what needs no clock: outcomes of runs, ends of waits. */
  drain(): Promise<void>
  /** Everything observable. */
  observe(): unknown
  /** The calls of the host's callbacks and what they did, in order, since the last `takeLog`. */
  takeLog(): unknown[]
}

/** How many tasks with the same key may run at once, besides those of which only one may. */
export const KEY_LIMITS = { two: 2 } as const

/** How often the script of a subscription runs; later calls are only logged. */
export const SCRIPT_USES = 3

/** How many actions all scripts may take in one step, because they may set each other off. */
export const SCRIPT_FUEL = 30

/** The most characters of a reminder about one task. Only the long output exceeds it. */
export const REMINDER_CHARS = 400

/** What both hosts subscribe to first, so that every event is in the log. */
export const baseSubscriptions: readonly Action[] = [
  { do: 'subscribe', stream: 'transitions', script: [] },
  { do: 'subscribe', stream: 'settled', script: [] },
  { do: 'subscribe', stream: 'owed', script: [] },
  { do: 'subscribe', stream: 'actor', script: [] },
  { do: 'on', status: 'completed', script: [] },
  { do: 'on', status: 'failed', script: [] },
  { do: 'on', status: 'cancelled', script: [] },
]

/** What one side does for each kind of action. */
export type Performers = {
  readonly [Kind in TopAction['do']]: (action: Extract<TopAction, { do: Kind }>) => unknown
}

export function perform(performers: Performers, action: TopAction): unknown {
  return (performers[action.do] as (action: TopAction) => unknown)(action)
}
