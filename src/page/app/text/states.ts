/** The states of a task, in words. */
import type { PageTask, PageTaskState } from '../../wire.js'

/** In the order in which they are offered. */
export const STATES: readonly PageTaskState[] = [
  'queued',
  'running',
  'asking',
  'wrapping',
  'stopping',
  'completed',
  'failed',
  'cancelled',
  'timed-out',
]

/** As people read it. */
export const STATE_WORDS: Readonly<Record<PageTaskState, string>> = {
  queued: 'Queued',
  running: 'Running',
  asking: 'Asking',
  wrapping: 'Wrapping up',
  stopping: 'Stopping',
  completed: 'Completed',
  failed: 'Failed',
  cancelled: 'Cancelled',
  'timed-out': 'Timed out',
}

/** How long it has taken, or takes by now. */
export function lengthOf({ createdAt, endedAt }: PageTask, now: number): number {
  return Math.max(0, (endedAt ?? now) - createdAt)
}
