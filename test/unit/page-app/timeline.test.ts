/** The time scale, the rows and the view of the timeline. */
import { describe, expect, it } from 'vitest'
import { lengthText, placeOfText } from '../../../src/page/app/timeline/bar-text.js'
import { legendMemory } from '../../../src/page/app/timeline/legend-memory.js'
import { runLengthOf } from '../../../src/page/app/text/states.js'
import { rowText } from '../../../src/page/app/timeline/row-text.js'
import { indexAbove, indexOfRow, levelOf, rowsOf, type Row } from '../../../src/page/app/timeline/rows.js'
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

const NOTHING = new Map<string, boolean>()
const tree = (rows: readonly Row[]): string[] => rows.map((row) => `${' '.repeat(levelOf(row) - 1)}${row.key}`)

describe('the rows of the timeline', () => {
  const tasks = [
    pageTask({ id: 'c', group: 'b', createdAt: 6, endedAt: 8, state: 'completed' }),
    pageTask({ id: 'last', key: 'command:last', kind: 'command', group: 'desk', createdAt: 5, state: 'queued' }),
    pageTask({ id: 'next', key: 'command:next', kind: 'command', group: 'desk', createdAt: 4, state: 'queued' }),
    pageTask({ id: 'd', key: 'command:d', kind: 'command', group: 'desk', createdAt: 3 }),
    pageTask({ id: 'b', group: 'b', createdAt: 2, state: 'asking' }),
    pageTask({ id: 'a', group: 'a', createdAt: 1 }),
  ]

  it('begin with what runs, then have what waits, the next one first, and then what has ended', () => {
    expect(tree(rowsOf(tasks, NOTHING))).toEqual([
      ...['phase:running', ' running:async:a', '  async:a', ' running:async:b', '  async:b'],
      ...[' running:command:desk', '  command:d'],
      ...['phase:waiting', ' waiting:command:desk', '  command:next', '  command:last'],
      ...['phase:ended', ' ended:async:b', '  async:c'],
    ])
  })

  it('leave out a phase in which there is no task', () => {
    expect(rowsOf(tasks.slice(0, 1), NOTHING)).toHaveLength(3)
    expect(rowsOf([], NOTHING)).toEqual([])
  })

  it('are only the head of a group or a phase that is closed, which has its tasks', () => {
    const rows = rowsOf(tasks, new Map([...['running:async:b', 'phase:ended'].map((key) => [key, false] as const)]))
    expect(tree(rows)).toEqual([
      ...['phase:running', ' running:async:a', '  async:a', ' running:async:b', ' running:command:desk', '  command:d'],
      ...['phase:waiting', ' waiting:command:desk', '  command:next', '  command:last', 'phase:ended'],
    ])
    expect(rows[3]).toMatchObject({ isOpen: false, count: 1, tasks: [{ id: 'b' }] })
    expect(rows.at(-1)).toMatchObject({ isOpen: false, count: 1, tasks: [{ id: 'c' }] })
    expect([indexOfRow(rows, 'command:d'), indexOfRow(rows, 'x'), indexOfRow(rows, undefined)]).toEqual([5, -1, -1])
  })

  it.each([20, 21, 1500])('fold %i tasks that wait into one row when these are more than 20', (many) => {
    const waiting = Array.from({ length: many }, (_, index) =>
      pageTask({ id: `w${index}`, state: 'queued', createdAt: 1000 - index }),
    )
    const all = [...waiting, pageTask({ id: 'runs', createdAt: 0 })]
    const isFolded = many > 20
    const rows = rowsOf(all, NOTHING)
    expect(rows).toHaveLength(isFolded ? 4 : many + 5)
    expect(rows[3]).toMatchObject({ key: 'phase:waiting', isOpen: !isFolded, count: many })
    expect(rowsOf(all, new Map([['phase:waiting', true]]))).toHaveLength(many + 5)
    expect(rowsOf(all, new Map([['phase:waiting', false]]))).toHaveLength(4)
  })

  it('have what a task has launched below it, in order, whichever owner has it now', () => {
    const family = [
      pageTask({ id: 'later', createdAt: 9, endedAt: 10, state: 'completed' }),
      pageTask({ id: 'grandchild', group: 'run:second', parentKey: 'async:second', createdAt: 8 }),
      pageTask({
        id: 'commands',
        key: 'command:c',
        kind: 'command',
        group: 'desk',
        parentKey: 'async:second',
        createdAt: 7,
      }),
      pageTask({ id: 'second', group: 'run:parent', parentKey: 'async:parent', createdAt: 5 }),
      pageTask({ id: 'first', parentKey: 'async:parent', createdAt: 5, state: 'queued' }),
      // It has ended, and its family goes on.
      pageTask({ id: 'parent', createdAt: 5, endedAt: 6, state: 'failed' }),
      pageTask({ id: 'orphan', group: 'run:gone', parentKey: 'async:gone', createdAt: 1 }),
    ]
    const rows = rowsOf(family, NOTHING)
    expect(tree(rows)).toEqual([
      ...['phase:running', ' running:async:main', '  async:parent', '   async:first', '   async:second'],
      ...['    async:grandchild', ' running:async:run:gone', '  async:orphan', ' running:command:desk', '  command:c'],
      ...['phase:ended', ' ended:async:main', '  async:later'],
    ])
    expect(rows[0]).toMatchObject({ count: 4 })
    expect(rows[1]).toMatchObject({ name: 'main', kind: 'async', count: 2 })
    expect([5, 4, 3, 2, 1].map((index) => indexAbove(rows, index))).toEqual([4, 2, 2, 1, 0])
    expect(indexAbove(rows, 0)).toBe(-1)
  })

  it('end, also when tasks claim to have launched each other', () => {
    const circle = [
      pageTask({ id: 'a', parentKey: 'async:b', createdAt: 3 }),
      pageTask({ id: 'b', parentKey: 'async:a', createdAt: 2 }),
      pageTask({ id: 'self', parentKey: 'async:self', createdAt: 1 }),
    ]
    const keys = rowsOf(circle, NOTHING).map(({ key }) => key)
    expect(keys.sort()).toEqual(['async:a', 'async:b', 'async:self', 'phase:running', 'running:async:main'])
  })

  it('say in words what is drawn', () => {
    const rows = rowsOf(
      [
        pageTask({
          id: 'x',
          createdAt: 1000,
          startedAt: 1000,
          endedAt: 2500,
          state: 'completed',
          parentKey: 'async:a',
        }),
        pageTask({ id: 'a', title: 'Paint\u202e', createdAt: 1000, startedAt: 3000, questions: 1, state: 'asking' }),
        pageTask({ id: 'q', key: 'command:q', kind: 'command', group: 'desk', createdAt: 1, state: 'queued' }),
      ],
      NOTHING,
    )
    const texts = rows.map((row) => rowText(row, 9000))
    expect(texts.filter((_, index) => index !== 2 && index !== 6)).toEqual([
      ...['Running, 1 task', 'main, owner, 1 of 2 tasks'],
      expect.stringMatching(/^Task x, Completed, created at [\d:]+, took 1\.5 s$/),
      ...['Waiting, 1 task', 'desk, instance, 1 task'],
    ])
    expect(texts[2]).toMatch(
      /^Paint\\u202e, Asking, created at [\d:]+, queued for 2\.0 s, running for 6\.0 s so far, 1 open question$/,
    )
  })
})

