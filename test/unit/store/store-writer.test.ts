/** When changes are written, and what becomes of those that cannot be. */
import { createManualClock } from 'agent-tasks/testing'
import { StoreError } from 'agent-tasks/store'
import { expect, it } from 'vitest'
import { StoreWriter } from '../../../src/store/store-writer.js'
import type { StoreChange } from '../../../src/store/store.js'

const put = (id: string): StoreChange => ({ table: 'instances', put: { id } as never })
const idOf = (change: StoreChange): string => ('put' in change ? change.put.id : change.remove)

function setUp() {
  const clock = createManualClock()
  const [written, reported]: [string[][], unknown[]] = [[], []]
  let changes: StoreChange[] = []
  let fail: ((changes: readonly StoreChange[]) => Error | undefined) | undefined
  let clearings = 0
  const writer = new StoreWriter({
    clock,
    store: {
      write: (all) => {
        const error = fail?.(all)
        if (error !== undefined) throw error
        written.push(all.map(idOf))
      },
    },
    pending: {
      isEmpty: () => changes.length === 0,
      read: () => changes,
      clear: () => (changes = []),
      reduce: ({ id }) => {
        const before = changes.length
        changes = changes.filter((change) => idOf(change) !== id)
        return changes.length < before
      },
    },
    report: (error) => reported.push(error),
    onWritten: () => {
      expect(changes).toEqual([])
      clearings += 1
    },
  })
  return {
    clock,
    written,
    reported,
    writer,
    change: (...ids: string[]) => void changes.push(...ids.map(put)),
    failWith: (make: typeof fail) => (fail = make),
    clearings: () => clearings,
    left: () => changes.map(idOf),
    /** They need not be written any longer; all of them by default. */
    drop: (...ids: string[]) => (changes = changes.filter((one) => ids.length > 0 && !ids.includes(idOf(one)))),
  }
}

const full = (): Error => new Error('disk full')

it('writes once, at the end of the tick, what has changed until then', async () => {
  const { writer, change, written, clearings, clock } = setUp()
  expect(writer.isSettled()).toBe(true)
  change('a')
  expect([writer.isSettled(), writer.isSettled()]).toEqual([false, false])
  change('b')
  expect(written).toEqual([])
  await Promise.resolve()
  expect([written, clearings(), writer.isSettled()]).toEqual([[['a', 'b']], 1, true])
  change('c')
  expect(writer.isSettled()).toBe(false)
  await Promise.resolve()
  expect([written, clearings(), clock.pending]).toEqual([[['a', 'b'], ['c']], 2, 0])
})

it('writes nothing when nothing has changed, and what is last after the rest', () => {
  const { writer, change, written, clearings } = setUp()
  expect(writer.flush()).toBe(true)
  writer.write()
  expect([written, clearings()]).toEqual([[], 0])
  change('a')
  writer.write([put('last')])
  expect([written, clearings()]).toEqual([[['a', 'last']], 1])
  writer.write([put('alone')])
  expect(written).toEqual([['a', 'last'], ['alone']])
})

it('repeats a write that failed, later each time, with what has changed meanwhile, and leaves no timer', async () => {
  const { writer, change, failWith, written, reported, clock } = setUp()
  failWith(full)
  change('a')
  expect([writer.flush(), writer.isFailing, clock.pending]).toEqual([false, true, 1])
  // It is repeated by its timer alone.
  expect(writer.isSettled()).toBe(false)
  await Promise.resolve()
  expect(reported).toEqual([full()])
  const waits: number[] = []
  for (let round = 0; round < 11; round += 1) {
    let waited = 0
    while (reported.length === round + 1) {
      clock.advance(50)
      waited += 50
    }
    waits.push(waited)
    expect(clock.pending).toBe(1)
  }
  expect(waits).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000])
  change('b')
  failWith(undefined)
  clock.advance(30_000)
  expect([written, writer.isFailing, clock.pending]).toEqual([[['a', 'b']], false, 0])
  // The next failure begins with the first wait.
  failWith(full)
  change('c')
  writer.flush()
  failWith(undefined)
  clock.advance(100)
  expect([written.at(-1), clock.pending]).toEqual([['c'], 0])
})

