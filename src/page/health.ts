/** Measures the last hour in points of ten seconds: how many tasks started and ended, how long they took, and how many were active. */
import type { TaskOutcome } from '../../machines/task-status.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { HealthPoint } from './wire.js'
import type { Versions } from './versioned.js'

const POINT_MS = 10_000
const MAX_POINTS = 360

/** The maximum number of durations that a point keeps. Later durations replace the oldest ones. */
const MAX_DURATIONS = 1000

const COUNTERS = { succeeded: 'completed', failed: 'failed', stopped: 'cancelled' } as const satisfies Record<
  TaskOutcome,
  keyof HealthPoint
>

/** How many tasks run, how many are queued, and how many results are not delivered yet. */
export interface Depths {
  readonly running: number
  readonly queued: number
  readonly owed: number
}

interface Point {
  readonly at: number
  version: number
  started: number
  completed: number
  failed: number
  cancelled: number
  ended: number
  durations: number[]
  depths: Depths
}

export class Health {
  readonly #versions: Versions
  readonly #now: () => number
  readonly #depths: () => Depths
  readonly #points: Point[] = []

  constructor(versions: Versions, now: () => number, depths: () => Depths) {
    this.#versions = versions
    this.#now = now
    this.#depths = depths
  }

  start(): void {
    this.#current().started += 1
  }

  /** @param durationMs the time from the creation of the task to its end */
  end(outcome: TaskOutcome, durationMs: number): void {
    const point = this.#current()
    point[COUNTERS[outcome]] += 1
    point.ended += 1
    point.durations[(point.ended - 1) % MAX_DURATIONS] = durationMs
  }

  /** Returns the points of the last hour. */
  all(): HealthPoint[] {
    this.roll()
    return this.#points.map(shown)
  }

  since(version: number): HealthPoint[] {
    return this.#points.filter((point) => point.version > version).map(shown)
  }

  /** Adds points up to the current time, and updates the depths of the last point. */
  roll(): void {
    const depths = this.#depths()
    const last = this.#points.at(-1)
    const at = Math.floor(this.#now() / POINT_MS) * POINT_MS
    if (last?.at === at && sameDepths(last.depths, depths)) return
    this.#current()
  }

  #current(): Point {
    const at = Math.floor(this.#now() / POINT_MS) * POINT_MS
    let point = this.#points.at(-1)
    if (point === undefined || point.at < at) {
      const from = point === undefined ? at : Math.max(point.at + POINT_MS, at - POINT_MS * (MAX_POINTS - 1))
      const before = point?.depths ?? this.#depths()
      for (let time = from; time <= at; time += POINT_MS) {
        point = {
          at: time,
          version: 0,
          started: 0,
          completed: 0,
          failed: 0,
          cancelled: 0,
          ended: 0,
          durations: [],
          depths: before,
        }
        point.version = this.#versions.next()
        this.#points.push(point)
      }
      this.#points.splice(0, Math.max(0, this.#points.length - MAX_POINTS))
    }
    const current = point as Point
    current.depths = this.#depths()
    current.version = this.#versions.next()
    return current
  }
}

const sameDepths = (a: Depths, b: Depths): boolean =>
  a.running === b.running && a.queued === b.queued && a.owed === b.owed

function shown({ at, started, completed, failed, cancelled, durations, depths }: Point): HealthPoint {
  const sorted = [...durations].sort((a, b) => a - b)
  const [p50, p99] = [quantile(sorted, 0.5), quantile(sorted, 0.99)]
  return {
    at,
    started,
    completed,
    failed,
    cancelled,
    ...omitUndefined({ p50, p99 }),
    ...depths,
  }
}

/** Returns the smallest value that is not exceeded by this share of the values (nearest-rank method). */
const quantile = (sorted: readonly number[], share: number): number | undefined =>
  sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]