describe('the length of a task', () => {
  it('is that of its run, or of its wait if it waits or has never run', () => {
    const times = { createdAt: 1000, startedAt: 4700, endedAt: 9700 }
    const ended = pageTask({ ...times, state: 'completed' })
    const { startedAt: _none, ...neverStarted } = pageTask({ ...times, state: 'cancelled' })
    const { endedAt: _open, ...open } = ended
    expect(
      [ended, neverStarted, { ...open, state: 'running' as const }, { ...open, state: 'queued' as const }].map((task) =>
        runLengthOf(task, 7000),
      ),
    ).toEqual([5000, 8700, 2300, 6000])
    const [text, never] = [ended, neverStarted].map((task) =>
      rowText({ type: 'task', key: task.key, task, depth: 0 } as never, 7000),
    )
    expect(text).toMatch(/, queued for 3\.7 s, ran for 5\.0 s$/)
    expect(never).toMatch(/, took 8\.7 s$/)
  })

  it('is that of the run also on the bar', () => {
    const task = pageTask({ createdAt: 1000, startedAt: 4700, endedAt: 9700, state: 'completed' })
    expect(lengthText(task, 10_000)).toBe('5.0 s')
  })

  const bar = { start: 100, end: 300, width: 400, marks: [] }

  it('is written at the end of its bar', () => {
    expect(placeOfText(bar, 40)).toEqual({ x: 254, isOnBar: true })
    expect(placeOfText({ ...bar, start: -500 }, 40)).toEqual({ x: 254, isOnBar: true })
    expect(placeOfText({ ...bar, end: 900 }, 40)).toEqual({ x: 354, isOnBar: true })
  })

  it('makes room for marks', () => {
    expect(placeOfText({ ...bar, marks: [280] }, 40)).toEqual({ x: 106, isOnBar: true })
    expect(placeOfText({ ...bar, start: -500, marks: [250] }, 40)).toEqual({ x: 6, isOnBar: true })
    expect(placeOfText({ ...bar, marks: [110, 280, 308] }, 40)).toEqual({ x: 318, isOnBar: false })
  })

  it('is beside a bar that is too short for it, or left out where there is no room', () => {
    expect(placeOfText({ ...bar, start: 260 }, 40)).toEqual({ x: 310, isOnBar: false })
    expect(placeOfText({ ...bar, start: 360, end: 380 }, 40)).toBeUndefined()
    expect(placeOfText({ ...bar, start: -90, end: -60 }, 40)).toBeUndefined()
  })
})

describe('the legend', () => {
  it('stays closed once it was closed', () => {
    const kept = new Map<string, string>()
    const storage = {
      getItem: (key: string) => kept.get(key) ?? null,
      setItem: (key: string, value: string) => void kept.set(key, value),
    }
    const memory = legendMemory(() => storage)
    expect(memory.wasClosed()).toBe(false)
    memory.keepClosed()
    expect(legendMemory(() => storage).wasClosed()).toBe(true)
  })

  it('is open where the browser keeps nothing', () => {
    const memory = legendMemory(() => {
      throw new Error('forbidden')
    })
    memory.keepClosed()
    expect(memory.wasClosed()).toBe(false)
  })
})