it('a write at once ends the repetition, and one that fails anew has one timer', () => {
  const { writer, change, failWith, written, clock } = setUp()
  failWith(full)
  change('a')
  writer.flush()
  writer.flush()
  expect(clock.pending).toBe(1)
  failWith(undefined)
  expect(writer.flush()).toBe(true)
  expect([written, clock.pending, writer.isFailing]).toEqual([[['a']], 0, false])
  clock.advance(100_000)
  expect(written).toEqual([['a']])
})

it('says why a write failed: the error of the store, or one with the cause', () => {
  const { writer, change, failWith, reported, clock, left } = setUp()
  const closed = new StoreError('STORE_LOST', 'gone')
  change('a')
  failWith(() => closed)
  expect(() => writer.write()).toThrow(closed)
  failWith(full)
  expect(() => writer.write()).toThrow(
    expect.objectContaining({
      code: 'STORE_FAILED',
      message: 'The store could not be written.',
      cause: full(),
    }) as Error,
  )
  writer.close()
  // What is last is for its caller: it is neither reported nor repeated.
  const other = setUp()
  other.failWith(full)
  expect(() => other.writer.write([put('last')])).toThrow('The store could not be written.')
  expect([other.reported, other.clock.pending, other.writer.isFailing]).toEqual([[], 0, false])
  expect([reported.length, clock.pending, left()]).toEqual([3, 0, ['a']])
})

it('reduces a row that cannot be written, so that the others are', () => {
  const { writer, change, failWith, written, reported, clock } = setUp()
  const bad = new StoreError('STORE_FAILED', 'bad row', { row: { table: 'instances', id: 'bad' } })
  failWith((changes) => (changes.some((one) => idOf(one) === 'bad') ? bad : undefined))
  change('a', 'bad', 'b')
  expect(writer.flush()).toBe(true)
  expect([written, reported, clock.pending]).toEqual([[['a', 'b']], [bad], 0])
  // Not what is written last, even where a pending one has its id; and what has no less of it is repeated.
  change('bad')
  expect(() => writer.write([put('bad')])).toThrow(bad)
  expect([reported.length, clock.pending]).toEqual([1, 0])
  const lost = new StoreError('STORE_FAILED', 'bad row', { row: { table: 'instances', id: 'other' } })
  failWith(() => lost)
  expect(writer.flush()).toBe(false)
  expect([reported.length, clock.pending]).toEqual([2, 1])
  writer.close()
})

it('another row of what is written last does not keep a pending one from being reduced', () => {
  const { writer, change, failWith, written } = setUp()
  const bad = new StoreError('STORE_FAILED', 'bad row', { row: { table: 'instances', id: 'bad' } })
  failWith((changes) => (changes.some((one) => idOf(one) === 'bad') ? bad : undefined))
  change('bad')
  writer.write([put('last'), { table: 'instances', remove: 'gone' }, { ...put('x'), table: 'tasks' } as StoreChange])
  expect(written).toEqual([['last', 'gone', 'x']])
})

it('a row of another table with the same id does not, either', () => {
  const { writer, change, failWith, written } = setUp()
  const bad = new StoreError('STORE_FAILED', 'bad row', { row: { table: 'instances', id: 'bad' } })
  failWith((changes) => (changes.some((one) => idOf(one) === 'bad' && one.table === 'instances') ? bad : undefined))
  change('bad')
  writer.write([{ ...put('bad'), table: 'tasks' } as StoreChange])
  expect(written).toEqual([['bad']])
})

it('tries once at the end of a tick, however often it was told of changes', async () => {
  const { writer, change, failWith, reported, clock } = setUp()
  failWith(full)
  for (const id of ['a', 'b', 'c']) {
    change(id)
    writer.isSettled()
  }
  await new Promise(setImmediate)
  expect([reported, clock.pending]).toEqual([[full()], 1])
  writer.close()
})

it('when it is closed, writes what is pending, leaves no timer, and writes nothing more', () => {
  const { writer, change, failWith, written, clock } = setUp()
  failWith(full)
  change('a')
  writer.close()
  expect([writer.isFailing, clock.pending]).toEqual([false, 0])
  failWith(undefined)
  expect(() => writer.write()).toThrow(
    expect.objectContaining({ code: 'STORE_CLOSED', message: 'The store was closed.' }) as Error,
  )
  expect([writer.flush(), written, clock.pending]).toEqual([false, [], 0])
  const other = setUp()
  other.change('b')
  other.writer.close()
  expect(other.written).toEqual([['b']])
})

