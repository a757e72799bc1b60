/** Slots, ledger and history, in orders that are rare with the manager. */
import { describe, expect, it } from 'vitest'
import { DueTimes } from '../../../machines/due-times.js'
import { idsOf, startRegistry } from './registry-parts.js'

describe('reservations', () => {
  it('A3: count against the limit besides the slots, and expire in the order of their time', () => {
    const { slots, register, advance } = startRegistry({ max: 3 })
    register('a')
    slots.reserve('long', 300)
    slots.reserve('short', 100)
    expect([slots.hasRoom(), slots.isOverLimit()]).toEqual([false, false])
    slots.max = 2
    expect(slots.isOverLimit()).toBe(true)
    advance(99)
    expect(slots.reserved).toBe(2)
    advance(1)
    expect([slots.hasReservation('short'), slots.hasReservation('long')]).toEqual([false, true])
    expect([slots.hasRoom(), slots.isOverLimit()]).toEqual([false, false])
    advance(200)
    expect([slots.reserved, slots.hasRoom()]).toEqual([0, true])
  })

  it('A3: without a limit nothing is over it', () => {
    const { slots, register } = startRegistry({ max: -1 })
    register('a')
    slots.reserve('r', 100)
    expect([slots.hasRoom(), slots.isOverLimit()]).toEqual([true, false])
  })

  it('A3: an id that is reserved again holds its slot until its latest expiry', () => {
    const { slots, advance } = startRegistry({ max: 5 })
    slots.reserve('r', 100)
    slots.reserve('r', 300)
    advance(100)
    expect(slots.hasReservation('r')).toBe(true)
    advance(200)
    expect(slots.hasReservation('r')).toBe(false)
  })
})

describe('due times', () => {
  it('are taken in their order, each once, and not before they are due', () => {
    const times = new DueTimes<string>()
    for (const [key, at] of [
      ['c', 30],
      ['a', 10],
      ['b', 20],
      ['a', 25],
    ] as const) {
      times.set(key, at)
    }
    expect([times.size, times.next]).toEqual([3, 20])
    expect(times.take(19)).toBeUndefined()
    expect(['b', 'a', 'c', undefined]).toEqual([30, 30, 30, 30].map((now) => times.take(now)))
    expect([times.size, times.next]).toEqual([0, undefined])
  })

  it('keep their order while many are deleted', () => {
    const times = new DueTimes<number>()
    for (let n = 0; n < 1000; n += 1) times.set(n, (n * 7919) % 1000)
    for (let n = 0; n < 1000; n += 1) if (n % 10 !== 0) expect(times.delete(n)).toBe(true)
    expect(times.delete(1)).toBe(false)
    const taken: number[] = []
    for (let key = times.take(1000); key !== undefined; key = times.take(1000)) taken.push((key * 7919) % 1000)
    expect(taken).toEqual(Array.from({ length: 100 }, (_, n) => n * 10))
  })
})

describe('leases', () => {
  it('carry tasks in the order in which they ended, whatever order they are given in', () => {
    const { register, end, take, changes } = startRegistry({ max: 5 })
    for (const id of ['a', 'b', 'c']) register(id)
    end('c', 'a', 'b')
    changes()
    const lease = take({ deliveryId: 'd', taskIds: ['a', 'b', 'c'] })
    expect(changes()).toEqual(['c delivery owed leased', 'a delivery owed leased', 'b delivery owed leased'])
    expect(idsOf(lease)).toEqual(['c', 'a', 'b'])
  })

  it('take what is leased only as a claim', () => {
    const { register, end, take } = startRegistry({ max: 5 })
    register('a')
    register('b')
    end('a')
    take({ deliveryId: 'first', taskIds: ['a'] })
    expect(take({ deliveryId: 'second', taskIds: ['a', 'b'] })).toBeUndefined()
    const third = take({ deliveryId: 'third', taskIds: ['a', 'b'], isClaim: true })
    expect(Array.from(third!.claimed, ({ record }) => record.id)).toEqual(['a', 'b'])
  })

  it('A5: of two waits for one task the first gets its end, and the second after the first', () => {
    const { register, end, take, ledger, history } = startRegistry({ max: 5 })
    register('a')
    const entry = history.get('a')!
    for (const deliveryId of ['first', 'second', 'third']) take({ deliveryId, taskIds: ['a'], isClaim: true })
    ledger.release('first')
    expect(Array.from(entry.claims ?? [], ({ id }) => id)).toEqual(['second', 'third'])
    end('a')
    expect([entry.record.delivery, entry.lease?.id]).toEqual(['leased', 'second'])
    ledger.release('second')
    expect(entry.lease?.id).toBe('third')
    expect(entry.claims).toBeUndefined()
    ledger.acknowledge('third')
    expect(entry.record.delivery).toBe('delivered')
  })

  it('A10: a claim that has ended leaves nothing on the task', () => {
    const { register, take, ledger, history } = startRegistry({ max: 5 })
    register('a')
    take({ deliveryId: 'wait', taskIds: ['a'], isClaim: true })
    expect(history.get('a')?.claims?.size).toBe(1)
    ledger.release('wait')
    expect(history.get('a')?.claims).toBeUndefined()
  })
})

