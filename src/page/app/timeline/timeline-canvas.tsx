/** The bars and the time axis, each on a canvas. They are drawn again only if a person could see the difference. */
import { useEffect, useRef } from 'preact/hooks'
import { onFrame } from '../browser-clock.js'
import type { ListWindow } from '../list-window.js'
import type { Scene } from './bar-painter.js'
import { readPalette, type Palette } from './palette.js'
import type { Row } from './rows.js'
import { AXIS, ROW, drawAxis, drawRows } from './timeline-painter.js'
import { lengthOfWindow, type TimeWindow } from './time-window.js'

export interface CanvasProps {
  readonly rows: readonly Row[]
  readonly list: ListWindow
  /** The left edge of the bars, in px. */
  readonly left: number
  readonly width: number
  /** `window` and `now` are called for each frame. */
  readonly window: () => TimeWindow
  readonly now: () => number
}

/** The smallest visible difference, in px. */
const SEEN_PX = 0.5

export function TimelineCanvas(props: CanvasProps) {
  const bars = useRef<HTMLCanvasElement>(null)
  const axis = useRef<HTMLCanvasElement>(null)
  const latest = useRef(props)
  latest.current = props
  useEffect(() => {
    if (!bars.current || !axis.current) return undefined
    return keepDrawn(bars.current, axis.current, () => latest.current)
  }, [])
  const { list, left, width } = props
  const place = { left: `${left}px`, width: `${width}px` }
  return (
    <>
      <div class="axis" role="presentation">
        <canvas ref={axis} aria-hidden="true" style={{ ...place, height: `${AXIS}px` }} />
      </div>
      <canvas
        ref={bars}
        class="bars"
        aria-hidden="true"
        style={{ ...place, top: `${AXIS + list.first * ROW}px`, height: `${(list.end - list.first) * ROW}px` }}
      />
    </>
  )
}

function keepDrawn(bars: HTMLCanvasElement, axis: HTMLCanvasElement, latest: () => CanvasProps): () => void {
  const [barsContext, axisContext] = [bars.getContext('2d'), axis.getContext('2d')]
  if (!barsContext || !axisContext) return () => undefined
  let palette: Palette = readPalette(bars, barsContext)
  let drawn: { props: CanvasProps; window: TimeWindow; now: number } | undefined
  let stopFrame = (): void => undefined
  const repaint = (): void => {
    palette = readPalette(bars, barsContext)
    drawn = undefined
  }
  const frame = (): void => {
    stopFrame = onFrame(frame)
    const props = latest()
    const [window, now] = [props.window(), props.now()]
    const pxPerMs = props.width / lengthOfWindow(window)
    const isSeen = (before: number, after: number): boolean => Math.abs(after - before) * pxPerMs >= SEEN_PX
    if (
      drawn?.props === props &&
      !isSeen(drawn.window.from, window.from) &&
      !isSeen(drawn.window.to, window.to) &&
      !isSeen(drawn.now, now) &&
      // The durations on the bars change each second.
      Math.floor(drawn.now / 1000) === Math.floor(now / 1000)
    ) {
      return
    }
    drawn = { props, window, now }
    const { rows, list, width } = props
    const height = (list.end - list.first) * ROW
    const scene = (context: CanvasRenderingContext2D): Scene => ({ context, palette, window, width, now })
    fitted(axisContext, width, AXIS)
    drawAxis(scene(axisContext))
    fitted(barsContext, width, height)
    drawRows(scene(barsContext), rows.slice(list.first, list.end), height)
  }
  const schemes = matchMedia('(prefers-color-scheme: dark)')
  schemes.addEventListener('change', repaint)
  frame()
  return () => {
    schemes.removeEventListener('change', repaint)
    stopFrame()
  }
}

/** Sets the resolution of a canvas to that of the screen. An unchanged canvas is not resized, because resizing clears it. */
function fitted(context: CanvasRenderingContext2D, width: number, height: number): void {
  const scale = devicePixelRatio
  const [w, h] = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))]
  const { canvas } = context
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w
    canvas.height = h
  }
  context.setTransform(scale, 0, 0, scale, 0, 0)
}
