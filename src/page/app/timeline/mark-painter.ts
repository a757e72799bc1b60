/** Draws the marks on a bar. Each kind has its own shape. */
import type { TaskMark } from '../../wire.js'
import type { Palette } from './palette.js'

/** The names of the marks, in the order of the legend. */
export const MARKS: readonly (readonly [TaskMark['kind'], string])[] = [
  ['question', 'Question'],
  ['answer', 'Answer'],
  ['message', 'Message'],
  ['attempt', 'Next attempt'],
  ['owed', 'Result owed'],
  ['leased', 'In a message'],
  ['delivered', 'Delivered'],
]

const R = 4

export function drawMark(
  context: CanvasRenderingContext2D,
  palette: Palette,
  kind: TaskMark['kind'],
  x: number,
  y: number,
): void {
  context.lineWidth = 1.5
  context.strokeStyle = palette.text
  context.fillStyle = kind === 'question' || kind === 'delivered' ? palette.text : palette.surface
  context.beginPath()
  switch (kind) {
    case 'question':
    case 'answer':
      context.moveTo(x, y - R - 1)
      context.lineTo(x + R + 1, y)
      context.lineTo(x, y + R + 1)
      context.lineTo(x - R - 1, y)
      context.closePath()
      break
    case 'message':
      context.rect(x - R + 1, y - R + 1, 2 * R - 2, 2 * R - 2)
      break
    case 'attempt':
      context.moveTo(x, y - 2 * R)
      context.lineTo(x, y + 2 * R)
      break
    case 'owed':
    case 'leased':
    case 'delivered':
      context.arc(x, y, R - 0.5, 0, 2 * Math.PI)
      break
  }
  context.fill()
  context.stroke()
  if (kind !== 'leased') return
  context.fillStyle = palette.text
  context.beginPath()
  context.arc(x, y, R - 0.5, Math.PI / 2, -Math.PI / 2)
  context.fill()
}
