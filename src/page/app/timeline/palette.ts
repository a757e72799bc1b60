/** The colours of the page for drawing on a canvas, and a pattern for each state. The patterns distinguish the states without colour. */
import type { PageTaskState } from '../../wire.js'
import { LOOKS, STATES, type Look } from '../text/states.js'

export interface Palette {
  readonly states: Readonly<Record<PageTaskState, string>>
  readonly patterns: Readonly<Partial<Record<PageTaskState, CanvasPattern>>>
  readonly surface: string
  readonly text: string
  readonly muted: string
  readonly line: string
  readonly accent: string
  readonly font: string
}

const SIZE = 8

export function readPalette(element: Element, context: CanvasRenderingContext2D): Palette {
  const style = getComputedStyle(element)
  const color = (name: string): string => style.getPropertyValue(name).trim()
  const surface = color('--surface')
  const perState = <T>(value: (state: PageTaskState) => T): Record<PageTaskState, T> =>
    Object.fromEntries(STATES.map((state) => [state, value(state)])) as Record<PageTaskState, T>
  const patterns = STATES.flatMap((state) => {
    const pattern = patternOf(state, surface, context)
    return pattern ? [[state, pattern] as const] : []
  })
  return {
    states: perState((state) => color(`--${LOOKS[state].tone}`)),
    patterns: Object.fromEntries(patterns),
    surface,
    text: color('--text'),
    muted: color('--muted'),
    line: color('--line'),
    accent: color('--accent'),
    font: `11px ${style.fontFamily}`,
  }
}

function patternOf(state: PageTaskState, color: string, context: CanvasRenderingContext2D): CanvasPattern | undefined {
  const { strokes }: Look = LOOKS[state]
  const tile = document.createElement('canvas')
  tile.width = tile.height = SIZE
  const pen = tile.getContext('2d')
  if (!strokes || !pen) return undefined
  pen.strokeStyle = color
  pen.globalAlpha = 0.6
  pen.lineWidth = 1.6
  pen.beginPath()
  for (const [fromX, fromY, toX, toY] of strokes) {
    pen.moveTo(fromX, fromY)
    pen.lineTo(toX, toY)
  }
  pen.stroke()
  return context.createPattern(tile, 'repeat') ?? undefined
}
