/** The visible rows of a long list, and the keys that move in the list. */

export interface ListWindow {
  readonly first: number
  /** The index after the last visible row. */
  readonly end: number
}

/** Returns the visible rows and `beyond` more rows on both sides, which avoid gaps while a person scrolls. */
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

/** Returns the index of the row that a key moves to; undefined for other keys. */
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

export function scrollTo(index: number, rowHeight: number, scrollTop: number, height: number): number {
  const start = index * rowHeight
  if (start < scrollTop) return start
  return Math.max(scrollTop, start + rowHeight - height)
}
