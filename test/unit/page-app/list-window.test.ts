/** Long lists: which rows exist, and how keys move. */
import { describe, expect, it } from 'vitest'
import { movedTo, scrollTo, visibleRows } from '../../../src/page/app/list-window.js'

describe('a long list', () => {
  it('has only the rows on the screen, and some beyond', () => {
    expect(visibleRows(0, 100, 10, 1000, 3)).toEqual({ first: 0, end: 13 })
    expect(visibleRows(500, 100, 10, 1000, 3)).toEqual({ first: 47, end: 63 })
    expect(visibleRows(9900, 100, 10, 1000, 3)).toEqual({ first: 987, end: 1000 })
    expect(visibleRows(0, 100, 10, 0)).toEqual({ first: 0, end: 0 })
    // It has become shorter than the place that it was scrolled to.
    expect(visibleRows(5000, 100, 10, 4, 3)).toEqual({ first: 1, end: 4 })
  })

  it('is moved in by keys, and not past its ends', () => {
    const keys = ['ArrowDown', 'ArrowUp', 'PageDown', 'PageUp', 'Home', 'End', 'x']
    expect(keys.map((key) => movedTo(key, 5, 10, 3))).toEqual([6, 4, 8, 2, 0, 9, undefined])
    expect(keys.map((key) => movedTo(key, -1, 10, 3))).toEqual([0, 0, 2, 0, 0, 9, undefined])
    expect(movedTo('End', 0, 0, 3)).toBeUndefined()
  })

  it('scrolls no further than it must', () => {
    expect([scrollTo(3, 10, 0, 100), scrollTo(3, 10, 50, 100), scrollTo(20, 10, 0, 100)]).toEqual([0, 30, 110])
  })
})
