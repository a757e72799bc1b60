/** Statistics of several rounds. */

/** A value that was measured in several rounds. */
export interface Sample {
  readonly median: number
  /** The lower and the upper quartile. */
  readonly low: number
  readonly high: number
  readonly rounds: number
}

/** The value below which a share of the values lies, by linear interpolation. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (sorted.length - 1) * share
  const below = sorted[Math.floor(at)] ?? NaN
  const above = sorted[Math.ceil(at)] ?? NaN
  return below + (above - below) * (at - Math.floor(at))
}

export function sampleOf(values: readonly number[]): Sample {
  return {
    median: quantile(values, 0.5),
    low: quantile(values, 0.25),
    high: quantile(values, 0.75),
    rounds: values.length,
  }
}

/** The slope of the line through the points by least squares, and its standard error. */
export function regression(points: readonly (readonly [number, number])[]): { slope: number; error: number } {
  const n = points.length
  const meanX = points.reduce((sum, [x]) => sum + x, 0) / n
  const meanY = points.reduce((sum, [, y]) => sum + y, 0) / n
  const spreadX = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0)
  const slope = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0) / spreadX
  const residual = points.reduce((sum, [x, y]) => sum + (y - meanY - slope * (x - meanX)) ** 2, 0)
  return { slope, error: Math.sqrt(residual / Math.max(1, n - 2) / spreadX) }
}
