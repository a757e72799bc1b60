/** The visible rows of a long list, and keyboard navigation in it. */

export interface ListWindow {
  readonly first: number
  /** Exclusive. */
  readonly end: number
}

/** The visible rows, with some more on both sides to avoid gaps while scrolling. */
export function visibleRows(
  scrollTop: number,
  height: number,
  rowHeight: number,
  count: number,
  beyond = 8,
): ListWindow {
  const first = Math.max(0, Math.min(count, Math.floor(scrollTop / rowHeight)) - beyond)
  const end = Math.min(count, Math.ceil((scrollTop + height) / rowHeight) + beyond)
  return { first, end }
}

/** The row that a key moves to; undefined for other keys. */
export function movedTo(key: string, index: number, count: number, page: number): number | undefined {
  const last = count - 1
  const to = {
    ArrowDown: index + 1,
    ArrowUp: index - 1,
    PageDown: index + page,
    PageUp: index - page,
    Home: 0,
    End: last,
  }[key]
  return to === undefined || count === 0 ? undefined : Math.min(last, Math.max(0, to))
}

/**
 * Returns the scroll position at which a row is fully visible.
 * @param top the height of elements that cover the top of the list, in px
 */
export function scrollTo(index: number, rowHeight: number, scrollTop: number, height: number): number {
  const start = index * rowHeight
  if (start < scrollTop) return start
  return Math.max(scrollTop, start + rowHeight - height)
}
