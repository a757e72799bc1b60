/** Draws the bar of a task with its commands, its marks and the duration of its run. The time in the queue is a dashed frame, and the run is filled. */
import type { PageTask, TaskMark } from '../../wire.js'
import { STATE_OF_COMMAND } from '../text/command-states.js'
import { lengthText, placeOfText } from './bar-text.js'
import { drawMark } from './mark-painter.js'
import type { Palette } from './palette.js'
import { xOf, type TimeWindow } from './time-window.js'

export interface Scene {
  readonly context: CanvasRenderingContext2D
  readonly palette: Palette
  readonly window: TimeWindow
  readonly width: number
  readonly now: number
}

const LEAST_WIDTH = 3
const MARK_WIDTH = 9
/** The minimum width for a pattern, in px. In a narrower bar a person could not recognise the pattern. */
const LEAST_PATTERN = 8

/**
 * @param y the middle of the row
 * @param height the height of the bar
 */
export function drawBar(scene: Scene, task: PageTask, y: number, height: number, withText: boolean): void {
  const { context, palette, window, width, now } = scene
  const x = (at: number): number => xOf(at, window, width)
  const end = Math.max(x(task.endedAt ?? now), x(task.createdAt) + LEAST_WIDTH)
  const start = x(task.createdAt)
  if (end < 0) return
  if (start > width) return
  const top = y - height / 2
  const ranFrom = task.startedAt ?? task.endedAt ?? now
  const filledFrom = Math.min(x(ranFrom), end - LEAST_WIDTH)
  const isQueued = task.state === 'queued'
  if (isQueued || filledFrom - start >= 2) drawQueued(scene, start, isQueued ? end : filledFrom, top, height)
  if (!isQueued) {
    const [from, to] = [Math.max(filledFrom, -8), Math.min(end, width + 8)]
    drawRun(scene, task, from, to, top, height)
    if (task.commands && task.commands.length > 1) drawCommands(scene, task, top, height)
  }
  const marks = apart(
    (task.marks ?? []).map(({ kind, at }) => ({ kind, x: isOfDelivery(kind) ? Math.max(x(at), end + 8) : x(at) })),
  )
  for (const mark of marks) {
    if (mark.x >= -6 && mark.x <= width + 6) drawMark(context, palette, mark.kind, mark.x, y)
  }
  if (withText) {
    const bar = { start: isQueued ? start : filledFrom, end, width, marks: marks.map((mark) => mark.x) }
    drawLength(scene, task, bar, y, height)
  }
}

/**
 * Whether a mark is about the delivery of the result. These marks are drawn after the end of the bar, because a delivery begins when the task has ended.
 */
function isOfDelivery(kind: TaskMark['kind']): boolean {
  return kind === 'owed' || kind === 'leased' || kind === 'delivered'
}

/** Leaves out marks that a later mark would overlap. */
function apart<Mark extends { readonly x: number }>(marks: readonly Mark[]): readonly Mark[] {
  return marks.filter(({ x }, index) => (marks[index + 1]?.x ?? Infinity) - x >= MARK_WIDTH)
}

function drawQueued({ context, palette }: Scene, from: number, to: number, top: number, height: number): void {
  context.strokeStyle = palette.states.queued
  context.lineWidth = 1
  context.setLineDash([3, 2])
  context.strokeRect(Math.round(from) + 0.5, Math.round(top) + 0.5, Math.max(2, Math.round(to - from) - 1), height - 1)
  context.setLineDash([])
}

function drawRun(
  { context, palette }: Scene,
  task: PageTask,
  from: number,
  to: number,
  top: number,
  height: number,
): void {
  const isLive = task.endedAt === undefined
  const rounded = isLive ? [3, 0, 0, 3] : 3
  const pattern = palette.patterns[task.state]
  context.fillStyle = palette.states[task.state]
  // The commands are drawn over the bar in the full colour.
  context.globalAlpha = (task.commands?.length ?? 0) > 1 ? 0.35 : 1
  context.beginPath()
  context.roundRect(from, top, Math.max(LEAST_WIDTH, to - from), height, rounded)
  context.fill()
  if (pattern && to - from >= LEAST_PATTERN) {
    context.fillStyle = pattern
    context.fill()
  }
  context.globalAlpha = 1
  if (!isLive) return
  // A gap and a line at the end mean that the task continues.
  context.fillStyle = palette.states[task.state]
  context.fillRect(to + 2, top, 2, height)
}

function drawCommands(
  { context, palette, window, width, now }: Scene,
  task: PageTask,
  top: number,
  height: number,
): void {
  for (const { state, startedAt, endedAt } of task.commands ?? []) {
    if (startedAt === undefined) continue
    const from = xOf(startedAt, window, width)
    const to = xOf(endedAt ?? task.endedAt ?? now, window, width)
    if (to < 0 || from > width) continue
    const shown = STATE_OF_COMMAND[state]
    const pattern = palette.patterns[shown]
    context.fillStyle = palette.states[shown]
    context.beginPath()
    context.roundRect(from, top + 2, Math.max(1.5, to - from - 1), height - 4, 2)
    context.fill()
    if (!pattern) continue
    context.fillStyle = pattern
    context.fill()
  }
}

function drawLength(
  { context, palette, now }: Scene,
  task: PageTask,
  bar: Parameters<typeof placeOfText>[0],
  y: number,
  height: number,
): void {
  const text = lengthText(task, now)
  const textWidth = context.measureText(text).width
  const place = placeOfText(bar, textWidth)
  if (place === undefined) return
  const { x, isOnBar } = place
  const isOnColor = isOnBar && task.state !== 'queued'
  if (isOnColor) {
    // Covers the pattern and the commands, because they would make the text hard to read.
    context.fillStyle = palette.states[task.state]
    context.fillRect(x - 3, y - height / 2 + 1, textWidth + 6, height - 2)
  }
  context.fillStyle = isOnColor ? palette.surface : palette.muted
  context.fillText(text, x, y + 0.5)
}
