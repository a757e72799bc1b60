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
  const [written, reported, log]: [string[][], unknown[], string[]] = [[], [], []]
  let changes: StoreChange[] = []
  let taken: StoreChange[] = []
  let fail: ((changes: readonly StoreChange[]) => Error | undefined) | undefined
  let held: (() => void)[] | undefined
  let writing = 0
  const writer = new StoreWriter({
    clock,
    store: {
      write: async (all) => {
        writing += 1
        expect(writing).toBe(1)
        if (held !== undefined) await new Promise<void>((resolve) => held?.push(resolve))
        writing -= 1
        const error = fail?.(all)
        if (error !== undefined) throw error
        written.push(all.map(idOf))
      },
    },
    pending: {
      isEmpty: () => changes.length === 0,
      take: () => {
        taken = changes
        changes = []
        return taken
      },
      stored: () => (taken = []),
      refused: () => {
        changes = [...taken, ...changes]
        taken = []
      },
      reduce: ({ id }) => {
        const before = changes.length
        changes = changes.filter((change) => idOf(change) !== id)
        return changes.length < before
      },
    },
    report: (error) => reported.push(error),
    outbox: {
      batch: (run) => {
        log.push('(')
        run()
        log.push(')')
      },
      mark: () => log.push('mark'),
      release: () => log.push('release'),
    },
  })
  return {
    clock,
    written,
    reported,
    writer,
    log,
    change: (...ids: string[]) => void changes.push(...ids.map(put)),
    failWith: (make: typeof fail) => (fail = make),
    /** From now on a write ends when `land` is called. */
    hold: () => (held = []),
    land: async () => {
      held?.shift()?.()
      await turn()
    },
    left: () => changes.map(idOf),
    /** They need not be written any longer; all of them by default. */
    drop: (...ids: string[]) => (changes = changes.filter((one) => ids.length > 0 && !ids.includes(idOf(one)))),
  }
}

