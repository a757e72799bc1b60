/** The names and looks of the states of a task. */
import type { PageTask, PageTaskEnd, PageTaskState } from '../../wire.js'

/** A colour of styles/tokens.css. */
type Tone =
  'queued' | 'running' | 'asking' | 'wrapping' | 'stopping' | 'completed' | 'failed' | 'cancelled' | 'timed-out'

/**
 * The look of a state. The icon is an SVG path in a square of 12 units. Icons and bar patterns differ, so that a person can recognise a state without
 * its colour.
 */
export interface Look {
  readonly word: string
  readonly tone: Tone
  readonly shape: string
  readonly isFilled?: boolean
  /** The title of the error or reason of the end. Default: `Error`. */
  readonly errorTitle?: string
  /** The lines of the bar pattern, each as x1, y1, x2, y2 in a tile of 8 units. Default: no pattern. */
  readonly strokes?: readonly (readonly [number, number, number, number])[]
  /** Whether the page shows reported progress in this state. */
  readonly hasProgress?: true
}

const END_LOOKS = {
  completed: { word: 'Completed', tone: 'completed', shape: 'M1.5 6.5l3 3 6-7' },
  failed: {
    word: 'Failed',
    tone: 'failed',
    shape: 'M2 2l8 8M10 2l-8 8',
    strokes: [
      [0, 0, 8, 8],
      [0, 8, 8, 0],
    ],
  },
  cancelled: {
    word: 'Cancelled',
    tone: 'cancelled',
    errorTitle: 'Why it was cancelled',
    shape: 'M6 1.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M3 9l6-6',
    strokes: [
      [-2, 6, 6, -2],
      [2, 10, 10, 2],
    ],
  },
} as const satisfies Readonly<Record<PageTaskEnd, Look>>

/** In the order in which the page lists them. */
export const LOOKS = {
  queued: { word: 'Queued', tone: 'queued', shape: 'M6 1.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9' },
  running: { word: 'Running', tone: 'running', shape: 'M3 1.5v9l7.5-4.5z', isFilled: true, hasProgress: true },
  asking: {
    word: 'Asking',
    tone: 'asking',
    shape: 'M3.6 4.2a2.4 2.4 0 1 1 3.6 2.1c-.8.5-1.2.9-1.2 1.7M6 10.4v.1',
    strokes: [[2, 4, 4, 4]],
  },
  wrapping: {
    word: 'Wrapping up',
    tone: 'wrapping',
    shape: 'M6 1.5v9M6 1.5a4.5 4.5 0 0 1 0 9z',
    isFilled: true,
    strokes: [[0, 4, 8, 4]],
    hasProgress: true,
  },
  stopping: { word: 'Stopping', tone: 'stopping', shape: 'M2 2h8v8H2z', isFilled: true, strokes: [[4, 0, 4, 8]] },
  ...END_LOOKS,
  'timed-out': {
    word: 'Timed out',
    tone: 'timed-out',
    shape: 'M2.5 1.5h7M2.5 10.5h7M3.5 1.5c0 3 5 6 5 9M8.5 1.5c0 3-5 6-5 9',
    strokes: [
      [-2, 2, 6, 10],
      [2, -2, 10, 6],
    ],
  },
} as const satisfies Readonly<Record<PageTaskState, Look>>

export const STATES = Object.keys(LOOKS) as PageTaskState[]

export const END_STATES = Object.keys(END_LOOKS) as PageTaskEnd[]

export const colorOf = (state: PageTaskState): string => `var(--${LOOKS[state].tone})`

/** Returns how long a task has run so far. For a task that is queued or has never run, returns how long it has waited. */
export function runLengthOf({ state, createdAt, startedAt = createdAt, endedAt }: PageTask, now: number): number {
  return Math.max(0, (endedAt ?? now) - (state === 'queued' ? createdAt : startedAt))
}

/** Returns how long ago a task was created, or how long it existed until it ended. */
export function lengthOf({ createdAt, endedAt }: PageTask, now: number): number {
  return Math.max(0, (endedAt ?? now) - createdAt)
}