describe('owners', () => {
  it('hand leased tasks over in the order of registration', () => {
    const { register, end, take, ledger, changes } = startRegistry({ max: 5 })
    for (const id of ['a', 'b', 'c']) register(id, { owner: 'old' })
    end('c', 'a', 'b')
    take({ deliveryId: 'd', owner: 'old' })
    changes()
    ledger.releaseOwner('old', 'new')
    expect(changes()).toEqual(['a owner old new', 'b owner old new', 'c owner old new'])
    expect([ledger.countOf('leased', 'old'), ledger.countOf('leased', 'new'), ledger.countOf('leased')]).toEqual([
      0, 3, 3,
    ])
  })
})

describe('the history', () => {
  it('drops the oldest end first, not the oldest task', () => {
    const { actor, register, end, ids, history } = startRegistry({ max: 1 })
    for (const id of ['a', 'b', 'c']) register(id, { isLaunched: false })
    end('c', 'b', 'a')
    expect(history.hasExcess()).toBe(false)
    actor.send({ type: 'task.delivered', taskIds: ['a', 'b', 'c'] })
    expect(ids()).toEqual(['a', 'b'])
    expect(history.hasExcess()).toBe(false)
  })

  it('A7: keeps the newest hundred records that were cut, and no more', () => {
    const { actor, register, end, ids } = startRegistry({ max: 0 })
    const names = Array.from({ length: 101 }, (_, index) => `t${index}`)
    for (const id of names) register(id, { isLaunched: false })
    end(...names)
    actor.send({ type: 'text.cut', taskIds: names.slice(0, 100) })
    actor.send({ type: 'task.delivered', taskIds: names })
    expect(ids()).toEqual(names.slice(0, 100))
    // One more takes the place of the oldest.
    register('last', { isLaunched: false })
    end('last')
    actor.send({ type: 'text.cut', taskIds: ['last'] })
    actor.send({ type: 'task.delivered', taskIds: ['last'] })
    expect(ids()).toEqual([...names.slice(1, 100), 'last'])
  })

  it('A7: a text that was read is kept no longer', () => {
    const { actor, register, end, ids } = startRegistry({ max: 0 })
    register('a', { isLaunched: false })
    end('a')
    actor.send({ type: 'text.cut', taskIds: ['a', 'unknown'] })
    actor.send({ type: 'task.delivered', taskIds: ['a'] })
    expect(ids()).toEqual(['a'])
    actor.send({ type: 'text.read', taskId: 'a' })
    expect(ids()).toEqual([])
  })

  it('A7: a restored record is pruned like any other, and later changes have greater numbers', () => {
    const { actor, journal, ids } = startRegistry({ max: 0 })
    actor.send({
      type: 'task.restore',
      record: {
        id: 'old',
        subagentName: 's',
        goalPrompt: 'g',
        owner: 'main',
        launchedAt: 0,
        completedAt: 1,
        seq: 7,
        status: 'failed',
        error: 'lost',
        delivery: 'delivered',
      },
    })
    expect(ids()).toEqual([])
    expect(journal.seq).toBe(8)
  })
})
