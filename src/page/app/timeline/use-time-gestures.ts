/** Zooms the timeline with the wheel, and moves it by dragging. */
import type { RefObject } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { ViewChange } from './timeline-view.js'

/** The minimum length of a drag, in px. A shorter movement counts as a click. */
const DRAG_PX = 4

export interface Gestures {
  /** Whether the last press was a drag. The click at the end of a drag must not select a row. */
  wasDragged(): boolean
}

/** @param left the left edge of the bars in px, to the right of the labels */
export function useTimeGestures(
  ref: RefObject<HTMLElement | null>,
  left: number,
  width: number,
  onChange: (change: ViewChange) => void,
): Gestures {
  const latest = useRef({ left, width, onChange })
  latest.current = { left, width, onChange }
  const dragged = useRef(false)
  useEffect(() => {
    const element = ref.current
    return element ? listen(element, dragged, () => latest.current) : undefined
  }, [ref])
  return { wasDragged: () => dragged.current }
}

function listen(
  element: HTMLElement,
  dragged: { current: boolean },
  latest: () => { readonly left: number; readonly width: number; readonly onChange: (change: ViewChange) => void },
): () => void {
  const listening = new AbortController()
  const { signal } = listening
  let lastX: number | undefined
  let way = 0
  const onWheel = (event: WheelEvent): void => {
    const { left, width, onChange } = latest()
    const isOnAxis = event.target instanceof Element && event.target.closest('.axis') !== null
    const place = (event.clientX - element.getBoundingClientRect().left - left) / width
    if (event.ctrlKey || event.metaKey || isOnAxis) {
      event.preventDefault()
      onChange({
        type: 'zoom',
        factor: Math.exp(Math.max(-100, Math.min(100, event.deltaY)) / 250),
        place: Math.max(0, Math.min(1, place)),
      })
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault()
      onChange({ type: 'pan', part: (event.deltaX === 0 ? event.deltaY : event.deltaX) / width })
    }
  }
  const onDown = (event: PointerEvent): void => {
    dragged.current = false
    way = 0
    const x = event.clientX - element.getBoundingClientRect().left
    const isOnBars = x > latest().left && x < element.clientWidth
    if (event.button === 0 && event.pointerType === 'mouse' && isOnBars) lastX = event.clientX
  }
  const onMove = (event: PointerEvent): void => {
    if (lastX === undefined) return
    way += Math.abs(event.clientX - lastX)
    if (way >= DRAG_PX) {
      dragged.current = true
      latest().onChange({ type: 'pan', part: (lastX - event.clientX) / latest().width })
    }
    lastX = event.clientX
  }
  const onUp = (): void => {
    lastX = undefined
  }
  element.addEventListener('wheel', onWheel, { passive: false, signal })
  element.addEventListener('pointerdown', onDown, { signal })
  window.addEventListener('pointermove', onMove, { signal })
  window.addEventListener('pointerup', onUp, { signal })
  window.addEventListener('pointercancel', onUp, { signal })
  return () => listening.abort()
}