/** Notes how waits end. */
function notes() {
  const log: string[] = []
  return {
    log,
    lasting: (name: string) => ({ onStored: () => void log.push(`${name} stored`) }),
    refusable: (name: string) => ({
      onStored: () => void log.push(`${name} stored`),
      onRefused: ({ message }: Error) => void log.push(`${name} refused: ${message}`),
    }),
  }
}

it('ends waits in their order, after the write and before what was changed is notified', async () => {
  const { writer, change, written, clearings, clock } = setUp()
  const { log, lasting, refusable } = notes()
  change('a')
  writer.after({ onStored: () => void log.push(`${written.length} written, ${clearings()} told`) })
  writer.after(refusable('b'))
  change('c')
  writer.after(lasting('c'))
  expect(log).toEqual([])
  await Promise.resolve()
  expect([log, written]).toEqual([['1 written, 0 told', 'b stored', 'c stored'], [['a', 'c']]])
  writer.after(lasting('nothing to write'))
  await Promise.resolve()
  expect([log.at(-1), written.length, clock.pending]).toEqual(['nothing to write stored', 1, 0])
})

it('refuses the waits that can be refused, at once, and the others wait for the repetition', async () => {
  const { writer, change, failWith, clock, reported, written } = setUp()
  const { log, lasting, refusable } = notes()
  failWith(full)
  change('a')
  writer.after(lasting('a'))
  writer.after(refusable('b'))
  await Promise.resolve()
  expect([log, reported.length, clock.nextDue]).toEqual([['b refused: The store could not be written.'], 1, 100])
  clock.advance(50)
  writer.after(lasting('c'))
  await Promise.resolve()
  expect(reported).toHaveLength(1)
  writer.after(refusable('d'))
  await Promise.resolve()
  // The repetition is not put off.
  expect([log.length, reported.length, clock.nextDue]).toEqual([2, 2, 100])
  failWith(undefined)
  clock.advance(50)
  expect([log.slice(2), written, clock.pending]).toEqual([['a stored', 'c stored'], [['a']], 0])
})

it('repeats nothing when all that was pending was refused', async () => {
  const { writer, change, failWith, clock, drop } = setUp()
  const { log, lasting } = notes()
  failWith(full)
  change('a')
  writer.after(lasting('later'))
  writer.after({
    onStored: () => undefined,
    onRefused: () => {
      log.push('refused')
      drop()
    },
  })
  await Promise.resolve()
  expect([log, clock.pending, writer.isFailing]).toEqual([['refused', 'later stored'], 0, false])
})

it('refuses alone the wait for a row that cannot be held', async () => {
  const { writer, change, failWith, written, reported, clock, left, drop } = setUp()
  const { log, refusable } = notes()
  const row = { table: 'instances', id: 'b' } as const
  failWith((changes) =>
    changes.some((one) => idOf(one) === 'b') ? new StoreError('STORE_FAILED', 'too long', { row }) : undefined,
  )
  change('a', 'b', 'c')
  writer.after(refusable('a'))
  writer.after({
    row,
    onStored: () => void log.push('b stored'),
    onRefused: () => {
      log.push('b refused')
      drop('b')
    },
  })
  writer.after({ ...refusable('c'), row: { table: 'instances', id: 'c' } })
  await Promise.resolve()
  expect([log, written, left()]).toEqual([['b refused', 'a stored', 'c stored'], [['a', 'c']], []])
  expect([reported.length, clock.pending]).toEqual([1, 0])
})

it('a wait that throws is reported, and keeps no other waiting', async () => {
  const { writer, change, reported } = setUp()
  const { log, lasting } = notes()
  const broken = new Error('broken')
  change('a')
  writer.after({
    onStored: () => {
      throw broken
    },
  })
  writer.after(lasting('b'))
  await Promise.resolve()
  expect([log, reported]).toEqual([['b stored'], [broken]])
})

it('says when all that has changed is written, or why it is not, also when it is closed', async () => {
  const { writer, change, failWith, clock } = setUp()
  await writer.stored()
  change('a')
  await writer.stored()
  failWith(full)
  change('b')
  await expect(writer.stored()).rejects.toMatchObject({ code: 'STORE_FAILED' })
  change('c')
  const last = writer.stored()
  writer.close()
  await expect(last).rejects.toMatchObject({ code: 'STORE_FAILED' })
  await expect(writer.stored()).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  expect(clock.pending).toBe(0)
})
