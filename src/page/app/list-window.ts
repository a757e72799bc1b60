/** Which rows of a long list are on the screen, and how the keyboard moves among them. */

export interface ListWindow {
  readonly first: number
  /** Exclusive. */
  readonly end: number
}

/** The rows that are seen, and some on both sides, so that scrolling does not show gaps. */
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

/** Where a key of the keyboard moves to from a row; undefined when it is no such key. */
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

/** How far to scroll so that a row is whole on the screen. @param top what covers the list above, in px */
export function scrollTo(index: number, rowHeight: number, scrollTop: number, height: number): number {
  const start = index * rowHeight
  if (start < scrollTop) return start
  return Math.max(scrollTop, start + rowHeight - height)
}
