/** The registry's table by itself: what the charts and the manager reach only in rare orders. */
import { describe, expect, it } from 'vitest'
import { TaskTable, type TaskTableOptions } from '../../../machines/task-table.js'

function setUp(options: Partial<TaskTableOptions> = {}) {
  let now = 0
  const table = new TaskTable({ max: 5, now: () => now, ...options })
  return {
    table,
    advance: (ms: number) => (now += ms),
    admit: (id: string, owner = 'main') => {
      table.admit({ id, subagentName: 's', goalPrompt: 'g', owner, graceMs: 0 }, {} as never, false, undefined)
      return table.get(id)!
    },
    end: (...ids: string[]) => {
      for (const id of ids) {
        const entry = table.get(id)!
        table.settle(entry, { status: 'completed', output: { final_message: id } })
        table.announce(entry)
      }
    },
    /** What was told since, in words. */
    told: () =>
      table.outbox.splice(0).map((item) => {
        if (item.type === 'questions') return `${item.type} ${item.entry.record.id}`
        if (item.type !== 'transition') return `${item.type} ${item.owner}`
        const { transition } = item
        return `${transition.taskId} ${transition.kind} ${'to' in transition ? transition.to : ''}`.trimEnd()
      }),
    ids: () => Array.from(table.entries(), ({ record }) => record.id),
  }
}

describe('reservations', () => {
  it('A3: count against the limit besides the slots, and expire in the order of their time', () => {
    const { table, admit, advance } = setUp({ max: 3 })
    admit('a')
    table.reserve('long', 300)
    table.reserve('short', 100)
    expect([table.hasRoom(), table.isOverLimit()]).toEqual([false, false])
    table.max = 2
    expect(table.isOverLimit()).toBe(true)
    advance(99)
    expect(table.liveReservations).toBe(2)
    advance(1)
    expect([table.hasReservation('short'), table.hasReservation('long')]).toEqual([false, true])
    expect([table.hasRoom(), table.isOverLimit()]).toEqual([false, false])
    advance(200)
    expect([table.liveReservations, table.hasRoom()]).toEqual([0, true])
  })

  it('A3: without a limit nothing is over it', () => {
    const { table, admit } = setUp({ max: -1 })
    admit('a')
    table.reserve('r', 100)
    expect([table.hasRoom(), table.isOverLimit()]).toEqual([true, false])
  })

  it('A3: a name that is reserved again holds until its latest time', () => {
    const { table, advance } = setUp()
    table.reserve('r', 100)
    table.reserve('r', 300)
    advance(100)
    expect(table.hasReservation('r')).toBe(true)
    advance(200)
    expect(table.hasReservation('r')).toBe(false)
  })
})

describe('leases', () => {
  it('carry what ended in the order in which it did, however they are asked for', () => {
    const { table, admit, end, told } = setUp()
    for (const id of ['a', 'b', 'c']) admit(id)
    end('c', 'a', 'b')
    told()
    table.takeLease({ deliveryId: 'd', taskIds: ['a', 'b', 'c'] })
    expect(told()).toEqual(['c delivery leased', 'a delivery leased', 'b delivery leased'])
    expect(Array.from(table.lease('d')!.entries, ({ record }) => record.id)).toEqual(['c', 'a', 'b'])
  })

  it('take what is on its way only as a claim', () => {
    const { table, admit, end } = setUp()
    admit('a')
    admit('b')
    end('a')
    table.takeLease({ deliveryId: 'first', taskIds: ['a'] })
    table.takeLease({ deliveryId: 'second', taskIds: ['a', 'b'] })
    expect(table.lease('second')).toBeUndefined()
    table.takeLease({ deliveryId: 'third', taskIds: ['a', 'b'], isClaim: true })
    expect(Array.from(table.lease('third')!.claimed, ({ record }) => record.id)).toEqual(['a', 'b'])
  })

  it('A5: of two waits for one task the first gets its end, and the second when the first is over', () => {
    const { table, admit, end } = setUp()
    const entry = admit('a')
    for (const deliveryId of ['first', 'second', 'third']) {
      table.takeLease({ deliveryId, taskIds: ['a'], isClaim: true })
    }
    table.releaseLease('first')
    expect(entry.claims?.map(({ id }) => id)).toEqual(['second', 'third'])
    end('a')
    expect([entry.record.delivery, entry.lease?.id]).toEqual(['leased', 'second'])
    table.releaseLease('second')
    expect(entry.lease?.id).toBe('third')
    expect(entry.claims).toBeUndefined()
    table.acknowledgeLease('third')
    expect(entry.record.delivery).toBe('delivered')
  })

  it('A10: a claim that has ended leaves nothing at the task', () => {
    const { table, admit } = setUp()
    const entry = admit('a')
    table.takeLease({ deliveryId: 'wait', taskIds: ['a'], isClaim: true })
    expect(entry.claims).toHaveLength(1)
    table.releaseLease('wait')
    expect(entry.claims).toBeUndefined()
  })
})

