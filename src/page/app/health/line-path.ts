/** A point of a line in a chart of the part Health. */
export interface ChartPoint {
  readonly at: number
  /** Undefined if there is no value at this time. The line then has a gap. */
  readonly value?: number | undefined
}

export interface ChartBox {
  readonly from: number
  readonly to: number
  readonly max: number
  readonly width: number
  readonly height: number
}

/** Returns the `d` attribute of an SVG path. A single point between two gaps is a short stroke. */
export function linePath(points: readonly ChartPoint[], { from, to, max, width, height }: ChartBox): string {
  let isDrawing = false
  const parts: string[] = []
  for (const { at, value } of points) {
    if (value === undefined) {
      isDrawing = false
      continue
    }
    const x = round(((at - from) / (to - from)) * width)
    const y = round(height - (Math.min(value, max) / max) * height)
    parts.push(isDrawing ? `L${x} ${y}` : `M${x} ${y}h.01`)
    isDrawing = true
  }
  return parts.join('')
}

/** Returns the end of the axis: the smallest number that is not less than `value`, and is 1, 2 or 5 times a power of ten. */
export function roundMax(value: number): number {
  if (value <= 1) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 5, 10].find((step) => step * power >= value) ?? 10) * power
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
