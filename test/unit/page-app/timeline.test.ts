/** The time scale, the rows and the view of the timeline. */
import { describe, expect, it } from 'vitest'
import { rowText } from '../../../src/page/app/timeline/row-text.js'
import { indexAbove, indexOfRow, levelOf, rowsOf } from '../../../src/page/app/timeline/rows.js'
import { changedView, viewChangeOf, windowOf } from '../../../src/page/app/timeline/timeline-view.js'
import { fittingLength, panned, ticksOf, windowAt, xOf, zoomed } from '../../../src/page/app/timeline/time-window.js'
import { pageTask } from './page-tasks.js'

describe('the window of time', () => {
  it('places times in proportion', () => {
    expect([0, 50, 100, 150].map((at) => xOf(at, { from: 0, to: 100 }, 400))).toEqual([0, 200, 400, 600])
  })

  it('zooms around a place, which stays where it is', () => {
    const window = { from: 1000, to: 2000 }
    expect(zoomed(window, 0.5, 0.25)).toEqual({ from: 1125, to: 1625 })
    const at = 1250
    expect(xOf(at, zoomed(window, 0.5, 0.25), 100)).toBeCloseTo(xOf(at, window, 100))
  })

  it('ends just after the present, and has a least and a greatest length', () => {
    expect(windowAt(1000, 100)).toEqual({ from: 904, to: 1004 })
    expect(zoomed({ from: 0, to: 100 }, 0.001, 0)).toEqual({ from: 0, to: 50 })
    expect(zoomed({ from: 0, to: 1e9 }, 10, 0).to).toBe(7 * 24 * 3600_000)
    expect(panned({ from: 0, to: 100 }, -0.5)).toEqual({ from: -50, to: 50 })
    expect([fittingLength(0, 1), fittingLength(0, 100_000), fittingLength(0, 1e9)].map(Math.round)).toEqual([
      20_000, 110_000, 3600_000,
    ])
  })

  it('has lines at round times, far enough from each other', () => {
    const { stepMs, at } = ticksOf({ from: 1200, to: 11_200 }, 500, 100)
    expect([stepMs, at]).toEqual([2000, [2000, 4000, 6000, 8000, 10_000]])
    expect(ticksOf({ from: 0, to: 1000 }, 0, 100).at.length).toBeLessThan(3)
    // Midnight, where the clocks are two hours ahead.
    const twoHours = 2 * 3600_000
    expect(ticksOf({ from: 0, to: 48 * 3600_000 }, 200, 90, twoHours).at[0]).toBe(22 * 3600_000)
  })
})

describe('the view of the timeline', () => {
  const following = { mode: 'following', lengthMs: 1000 } as const

  it('follows the present, also when it is zoomed', () => {
    expect(windowOf(following, 5000).to).toBe(5040)
    expect(windowOf(following, 6000).to).toBe(6040)
    const zoomedIn = changedView(following, { type: 'zoom', factor: 0.5 }, 5000)
    expect(zoomedIn).toEqual({ mode: 'following', lengthMs: 500 })
  })

  it('stands still when it is moved, and follows again', () => {
    const moved = changedView(following, { type: 'pan', part: -1 }, 5000)
    expect(windowOf(moved, 9999)).toEqual({ from: 3040, to: 4040 })
    expect(changedView(moved, { type: 'follow' }, 9999)).toEqual(following)
    expect(changedView(moved, { type: 'zoom', factor: 2 }, 9999)).toEqual({
      mode: 'still',
      window: { from: 2540, to: 4540 },
    })
    expect(changedView(moved, { type: 'fit', lengthMs: 77 }, 0)).toEqual({ mode: 'following', lengthMs: 77 })
  })

  it('has a key for each change', () => {
    expect(['+', '-', '[', ']', '0', 'f', 'p'].map((key) => viewChangeOf(key, false))).not.toContain(undefined)
    expect(viewChangeOf('ArrowLeft', false)).toBeUndefined()
    expect(viewChangeOf('ArrowLeft', true)).toEqual({ type: 'pan', part: -0.2 })
    expect(viewChangeOf('x', false)).toBeUndefined()
  })
})