describe('owners', () => {
  it('hand over what is on its way in the order of registration', () => {
    const { table, admit, end, told } = setUp()
    for (const id of ['a', 'b', 'c']) admit(id, 'old')
    end('c', 'a', 'b')
    table.takeLease({ deliveryId: 'd', owner: 'old' })
    told()
    table.releaseOwner('old', 'new')
    expect(told()).toEqual(['a owner new', 'b owner new', 'c owner new'])
    expect([table.countOf('leased', 'old'), table.countOf('leased', 'new')]).toEqual([0, 3])
  })
})

describe('the history', () => {
  it('drops the oldest end first, not the oldest task', () => {
    const { table, admit, end, ids } = setUp({ max: 1 })
    for (const id of ['a', 'b', 'c']) admit(id)
    end('c', 'b', 'a')
    table.notify(['a', 'b', 'c'])
    expect(table.hasExcess()).toBe(true)
    table.prune()
    expect(ids()).toEqual(['a', 'b'])
    expect(table.hasExcess()).toBe(false)
  })

  it('A7: has no excess while all of it is owed', () => {
    const { table, admit, end } = setUp({ max: 0 })
    admit('a')
    end('a')
    expect(table.hasExcess()).toBe(false)
    table.notify(['a'])
    expect(table.hasExcess()).toBe(true)
  })

  it('A7: keeps the newest hundred records that were cut, and no more', () => {
    const { table, admit, end, ids } = setUp({ max: 0 })
    const names = Array.from({ length: 101 }, (_, index) => `t${index}`)
    for (const id of names) admit(id)
    end(...names)
    table.keepUnread(names.slice(0, 100))
    table.notify(names)
    table.prune()
    expect(ids()).toEqual(names.slice(0, 100))
    // One more takes the place of the oldest.
    admit('last')
    end('last')
    table.keepUnread(['last'])
    table.notify(['last'])
    table.prune()
    expect(ids()).toEqual([...names.slice(1, 100), 'last'])
  })

  it('A7: a record that was taken back from before a restart may go as any other', () => {
    const { table, ids } = setUp({ max: 0 })
    table.restore({
      ...{ id: 'old', subagentName: 's', goalPrompt: 'g', owner: 'main', launchedAt: 0, completedAt: 1, seq: 7 },
      ...{ status: 'failed', error: 'lost', delivery: 'delivered' },
    })
    expect(table.seq).toBe(7)
    table.prune()
    expect(ids()).toEqual([])
  })

  it('A8: progress changes a record that runs, and no other', () => {
    const { table, admit, end } = setUp()
    const entry = admit('a')
    table.noteProgress(entry, { progress: 1 })
    expect(entry.record.progress).toEqual({ progress: 1 })
    end('a')
    const ended = entry.record
    table.noteProgress(entry, { progress: 2 })
    expect(entry.record).toBe(ended)
  })
})
