/** Computes the SVG paths of a chart's lines. */
import type { Point } from './chart.js'

const CORNER = 6
const ARROW = { length: 8, half: 4 }

/** Returns a line through the points with rounded corners. The line ends where the arrow begins. */
export function linePath(points: readonly Point[]): string {
  const drawn = shortened(points)
  return drawn
    .map((point, index) => {
      const before = drawn[index - 1]
      const after = drawn[index + 1]
      if (before === undefined) return `M${at(point)}`
      if (after === undefined) return `L${at(point)}`
      const radius = Math.min(CORNER, distance(before, point) / 2, distance(point, after) / 2)
      return `L${at(towards(point, before, radius))}Q${at(point)} ${at(towards(point, after, radius))}`
    })
    .join('')
}

export function arrowPath(points: readonly Point[]): string {
  const tip = points.at(-1)
  const before = points.at(-2)
  if (tip === undefined || before === undefined) return ''
  const base = towards(tip, before, ARROW.length)
  const length = distance(tip, before) || 1
  const across = { x: ((tip.y - before.y) / length) * ARROW.half, y: ((before.x - tip.x) / length) * ARROW.half }
  const [left, right] = [1, -1].map((side) => ({ x: base.x + across.x * side, y: base.y + across.y * side }))
  return left === undefined || right === undefined ? '' : `M${at(tip)}L${at(left)}L${at(right)}Z`
}

function shortened(points: readonly Point[]): readonly Point[] {
  const tip = points.at(-1)
  const before = points.at(-2)
  return tip === undefined || before === undefined
    ? points
    : [...points.slice(0, -1), towards(tip, before, ARROW.length - 1)]
}

function towards(from: Point, to: Point, length: number): Point {
  const whole = distance(from, to)
  const share = whole === 0 ? 0 : length / whole
  return { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share }
}

function distance(from: Point, to: Point): number {
  return Math.hypot(to.x - from.x, to.y - from.y)
}

function at({ x, y }: Point): string {
  return `${Math.round(x * 10) / 10} ${Math.round(y * 10) / 10}`
}
