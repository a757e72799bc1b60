/** The values that each chart of the part Health shows. */
import type { HealthPoint } from '../../wire.js'
import { count, duration } from '../text/format.js'
import type { ChartPoint } from './line-path.js'

export interface ChartLine {
  readonly name: string
  /** The CSS class with the colour of the line. */
  readonly look: string
  readonly points: readonly ChartPoint[]
}

export interface Chart {
  readonly title: string
  readonly lines: readonly ChartLine[]
  readonly write: (value: number) => string
}

const SECONDS_OF_A_POINT = 10

export function chartsOf(points: readonly HealthPoint[]): readonly Chart[] {
  const line = (name: string, look: string, value: (point: HealthPoint) => number | undefined): ChartLine => ({
    name,
    look,
    points: points.map((point) => ({ at: point.at, value: value(point) })),
  })
  const perSecond = (ended: number): number => ended / SECONDS_OF_A_POINT
  return [
    {
      title: 'Tasks per second',
      write: (value) => `${count(value)}/s`,
      lines: [
        line('Started', 'running', ({ started }) => perSecond(started)),
        line('Completed', 'completed', ({ completed }) => perSecond(completed)),
      ],
    },
    {
      title: 'Failures and cancellations per second',
      write: (value) => `${count(value)}/s`,
      lines: [
        line('Failed', 'failed', ({ failed }) => perSecond(failed)),
        line('Cancelled', 'cancelled', ({ cancelled }) => perSecond(cancelled)),
      ],
    },
    {
      title: 'Duration from creation to end',
      write: duration,
      lines: [line('p50', 'running', ({ p50 }) => p50), line('p99', 'timed-out', ({ p99 }) => p99)],
    },
    {
      title: 'Tasks and owed results at each time',
      write: count,
      lines: [
        line('Running', 'running', ({ running }) => running),
        line('Queued', 'queued', ({ queued }) => queued),
        line('Owed', 'asking', ({ owed }) => owed),
      ],
    },
  ]
}