/** Until all that follows at once is over. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const full = (): Error => new Error('disk full')

it('writes once, at the end of the tick, what has changed until then', async () => {
  const { writer, change, written, log, clock } = setUp()
  expect(writer.isSettled()).toBe(true)
  change('a')
  expect([writer.isSettled(), writer.isSettled()]).toEqual([false, false])
  change('b')
  expect(written).toEqual([])
  await turn()
  expect([written, log.splice(0), writer.isSettled()]).toEqual([[['a', 'b']], ['mark', 'release'], true])
  change('c')
  expect(writer.isSettled()).toBe(false)
  await turn()
  expect([written, log, clock.pending]).toEqual([[['a', 'b'], ['c']], ['mark', 'release'], 0])
})

it('writes what changes during a write after it, all of it together, and is settled when that is stored', async () => {
  const { writer, change, written, log, hold, land } = setUp()
  hold()
  change('a')
  writer.flush()
  await turn()
  expect([written, log.splice(0), writer.isSettled()]).toEqual([[], ['mark'], false])
  change('b')
  writer.flush()
  change('c')
  await turn()
  expect(log).toEqual([])
  await land()
  expect([written, log.splice(0), writer.isSettled()]).toEqual([[['a']], ['release', 'mark'], false])
  await land()
  expect([written, log, writer.isSettled()]).toEqual([[['a'], ['b', 'c']], ['release'], true])
})

it('a wait that begins during a write ends with it when nothing has changed since, and otherwise with the next', async () => {
  const { writer, change, hold, land } = setUp()
  const { log, lasting, refusable } = notes()
  hold()
  change('a')
  writer.after(lasting('a'))
  await turn()
  writer.after(refusable('nothing since'))
  await turn()
  expect(log).toEqual([])
  await land()
  expect(log).toEqual(['a stored', 'nothing since stored'])
  change('b')
  writer.flush()
  await turn()
  change('c')
  writer.after(refusable('c'))
  await land()
  expect(log).toHaveLength(2)
  await land()
  expect(log.slice(2)).toEqual(['c stored'])
})

it('writes nothing when nothing has changed', async () => {
  const { writer, written, log } = setUp()
  writer.flush()
  await turn()
  expect([written, log]).toEqual([[], []])
})

it('repeats a write that failed, later each time, with what has changed meanwhile, and leaves no timer', async () => {
  const { writer, change, failWith, written, reported, clock, log } = setUp()
  failWith(full)
  change('a')
  writer.flush()
  await turn()
  expect([writer.isFailing, clock.pending, log]).toEqual([true, 1, ['mark']])
  // It is repeated by its timer alone.
  expect(writer.isSettled()).toBe(false)
  await turn()
  expect(reported).toEqual([full()])
  const waits: number[] = []
  for (let round = 0; round < 11; round += 1) {
    let waited = 0
    while (reported.length === round + 1) {
      clock.advance(50)
      await turn()
      waited += 50
    }
    waits.push(waited)
    expect(clock.pending).toBe(1)
  }
  expect(waits).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000])
  change('b')
  failWith(undefined)
  clock.advance(30_000)
  await turn()
  expect([written, writer.isFailing, clock.pending, log.at(-1)]).toEqual([[['a', 'b']], false, 0, 'release'])
  // The next failure begins with the first wait.
  failWith(full)
  change('c')
  writer.flush()
  await turn()
  failWith(undefined)
  clock.advance(100)
  await turn()
  expect([written.at(-1), clock.pending]).toEqual([['c'], 0])
})

it('writes what was refused together with what changed during that write', async () => {
  const { writer, change, failWith, written, clock, hold, land } = setUp()
  hold()
  failWith(full)
  change('a')
  writer.flush()
  await turn()
  change('b')
  await land()
  failWith(undefined)
  clock.advance(100)
  await land()
  expect([written, clock.pending]).toEqual([[['a', 'b']], 0])
})

it('a write that succeeds ends the repetition, and one that fails anew has one timer', async () => {
  const { writer, change, failWith, written, clock } = setUp()
  failWith(full)
  change('a')
  writer.flush()
  await turn()
  writer.flush()
  await turn()
  expect(clock.pending).toBe(1)
  failWith(undefined)
  writer.flush()
  await turn()
  expect([written, clock.pending, writer.isFailing]).toEqual([[['a']], 0, false])
  clock.advance(100_000)
  await turn()
  expect(written).toEqual([['a']])
})

it('says why a write failed: the error of the store, or one with the cause', async () => {
  const { writer, change, failWith, reported, left } = setUp()
  const closed = new StoreError('STORE_LOST', 'gone')
  change('a')
  failWith(() => closed)
  await expect(writer.stored()).rejects.toBe(closed)
  failWith(full)
  await expect(writer.stored()).rejects.toMatchObject({
    code: 'STORE_FAILED',
    message: 'The store could not be written.',
    cause: full(),
  })
  await writer.close()
  expect([reported.length, left()]).toEqual([3, ['a']])
})

it('a store that throws in place of rejecting has failed', async () => {
  const clock = createManualClock()
  const reported: unknown[] = []
  const writer = new StoreWriter({
    clock,
    store: {
      write: () => {
        throw full()
      },
    },
    pending: {
      isEmpty: () => false,
      take: () => [put('a')],
      stored: () => undefined,
      refused: () => undefined,
      reduce: () => false,
    },
    report: (error) => reported.push(error),
    outbox: { batch: (run) => run(), mark: () => undefined, release: () => undefined },
  })
  await expect(writer.stored()).rejects.toMatchObject({ code: 'STORE_FAILED' })
  expect([reported, writer.isFailing]).toEqual([[full()], true])
  await writer.close()
  expect(clock.pending).toBe(0)
})

it('reduces a row that cannot be written, so that the others are', async () => {
  const { writer, change, failWith, written, reported, clock } = setUp()
  const bad = new StoreError('STORE_FAILED', 'bad row', { row: { table: 'instances', id: 'bad' } })
  failWith((changes) => (changes.some((one) => idOf(one) === 'bad') ? bad : undefined))
  change('a', 'bad', 'b')
  await writer.stored()
  expect([written, reported, clock.pending]).toEqual([[['a', 'b']], [bad], 0])
  // What has no less of it is repeated.
  change('c')
  const lost = new StoreError('STORE_FAILED', 'bad row', { row: { table: 'instances', id: 'other' } })
  failWith(() => lost)
  await expect(writer.stored()).rejects.toBe(lost)
  expect([reported.length, clock.pending]).toEqual([2, 1])
  await writer.close()
})

it('tries once at the end of a tick, however often it was told of changes', async () => {
  const { writer, change, failWith, reported, clock } = setUp()
  failWith(full)
  for (const id of ['a', 'b', 'c']) {
    change(id)
    writer.isSettled()
  }
  await turn()
  expect([reported, clock.pending]).toEqual([[full()], 1])
  await writer.close()
})

it('when it is closed, writes what is pending, leaves no timer, and writes nothing more', async () => {
  const { writer, change, failWith, written, clock } = setUp()
  failWith(full)
  change('a')
  await writer.close()
  expect([writer.isFailing, clock.pending]).toEqual([false, 0])
  failWith(undefined)
  await expect(writer.stored()).rejects.toMatchObject({ code: 'STORE_CLOSED', message: 'The store was closed.' })
  expect([written, clock.pending]).toEqual([[], 0])
  const other = setUp()
  other.change('b')
  await other.writer.close()
  expect(other.written).toEqual([['b']])
})

it('when it is closed during a write, waits for it, and writes what has changed since', async () => {
  const { writer, change, written, hold, land } = setUp()
  let isClosed = false
  hold()
  change('a')
  writer.flush()
  await turn()
  change('b')
  void writer.close().then(() => (isClosed = true))
  await turn()
  expect([isClosed, written]).toEqual([false, []])
  await land()
  expect([isClosed, written]).toEqual([false, [['a']]])
  await land()
  expect([isClosed, written]).toEqual([true, [['a'], ['b']]])
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

it('ends waits in their order and in one batch, after the write and before what was changed is notified', async () => {
  const { writer, change, written, log, clock } = setUp()
  change('a')
  writer.after({ onStored: () => void log.push(`${written.length} written`) })
  writer.after({ onStored: () => void log.push('b') })
  change('c')
  writer.after({ onStored: () => void log.push('c') })
  expect(log).toEqual([])
  await turn()
  expect([log.splice(0), written]).toEqual([['mark', '(', '1 written', 'b', 'c', ')', 'release'], [['a', 'c']]])
  writer.after({ onStored: () => void log.push('nothing to write') })
  await turn()
  expect([log, written.length, clock.pending]).toEqual([['(', 'nothing to write', ')'], 1, 0])
})

it('refuses the waits that can be refused, at once, and the others wait for the repetition', async () => {
  const { writer, change, failWith, clock, reported, written } = setUp()
  const { log, lasting, refusable } = notes()
  failWith(full)
  change('a')
  writer.after(lasting('a'))
  writer.after(refusable('b'))
  await turn()
  expect([log, reported.length, clock.nextDue]).toEqual([['b refused: The store could not be written.'], 1, 100])
  clock.advance(50)
  writer.after(lasting('c'))
  await turn()
  expect(reported).toHaveLength(1)
  writer.after(refusable('d'))
  await turn()
  // The repetition is not put off.
  expect([log.length, reported.length, clock.nextDue]).toEqual([2, 2, 100])
  failWith(undefined)
  clock.advance(50)
  await turn()
  expect([log.slice(2), written, clock.pending]).toEqual([['a stored', 'c stored'], [['a']], 0])
})

it('refuses no wait for what has changed during the write that failed: that is tried at once', async () => {
  const { writer, change, failWith, written, hold, land } = setUp()
  const { log, refusable } = notes()
  hold()
  failWith(full)
  change('a')
  writer.after(refusable('a'))
  await turn()
  change('b')
  writer.after(refusable('b'))
  await land()
  expect(log).toEqual(['a refused: The store could not be written.'])
  failWith(undefined)
  await land()
  expect([log.slice(1), written]).toEqual([['b stored'], [['a', 'b']]])
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
  await turn()
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
  // The same id in another table is another row.
  writer.after({ ...refusable('task'), row: { table: 'tasks', id: 'b' } })
  await turn()
  expect([log, written, left()]).toEqual([['b refused', 'a stored', 'c stored', 'task stored'], [['a', 'c']], []])
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
  await turn()
  expect([log, reported]).toEqual([['b stored'], [broken]])
})

it('says when all that has changed is stored, or why it is not, also when it is closed', async () => {
  const { writer, change, failWith, clock, hold, land, written } = setUp()
  await writer.stored()
  hold()
  change('a')
  let isStored = false
  void writer.stored().then(() => (isStored = true))
  await turn()
  // It is being written: nothing is pending any longer.
  void writer.stored().then(() => written.push(['told']))
  await turn()
  expect([isStored, written]).toEqual([false, []])
  await land()
  expect([isStored, written]).toEqual([true, [['a'], ['told']]])
  failWith(full)
  change('b')
  const refused = expect(writer.stored()).rejects.toMatchObject({ code: 'STORE_FAILED' })
  await turn()
  await land()
  await refused
  change('c')
  const last = expect(writer.stored()).rejects.toMatchObject({ code: 'STORE_FAILED' })
  const closing = writer.close()
  await turn()
  await land()
  await land()
  await Promise.all([last, closing])
  await expect(writer.stored()).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  expect(clock.pending).toBe(0)
})
