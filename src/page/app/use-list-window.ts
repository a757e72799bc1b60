/** Renders only the visible rows of a long list. */
import { useSignal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { scrollTo, visibleRows, type ListWindow } from './list-window.js'

export interface ListBox extends ListWindow {
  /** The reference for the element that scrolls. */
  readonly ref: RefObject<HTMLDivElement | null>
  readonly onScroll: () => void
  /** The height of the visible part of the list, in px. */
  readonly height: number
  readonly width: number
  /** The number of rows that Page Up and Page Down move. */
  readonly page: number
  reveal(index: number): void
}

/** @param above the height of the elements above the rows that stay in place and cover them, in px */
export function useListWindow(count: number, rowHeight: number, above = 0): ListBox {
  const ref = useRef<HTMLDivElement>(null)
  const box = useSignal({ scrollTop: 0, height: 600, width: 800 })
  const measure = (): void => {
    const element = ref.current
    if (!element) return
    const { scrollTop, clientHeight, clientWidth } = element
    const [height, width] = [Math.max(0, clientHeight - above), clientWidth]
    const before = box.peek()
    if (before.scrollTop === scrollTop && before.height === height && before.width === width) return
    box.value = { scrollTop, height, width }
  }
  useLayoutEffect(() => {
    if (!ref.current) return undefined
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(ref.current)
    return () => observer.disconnect()
  }, [])
  const { scrollTop, height, width } = box.value
  return {
    ref,
    onScroll: measure,
    ...visibleRows(scrollTop, height, rowHeight, count),
    height,
    width,
    page: Math.max(1, Math.floor(height / rowHeight) - 1),
    reveal: (index) => {
      const element = ref.current
      if (element) element.scrollTop = scrollTo(index, rowHeight, element.scrollTop, height)
    },
  }
}
