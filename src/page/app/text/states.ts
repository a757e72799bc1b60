/** The states of a task on the page: the statuses of its record, and the states of its machine while it runs. */
import type { PageTask, PageTaskState } from '../../wire.js'

/** The look of a state: its name, an icon as a path in a square of 12 units, and a pattern for bars, so that it can be recognised without colour. */
export interface Look {
  readonly word: string
  readonly shape: string
  readonly isFilled?: boolean
  /** The lines of its pattern, from point to point in a tile of 8 units. Default: none. */
  readonly strokes?: readonly (readonly [number, number, number, number])[]
  /** Whether the reported progress is shown. */
  readonly hasProgress?: true
}

/** In display order. */
export const LOOKS = {
  queued: { word: 'Queued', shape: 'M6 1.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9' },
  running: { word: 'Running', shape: 'M3 1.5v9l7.5-4.5z', isFilled: true, hasProgress: true },
  asking: {
    word: 'Asking',
    shape: 'M3.6 4.2a2.4 2.4 0 1 1 3.6 2.1c-.8.5-1.2.9-1.2 1.7M6 10.4v.1',
    strokes: [[2, 4, 4, 4]],
  },
  wrapping: {
    word: 'Wrapping up',
    shape: 'M6 1.5v9M6 1.5a4.5 4.5 0 0 1 0 9z',
    isFilled: true,
    strokes: [[0, 4, 8, 4]],
    hasProgress: true,
  },
  stopping: { word: 'Stopping', shape: 'M2 2h8v8H2z', isFilled: true, strokes: [[4, 0, 4, 8]] },
  completed: { word: 'Completed', shape: 'M1.5 6.5l3 3 6-7' },
  failed: {
    word: 'Failed',
    shape: 'M2 2l8 8M10 2l-8 8',
    strokes: [
      [0, 0, 8, 8],
      [0, 8, 8, 0],
    ],
  },
  cancelled: {
    word: 'Cancelled',
    shape: 'M6 1.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M3 9l6-6',
    strokes: [
      [-2, 6, 6, -2],
      [2, 10, 10, 2],
    ],
  },
  'timed-out': {
    word: 'Timed out',
    shape: 'M2.5 1.5h7M2.5 10.5h7M3.5 1.5c0 3 5 6 5 9M8.5 1.5c0 3-5 6-5 9',
    strokes: [
      [-2, 2, 6, 10],
      [2, -2, 10, 6],
    ],
  },
} as const satisfies Readonly<Record<PageTaskState, Look>>

export const STATES = Object.keys(LOOKS) as PageTaskState[]

/** The duration of a task's run so far. For a task that waits, or has never run, the duration of its wait. */
export function runLengthOf({ state, createdAt, startedAt = createdAt, endedAt }: PageTask, now: number): number {
  return Math.max(0, (endedAt ?? now) - (state === 'queued' ? createdAt : startedAt))
}

/** The duration of a task so far, including its wait. */
export function lengthOf({ createdAt, endedAt }: PageTask, now: number): number {
  return Math.max(0, (endedAt ?? now) - createdAt)
}
