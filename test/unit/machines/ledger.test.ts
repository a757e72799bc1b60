/** Slots, ledger and history, in orders that are rare with the manager. */
import { describe, expect, it } from 'vitest'
import { DueTimes } from '../../../machines/due-times.js'
import { countVisits } from '../../support/visits.js'
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
  it('of one moment are taken in the order in which they were set', () => {
    const times = new DueTimes<number>()
    for (let n = 0; n < 20; n += 1) times.set(n, 10)
    times.set(3, 10)
    const order = [...Array(20).keys()].filter((n) => n !== 3)
    expect(Array.from({ length: 20 }, () => times.take(10))).toEqual([...order, 3])
  })

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

describe('a result that was delivered', () => {
  it('A6: in the meantime by the host itself stays so when its message is refused', () => {
    const { actor, register, end, take, ledger, history } = startRegistry({ max: 5 })
    register('a')
    end('a')
    take({ deliveryId: 'd' })
    actor.send({ type: 'task.delivered', taskIds: ['a'] })
    actor.send({ type: 'lease.release', deliveryId: 'd' })
    expect(history.get('a')?.record.delivery).toBe('delivered')
    expect([ledger.countOf('owed'), ledger.countOf('leased'), ledger.outstanding()]).toEqual([0, 0, 0])
  })

  it('F11: by a message that was accepted late is owed once more with that message, and again when it is refused', () => {
    const { actor, ask, register, end, take, ledger, history } = startRegistry({ max: 5 })
    register('a')
    end('a')
    const entry = history.get('a')!
    take({ deliveryId: 'first' })
    ledger.release('first')
    take({ deliveryId: 'second' })
    ledger.acceptLate('first', [entry])
    ledger.release('second')
    expect(entry.record.delivery).toBe('delivered')
    expect(ask({ type: 'delivery.repeat', deliveryId: 'first' })).toBe(false)
    expect(ask({ type: 'delivery.repeat', deliveryId: 'second' })).toBe(true)
    take({ deliveryId: 'third' })
    actor.send({ type: 'lease.release', deliveryId: 'third' })
    expect(entry.record).toMatchObject({ delivery: 'owed', isRepeat: true })
    ledger.acceptLate('third', [entry])
    expect(entry.record.delivery).toBe('delivered')
    expect(ask({ type: 'delivery.repeat', deliveryId: 'third' })).toBe(true)
  })

  it('F11: to an owner that has gone since is not owed once more', () => {
    const { actor, ask, register, end, take, ledger, history } = startRegistry({ max: 5 })
    register('a')
    end('a')
    take({ deliveryId: 'd' })
    actor.send({ type: 'owner.release', owner: 'main', heir: undefined })
    actor.send({ type: 'lease.acknowledge', deliveryId: 'd' })
    expect(history.get('a')?.record.delivery).toBe('delivered')
    expect(ask({ type: 'delivery.repeat', deliveryId: 'd' })).toBe(false)
    expect(ledger.outstanding()).toBe(0)
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

describe('an owner that has gone', () => {
  it('A5: is owed nothing of what a refused message returns, and the records of it can be pruned', () => {
    const { actor, register, end, take, ledger, ids, changes } = startRegistry({ max: 0 })
    for (const id of ['leased', 'owed']) register(id, { isLaunched: false })
    end('leased', 'owed')
    take({ deliveryId: 'd', taskIds: ['leased'] })
    changes()
    actor.send({ type: 'owner.release', owner: 'main', heir: undefined })
    expect(ids()).toEqual(['leased'])
    actor.send({ type: 'lease.release', deliveryId: 'd' })
    expect(ids()).toEqual([])
    expect(changes()).toEqual([
      'owed delivery owed none',
      'owed history retained pruned',
      'leased delivery leased none',
      'leased history retained pruned',
    ])
    expect(ledger.outstanding()).toBe(0)
  })

  it('hands nothing to itself', () => {
    const { actor, register, end, changes } = startRegistry({ max: 5 })
    for (const id of ['a', 'b']) register(id)
    end('a')
    changes()
    actor.send({ type: 'owner.release', owner: 'main', heir: 'main' })
    expect(changes()).toEqual([])
  })

  it('A6: has no message in flight for the next one, although its account was closed meanwhile', () => {
    const { actor, register, end, take, ledger } = startRegistry({ max: 5 })
    register('a', { owner: 'old' })
    end('a')
    take({ deliveryId: 'd', owner: 'old', isExclusive: true })
    actor.send({ type: 'task.delivered', taskIds: ['a'] })
    expect(ledger.isDelivering('old')).toBe(true)
    register('b', { owner: 'new' })
    expect(ledger.isDelivering('new')).toBe(false)
    ledger.release('d')
    expect(ledger.isDelivering('old')).toBe(false)
  })

  it('is named for a lease of its own tasks alone', () => {
    const { register, end, take } = startRegistry({ max: 5 })
    register('a', { owner: 'one' })
    register('b', { owner: 'two' })
    end('a', 'b')
    expect(take({ deliveryId: 'd', owner: 'two', taskIds: ['a'] })).toBeUndefined()
    expect(idsOf(take({ deliveryId: 'e', owner: 'two', taskIds: ['a', 'b'] }))).toEqual(['b'])
  })

  it.each<[string, (registry: ReturnType<typeof startRegistry>, id: string, owner: string) => void]>([
    [
      'was delivered',
      ({ actor, end }, id) => {
        end(id)
        actor.send({ type: 'task.delivered', taskIds: [id] })
      },
    ],
    [
      'was accepted',
      ({ actor, end, take }, id, owner) => {
        end(id)
        take({ deliveryId: id, owner, isExclusive: true })
        actor.send({ type: 'lease.acknowledge', deliveryId: id })
      },
    ],
    ['was cancelled', ({ history }, id) => history.get(id)?.ref?.send({ type: 'task.cancel' })],
    [
      'was given back for nobody',
      ({ actor, end, take }, id, owner) => {
        end(id)
        take({ deliveryId: id })
        actor.send({ type: 'owner.release', owner, heir: undefined })
        actor.send({ type: 'lease.release', deliveryId: id })
      },
    ],
    [
      'was handed over',
      ({ actor, end }, id, owner) => {
        end(id)
        actor.send({ type: 'owner.release', owner, heir: 'heir' })
        actor.send({ type: 'task.delivered', taskIds: [id] })
      },
    ],
  ])('A10: costs nothing later: its last task %s', (_how, live) => {
    const registry = startRegistry({ max: -1 })
    for (let nth = 0; nth < 20; nth += 1) {
      registry.register(`t${nth}`, { owner: `owner-${nth}` })
      live(registry, `t${nth}`, `owner-${nth}`)
    }
    expect(countVisits(() => registry.ledger.countsByOwner('owed'))).toBe(1)
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
    expect(ids()).toEqual([...names.slice(1, 100), 'last'])
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
    const { actor, feed, ids } = startRegistry({ max: 0 })
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
    expect(feed.seq).toBe(8)
  })
})