describe('the rows of the timeline', () => {
  const tasks = [
    pageTask({ id: 'c', group: 'b', createdAt: 3, endedAt: 5, state: 'completed' }),
    pageTask({ id: 'b', key: 'command:b', kind: 'command', group: 'b', createdAt: 2 }),
    pageTask({ id: 'a', group: 'b', createdAt: 1 }),
  ]

  it('are groups by name, async tasks first, and under each its tasks', () => {
    expect(rowsOf(tasks, new Set()).map(({ key }) => key)).toEqual([
      ...['group:async:b', 'async:c', 'async:a'],
      ...['group:command:b', 'command:b'],
    ])
  })

  it('are only the group while it is closed, which knows what is in it', () => {
    const rows = rowsOf(tasks, new Set(['group:async:b']))
    expect(rows.map(({ key }) => key)).toEqual(['group:async:b', 'group:command:b', 'command:b'])
    expect(rows[0]).toMatchObject({ isOpen: false, live: 1, tasks: [{ id: 'c' }, { id: 'a' }] })
    expect([indexOfRow(rows, 'command:b'), indexOfRow(rows, 'x'), indexOfRow(rows, undefined)]).toEqual([2, -1, -1])
  })

  it('have what a task has launched under it, in order, whoever owns it now', () => {
    const family = [
      pageTask({ id: 'later', createdAt: 9 }),
      pageTask({ id: 'grandchild', group: 'run:second', parentKey: 'async:second', createdAt: 8 }),
      pageTask({
        id: 'commands',
        key: 'command:c',
        kind: 'command',
        group: 'desk',
        parentKey: 'async:second',
        createdAt: 7,
      }),
      // One still runs, the other has ended and its parent as well.
      pageTask({ id: 'second', group: 'run:parent', parentKey: 'async:parent', createdAt: 5 }),
      pageTask({ id: 'first', parentKey: 'async:parent', createdAt: 5 }),
      pageTask({ id: 'parent', createdAt: 5 }),
      pageTask({ id: 'orphan', group: 'run:gone', parentKey: 'async:gone', createdAt: 1 }),
    ]
    const rows = rowsOf(family, new Set())
    expect(rows.map((row) => `${' '.repeat(levelOf(row))}${row.key}`)).toEqual([
      ...[' group:async:main', '  async:later', '  async:parent', '   async:first', '   async:second'],
      ...['    async:grandchild', ' group:async:run:gone', '  async:orphan', ' group:command:desk', '  command:c'],
    ])
    expect(rows[0]).toMatchObject({ name: 'main', kind: 'async', live: 5 })
    expect([5, 4, 3, 1].map((index) => indexAbove(rows, index))).toEqual([4, 2, 2, 0])
    expect(indexAbove(rows, 0)).toBe(-1)
  })

  it('end, also when tasks claim to have launched each other', () => {
    const circle = [
      pageTask({ id: 'a', parentKey: 'async:b', createdAt: 3 }),
      pageTask({ id: 'b', parentKey: 'async:a', createdAt: 2 }),
      pageTask({ id: 'self', parentKey: 'async:self', createdAt: 1 }),
    ]
    expect(
      rowsOf(circle, new Set())
        .map(({ key }) => key)
        .sort(),
    ).toEqual(['async:a', 'async:b', 'async:self', 'group:async:main'])
  })

  it('say in words what is drawn', () => {
    const rows = rowsOf(
      [pageTask({ id: 'a', title: 'Paint\u202e', createdAt: 1000, startedAt: 3000, questions: 1, state: 'asking' })],
      new Set(),
    )
    expect(rowText(rows[0]!, 9000)).toBe('main, 1 of 1 task live, owner')
    expect(rowText(rows[1]!, 9000)).toMatch(
      /^Paint\\u202e, Asking, created at [\d:]+, queued for 2\.0 s, for 8\.0 s so far, 1 open question$/,
    )
  })
})
