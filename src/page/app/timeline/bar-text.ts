/** Places the duration of a task's run on its bar, or beside the bar if the bar is too short. All positions are in px. */
import type { PageTask } from '../../wire.js'
import { duration, growing } from '../text/format.js'
import { runLengthOf } from '../text/states.js'

interface Bar {
  readonly start: number
  readonly end: number
  /** The width of the canvas. */
  readonly width: number
  /** The middles of the marks on the bar. */
  readonly marks: readonly number[]
}

interface TextPlace {
  /** The left end of the text. */
  readonly x: number
  readonly isOnBar: boolean
}

const PADDING = 6
/** Half the width of a mark plus a gap, in px. */
const MARK = 8
const GAP = 10

export function placeOfText({ start, end, width, marks }: Bar, textWidth: number): TextPlace | undefined {
  const isFree = (x: number): boolean => marks.every((mark) => mark + MARK < x || mark - MARK > x + textWidth)
  const [from, to] = [Math.max(0, start) + PADDING, Math.min(end, width) - PADDING]
  if (to - from >= textWidth) {
    const x = [to - textWidth, from].find(isFree)
    if (x !== undefined) return { x, isOnBar: true }
  }
  const beside = Math.max(end, ...marks) + GAP
  return beside >= 0 && beside + textWidth <= width ? { x: beside, isOnBar: false } : undefined
}

/** Formats the duration of a task's run so far. */
export function lengthText(task: PageTask, now: number): string {
  const length = runLengthOf(task, now)
  return task.endedAt === undefined ? growing(length) : duration(length)
}
