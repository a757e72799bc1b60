/** Where the length of a task is written: on its bar, else beside it, else nowhere. In px. */

interface Bar {
  readonly start: number
  readonly end: number
  /** Of the canvas; what is outside is not visible. */
  readonly width: number
  /** The middles of its marks. */
  readonly marks: readonly number[]
}

interface TextPlace {
  /** The left end of the text. */
  readonly x: number
  readonly isOnBar: boolean
}

const PADDING = 6
/** Half of a mark, and a gap. */
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
