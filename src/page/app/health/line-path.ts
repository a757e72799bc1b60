/** The lines of a small chart. */
export interface ChartPoint {
  readonly at: number
  /** Absent if there is no value. The line then has a gap. */
  readonly value?: number | undefined
}

export interface ChartBox {
  readonly from: number
  readonly to: number
  readonly max: number
  readonly width: number
  readonly height: number
}

/** The `d` attribute of an SVG path. A single point between gaps becomes a short stroke. */
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

/** Returns the smallest 1, 2 or 5 times a power of ten that is at least the given value, as the end of the axis. */
export function roundMax(value: number): number {
  if (value <= 1) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 5, 10].find((step) => step * power >= value) ?? 10) * power
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
