/** Rates, latencies and depths of the last hour, in points of ten seconds. */
import { defined } from '../defined.js'
import type { HealthPoint } from './wire.js'
import type { Versions } from './versioned.js'

const POINT_MS = 10_000
const MAX_POINTS = 360

/** The maximum number of kept durations of a point. The latest ones are kept. */
const MAX_DURATIONS = 1000

export type HealthEnd = 'completed' | 'failed' | 'cancelled'

/** The current values. */
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

  /** @param durationMs from its creation to its end */
  end(how: HealthEnd, durationMs: number): void {
    const point = this.#current()
    point[how] += 1
    point.ended += 1
    point.durations[(point.ended - 1) % MAX_DURATIONS] = durationMs
  }

  /** The points of the last hour. */
  all(): HealthPoint[] {
    this.roll()
    return this.#points.map(shown)
  }

  since(version: number): HealthPoint[] {
    return this.#points.filter((point) => point.version > version).map(shown)
  }

  /** Begins a point for the current time, and updates its depths. */
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
    ...defined({ p50, p99 }),
    ...depths,
  }
}

/** Returns the value that this share of the values does not exceed (nearest rank). */
const quantile = (sorted: readonly number[], share: number): number | undefined =>
  sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]
