/** Draws the visible rows and the axis above them. */
import { preciseTime, timeOfDay } from '../text/format.js'
import { drawBar, type Scene } from './bar-painter.js'
import type { GroupRow, Row, PhaseRow } from './rows.js'
import { ticksOf, xOf, type Ticks } from './time-window.js'

export const ROW = 26
export const AXIS = 32
const BAR = 16

export function drawRows(scene: Scene, rows: readonly Row[], height: number): void {
  const { context, palette, width } = scene
  context.clearRect(0, 0, width, height)
  drawLines(scene, height)
  context.font = palette.font
  context.textBaseline = 'middle'
  context.textAlign = 'left'
  rows.forEach((row, index) => {
    const y = index * ROW + ROW / 2
    if (row.type === 'task') drawBar(scene, row.task, y, BAR, true)
    else if (!row.isOpen) drawClosed(scene, row, y)
  })
  drawNow(scene, height)
}

export function drawAxis(scene: Scene): void {
  const { context, palette, width, window, now } = scene
  context.clearRect(0, 0, width, AXIS)
  context.font = palette.font
  context.textBaseline = 'middle'
  context.textAlign = 'center'
  context.fillStyle = palette.muted
  const ticks = linesOf(scene)
  for (const at of ticks.at) {
    const x = xOf(at, window, width)
    if (x > 24 && x < width - 24) context.fillText(labelOf(at, ticks), x, AXIS / 2)
  }
  const x = xOf(now, window, width)
  if (x < 0 || x > width) return
  context.fillStyle = palette.accent
  context.beginPath()
  context.moveTo(x - 4, AXIS - 7)
  context.lineTo(x + 4, AXIS - 7)
  context.lineTo(x, AXIS - 1)
  context.fill()
}

/** Draws all tasks of a closed row. If the bars of several tasks cover the same pixels, only the first of them is drawn. */
function drawClosed(scene: Scene, { tasks }: PhaseRow | GroupRow, y: number): void {
  const { window, width, now } = scene
  let covered = -1
  // From the oldest to the newest.
  for (let index = tasks.length - 1; index >= 0; index -= 1) {
    const task = tasks[index]
    if (!task) continue
    const end = xOf(task.endedAt ?? now, window, width)
    if (end < 0 || Math.floor(end) <= covered) continue
    if (xOf(task.createdAt, window, width) > width) return
    drawBar(scene, { ...task, marks: [] }, y, BAR, false)
    covered = Math.floor(end)
  }
}

function drawLines(scene: Scene, height: number): void {
  const { context, palette, width, window } = scene
  context.fillStyle = palette.line
  for (const at of linesOf(scene).at) context.fillRect(Math.round(xOf(at, window, width)), 0, 1, height)
}

function drawNow({ context, palette, width, window, now }: Scene, height: number): void {
  const x = Math.round(xOf(now, window, width))
  if (x < 0 || x > width) return
  context.fillStyle = palette.accent
  context.fillRect(x, 0, 1, height)
}

function linesOf({ window, width }: Scene): Ticks {
  return ticksOf(window, width, 96, -new Date(window.from).getTimezoneOffset() * 60_000)
}

const days = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })

function labelOf(at: number, { stepMs }: Ticks): string {
  if (stepMs < 1000) return preciseTime(at)
  if (stepMs >= 24 * 3600_000) return days.format(at)
  return stepMs >= 60_000 ? timeOfDay(at).slice(0, 5) : timeOfDay(at)
}
