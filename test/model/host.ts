/** What the model and the real thing have in common: both take actions, keep a log and can be looked at. */
import type { Action, TopAction } from './actions.js'

/** What an action answered, or the error it threw. */
export type Answer = { readonly returned: unknown } | { readonly threw: string }

export interface Host {
  /** Takes an action and answers it at once. */
  act(action: TopAction): Answer
  /** Lets everything come in that is under way without the clock: outcomes of runs, ends of waits. */
  drain(): Promise<void>
  /** Everything that can be seen from outside. */
  observe(): unknown
  /** What the callbacks of the host were told and did since the last call, in order. */
  takeLog(): unknown[]
}

/** How often the script of one subscription runs; later calls of it are only logged. */
export const SCRIPT_USES = 3

/** How many actions the scripts may take in one step of the host. */
export const SCRIPT_FUEL = 30

/** How long the part of a reminder about one task may be: only the long output is longer. */
export const REMINDER_CHARS = 400

/** What both hosts subscribe to first, so that everything that is told is in the log. */
export const baseSubscriptions: readonly Action[] = [
  { do: 'subscribe', stream: 'transitions', script: [] },
  { do: 'subscribe', stream: 'settled', script: [] },
  { do: 'subscribe', stream: 'owed', script: [] },
  { do: 'subscribe', stream: 'actor', script: [] },
  { do: 'on', status: 'completed', script: [] },
  { do: 'on', status: 'failed', script: [] },
  { do: 'on', status: 'cancelled', script: [] },
]

/** How one side takes each kind of action. */
export type Performers = {
  readonly [Kind in TopAction['do']]: (action: Extract<TopAction, { do: Kind }>) => unknown
}

export function perform(performers: Performers, action: TopAction): unknown {
  return (performers[action.do] as (action: TopAction) => unknown)(action)
}
