/** The registry chart by itself: R1 to R7. Its events come here without the manager's own checks in front. */
import { describe, expect, it } from 'vitest'
import { createActor } from 'xstate'
import { taskRegistryMachine, type TaskRegistryEvent } from '../../../machines/task-registry.js'

function start(max: number) {
  let now = 0
  const actor = createActor(taskRegistryMachine, { input: { max, now: () => now } })
  actor.start()
  const { table } = actor.getSnapshot().context
  const register = (id: string, more: Partial<Extract<TaskRegistryEvent, { type: 'task.register' }>> = {}): void =>
    actor.send({
      type: 'task.register',
      isLaunched: true,
      admission: { id, subagentName: 's', goalPrompt: 'g', owner: 'main', graceMs: 0 },
      ...more,
    })
  const end = (id: string): void => table.get(id)?.ref?.send({ type: 'task.complete', output: {} })
  return {
    actor,
    table,
    register,
    end,
    ids: () => Array.from(table.entries(), (e) => e.record.id),
    tick: (ms: number) => (now += ms),
  }
}

describe('the registry', () => {
  it('R1: admits no launch and no reservation beyond the maximum', () => {
    const { actor, table, register, ids, tick } = start(2)
    register('a')
    actor.send({ type: 'reservation.take', reservationId: 'r', ttlMs: 10 })
    actor.send({ type: 'reservation.take', reservationId: 's', ttlMs: 10 })
    register('b')
    expect(ids()).toEqual(['a'])
    expect(table.hasReservation('s')).toBe(false)
    expect(actor.getSnapshot().value).toEqual({ open: 'full' })
    register('b', { reservationId: 'r' })
    expect(ids()).toEqual(['a', 'b'])
    tick(10)
    register('c', { reservationId: 'r' })
    expect(ids()).toEqual(['a', 'b'])
  })

  it('R1: a lowered maximum stops nothing and drains', () => {
    const { actor, register, end, table } = start(3)
    for (const id of ['a', 'b', 'c']) register(id)
    actor.send({ type: 'limit.set', max: 1 })
    expect(actor.getSnapshot().value).toEqual({ open: 'draining' })
    expect(table.countOf('running')).toBe(3)
    for (const id of ['a', 'b']) end(id)
    for (const slot of [1, 2]) actor.send({ type: 'slot.release', slot })
    expect(actor.getSnapshot().value).toEqual({ open: 'full' })
    end('c')
    actor.send({ type: 'slot.release', slot: 3 })
    expect(actor.getSnapshot().value).toEqual({ open: 'available' })
  })

  it('R2: never admits an id that a retained record holds', () => {
    const { register, end, table } = start(-1)
    register('a')
    const first = table.get('a')
    register('a')
    end('a')
    register('a')
    expect(table.get('a')).toBe(first)
    expect(first?.record.status).toBe('completed')
  })

  it('R3: a task that ends leaves a frozen record and no actor', () => {
    const { register, end, table } = start(-1)
    register('a')
    const ref = table.get('a')?.ref
    end('a')
    expect(table.get('a')?.ref).toBeUndefined()
    expect(ref?.getSnapshot().status).toBe('done')
    expect(Object.isFrozen(table.get('a')?.record)).toBe(true)
  })

  it('R4: an entry is in one lease, and an owner has one exclusive lease', () => {
    const { actor, register, end, table } = start(-1)
    for (const id of ['a', 'b']) register(id)
    end('a')
    actor.send({ type: 'lease.take', request: { deliveryId: 'd1', owner: 'main', isExclusive: true } })
    actor.send({ type: 'lease.take', request: { deliveryId: 'd2' } })
    end('b')
    actor.send({ type: 'lease.take', request: { deliveryId: 'd3', owner: 'main', isExclusive: true } })
    expect([...(table.lease('d1')?.entries ?? [])].map((entry) => entry.record.id)).toEqual(['a'])
    expect(table.lease('d2')).toBeUndefined()
    expect(table.lease('d3')).toBeUndefined()
    actor.send({ type: 'lease.take', request: { deliveryId: 'd4', owner: 'main' } })
    expect([...(table.lease('d4')?.entries ?? [])].map((entry) => entry.record.id)).toEqual(['b'])
  })

  it('R5: prunes what owes nothing and was announced, the earliest ended first, passing over the rest', () => {
    const { actor, register, end, table, ids } = start(-1)
    const all = Array.from({ length: 14 }, (_, index) => `t${index}`)
    for (const id of all) register(id)
    for (const id of [...all].reverse()) end(id)
    for (const id of ['t3', 't13', 't12', 't0']) actor.send({ type: 'task.notify', taskIds: [id] })
    expect(ids()).toHaveLength(14) // nobody has been told yet
    for (const id of ['t3', 't12', 't0']) table.announce(table.get(id) ?? expect.fail())
    actor.send({ type: 'history.prune' })
    expect(ids()).toEqual(all.filter((id) => !['t3', 't12', 't0'].includes(id)))
    table.announce(table.get('t13') ?? expect.fail())
    actor.send({ type: 'history.prune' })
    expect(ids()).toHaveLength(10)
    expect(ids()).not.toContain('t13')
  })

  it('R6: numbers every change and keeps them in order', () => {
    const { actor, register, end, table } = start(0)
    actor.send({ type: 'limit.set', max: 1 })
    register('a')
    end('a')
    actor.send({ type: 'lease.take', request: { deliveryId: 'd' } })
    actor.send({ type: 'lease.release', deliveryId: 'd' })
    actor.send({ type: 'owner.release', owner: 'main', heir: 'other' })
    table.announce(table.get('a') ?? expect.fail())
    actor.send({ type: 'limit.set', max: 0 })
    actor.send({ type: 'task.notify', taskIds: ['a'] })
    const told = table.outbox.map((item) => (item.type === 'transition' ? item.transition : undefined))
    expect(told.map((t) => `${t?.kind} ${t?.from} ${t?.to}`)).toEqual([
      'status null running',
      'status running completed',
      'delivery none owed',
      'delivery owed leased',
      'delivery leased owed',
      'owner main other',
      'delivery owed delivered',
      'history retained pruned',
    ])
    expect(told.map((t) => t?.seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  })

  it('R7: changes nothing once it is disposed', () => {
    const { actor, register, ids } = start(-1)
    register('a')
    actor.send({ type: 'registry.dispose' })
    register('b')
    expect(actor.getSnapshot().status).toBe('done')
    expect(ids()).toEqual(['a'])
  })
})
