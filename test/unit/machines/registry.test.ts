/** The registry's logic by itself, without the checks of the manager: R1 to R7. */
import { describe, expect, it } from 'vitest'
import type { TaskEntry } from '../../../machines/task-entry.js'
import { idsOf, startRegistry } from './registry-parts.js'

describe('the registry', () => {
  it('R1: admits no launch and no reservation beyond the maximum', () => {
    const { register, reserve, ids, phase, advance } = startRegistry({ max: 2 })
    register('a')
    expect(reserve('r', 10)).toBe(true)
    expect(reserve('s', 10)).toBe(false)
    expect(register('b')).toEqual({ refusal: 'no-room' })
    expect([ids(), phase()]).toEqual([['a'], 'full'])
    expect(register('b', { reservationId: 'r' })).toHaveProperty('entry')
    expect(ids()).toEqual(['a', 'b'])
    advance(10)
    expect(register('c', { reservationId: 'r' })).toEqual({ refusal: 'no-reservation' })
    expect(ids()).toEqual(['a', 'b'])
  })

  it('R1: a lowered maximum stops nothing and drains', () => {
    const { actor, register, complete, history, phase } = startRegistry({ max: 3 })
    for (const id of ['a', 'b', 'c']) register(id)
    actor.send({ type: 'limit.set', max: 1 })
    expect(actor.getSnapshot()).toMatchObject({ phase: 'draining', running: 3, max: 1 })
    complete('a', 'b')
    for (const id of ['a', 'b']) actor.send({ type: 'slot.release', entry: history.get(id)! })
    expect(phase()).toBe('full')
    complete('c')
    actor.send({ type: 'slot.release', entry: history.get('c')! })
    expect(phase()).toBe('available')
  })

  it('R1: a task in the foreground takes no slot', () => {
    const { register, actor } = startRegistry({ max: 0 })
    expect(register('a', { isForeground: true })).toHaveProperty('entry')
    expect(actor.getSnapshot()).toMatchObject({ running: 1, slots: 0 })
  })

  it('R2: never admits an id that a retained record holds', () => {
    const { register, complete, history } = startRegistry({ max: -1 })
    register('a')
    const first = history.get('a')
    expect(register('a')).toEqual({ refusal: 'id-in-use' })
    complete('a')
    expect(register('a')).toEqual({ refusal: 'id-in-use' })
    expect(history.get('a')).toBe(first)
    expect(first?.record.status).toBe('completed')
  })

  it('R3: a task that ends leaves a frozen record and no actor', () => {
    const { register, complete, history } = startRegistry({ max: -1 })
    register('a')
    const ref = history.get('a')?.ref
    complete('a')
    expect(history.get('a')?.ref).toBeUndefined()
    expect(ref?.getSnapshot().status).toBe('done')
    expect(Object.isFrozen(history.get('a')?.record)).toBe(true)
  })

  it('R3: a task whose deadline passes is asked to stop, and fails when its grace has passed', () => {
    const { actor, register, history, advance, aborted } = startRegistry({ max: -1 })
    register('a', { terms: { timeoutMs: 100 }, graceMs: 50 })
    register('later', { terms: { timeoutMs: 1000 } })
    expect(actor.getSnapshot().nextDeadlineAt).toBe(100)
    advance(99)
    actor.send({ type: 'deadlines.due' })
    expect(aborted()).toEqual([])
    advance(1)
    actor.send({ type: 'deadlines.due' })
    expect([aborted(), history.get('a')?.record.status]).toEqual([['a'], 'running'])
    expect(actor.getSnapshot().nextDeadlineAt).toBe(150)
    advance(50)
    actor.send({ type: 'deadlines.due' })
    expect(history.get('a')?.record).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('100 ms') as string,
    })
    expect(actor.getSnapshot().nextDeadlineAt).toBe(1000)
  })

  it('R3: the deadline of a task goes with the task', () => {
    const { actor, register, complete } = startRegistry({ max: -1 })
    register('a', { terms: { timeoutMs: 100 } })
    complete('a')
    expect(actor.getSnapshot().nextDeadlineAt).toBeUndefined()
  })

  it('R4: an entry is in one lease, and an owner has one exclusive lease', () => {
    const { register, complete, take } = startRegistry({ max: -1 })
    for (const id of ['a', 'b']) register(id)
    complete('a')
    const first = take({ deliveryId: 'd1', owner: 'main', isExclusive: true })
    expect(take({ deliveryId: 'd2' })).toBeUndefined()
    complete('b')
    expect(take({ deliveryId: 'd3', owner: 'main', isExclusive: true })).toBeUndefined()
    expect(idsOf(first)).toEqual(['a'])
    expect(idsOf(take({ deliveryId: 'd4', owner: 'main' }))).toEqual(['b'])
  })

  it('R5: prunes what owes nothing and was handled, the earliest ended first, passing over the rest', () => {
    const { actor, register, complete, history, ids } = startRegistry({ max: -1 })
    const all = Array.from({ length: 14 }, (_, index) => `t${index}`)
    for (const id of all) register(id)
    complete(...[...all].reverse())
    // t13 ended first, and stays owed.
    actor.send({ type: 'task.delivered', taskIds: all.slice(0, 13) })
    expect(ids()).toHaveLength(14) // no handlers have run
    for (const id of all.slice(0, 12)) history.markHandled(history.get(id)!)
    actor.send({ type: 'history.prune' })
    expect(ids()).toEqual(all.filter((id) => !['t11', 't10'].includes(id)))
    history.markHandled(history.get('t12')!)
    actor.send({ type: 'history.prune' })
    expect(ids()).toHaveLength(11)
    expect(ids()).not.toContain('t12')
  })

  it('R6: numbers every change and queues them in order', () => {
    const { actor, register, complete, take, history, changes, notifications } = startRegistry({ max: 0 })
    actor.send({ type: 'limit.set', max: 1 })
    register('a')
    complete('a')
    take({ deliveryId: 'd' })
    actor.send({ type: 'lease.release', deliveryId: 'd' })
    actor.send({ type: 'owner.release', owner: 'main', heir: 'other' })
    history.markHandled(history.get('a')!)
    actor.send({ type: 'limit.set', max: 0 })
    actor.send({ type: 'task.delivered', taskIds: ['a'] })
    const numbers = notifications.map((item) => (item.type === 'transition' ? item.transition.seq : undefined))
    expect(changes()).toEqual([
      'a status null running',
      'a status running completed',
      'a delivery none owed',
      'a delivery owed leased',
      'a delivery leased owed',
      'a owner main other',
      'a delivery owed delivered',
      'a history retained pruned',
    ])
    expect(numbers).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  })

  it('R6: the snapshot is new after a change, and frozen as it was', () => {
    const { actor, register, complete } = startRegistry({ max: 5 })
    const before = actor.getSnapshot()
    register('a')
    const running = actor.getSnapshot()
    complete('a')
    expect([before, running, actor.getSnapshot()].map(({ seq, owed }) => [seq, running.owed + owed])).toEqual([
      [0, 0],
      [1, 0],
      [3, 1],
    ])
    expect(Object.isFrozen(running)).toBe(true)
  })

  it('R8: a free slot goes to the next task that waits, in the same transition', () => {
    const { register, started, history, slots, reserve, actor, complete, changes } = startRegistry({ max: 1 })
    register('a', { isLaunched: false })
    register('b', { ticket: { priority: 0, bytes: 0 } })
    register('c', { ticket: { priority: 1, bytes: 0 } })
    expect([slots.inUse, slots.queue.size, started()]).toEqual([1, 2, []])
    changes()
    complete('a')
    expect(started()).toEqual(['c'])
    expect(changes()).toContain('c status queued running')
    expect([history.get('c')?.record.status, history.get('b')?.record.status]).toEqual(['running', 'queued'])
    expect(reserve('r', 100)).toBe(false)
    actor.send({ type: 'limit.set', max: 2 })
    expect(started()).toEqual(['c', 'b'])
  })

  it('R7: changes nothing once it is disposed', () => {
    const { actor, register, ids, phase } = startRegistry({ max: -1 })
    register('a')
    actor.send({ type: 'registry.dispose' })
    register('b')
    expect([actor.getSnapshot().status, phase()]).toEqual(['done', 'disposed'])
    expect(ids()).toEqual(['a'])
  })

  it('R7: keeps what suspended runs return once it is disposed, until it is closed', () => {
    const { actor, register, complete, history, phase, changes } = startRegistry({ max: -1 })
    for (const id of ['a', 'b', 'c', 'd']) register(id)
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((id) => history.get(id)!) as [
      TaskEntry,
      TaskEntry,
      TaskEntry,
      TaskEntry,
    ]
    actor.send({ type: 'registry.suspend', running: [a, b, c] })
    actor.send({ type: 'registry.dispose' })
    expect([actor.getSnapshot().status, phase()]).toEqual(['active', 'disposed'])
    changes()
    complete('a')
    actor.send({ type: 'history.prune' })
    for (const entry of [b, d]) actor.send({ type: 'run.returned', entry, output: { final_message: 'done' } })
    actor.send({ type: 'run.returned', entry: b, output: { final_message: 'twice' } })
    actor.send({ type: 'run.returned', entry: c, output: {} })
    expect([a, b, c, d].map(({ record }) => record.status)).toEqual(['running', 'completed', 'running', 'running'])
    expect(b.record).toMatchObject({ output: { final_message: 'done' }, delivery: 'owed' })
    expect(changes()).toEqual([])
    actor.send({ type: 'registry.close' })
    actor.send({ type: 'run.returned', entry: a, output: { final_message: 'late' } })
    expect([actor.getSnapshot().status, a.record.status]).toEqual(['done', 'running'])
  })
})

describe('a wait that is over', () => {
  const requeue = (entry: TaskEntry) =>
    ({
      type: 'task.requeue',
      entry,
      ticket: { priority: 0, bytes: 0 },
      delayMs: 100,
      graceMs: 0,
      error: 'e',
      abortController: undefined,
    }) as const

  it('R8: comes before a reservation that is asked for at that moment', () => {
    const { actor, register, reserve, started, advance, history } = startRegistry({ max: 1 })
    register('a')
    actor.send(requeue(history.get('a')!))
    advance(99)
    expect(reserve('r', 1)).toBe(true)
    advance(1)
    expect(reserve('s', 10)).toBe(false)
    expect(started()).toEqual(['a'])
  })

  it('R8: comes before a launch of that moment', () => {
    const { actor, register, started, advance, history } = startRegistry({ max: 1 })
    register('a')
    actor.send(requeue(history.get('a')!))
    advance(100)
    expect(register('b')).toEqual({ refusal: 'no-room' })
    expect(started()).toEqual(['a'])
  })

  it('R3: ends with the task: nothing is due for one that was cancelled', () => {
    const { actor, register, history } = startRegistry({ max: 1 })
    register('a')
    actor.send(requeue(history.get('a')!))
    expect(actor.getSnapshot().nextRetryAt).toBe(100)
    history.get('a')?.ref?.send({ type: 'task.cancel' })
    expect(actor.getSnapshot().nextRetryAt).toBeUndefined()
  })
})

it('R3: nothing is noted in the record of a task that does not run', () => {
  const { actor, register, end, history } = startRegistry({ max: 1 })
  register('a')
  const entry = history.get('a')!
  actor.send({ type: 'task.note', entry, fields: { exitCode: 1 } })
  expect(entry.record.exitCode).toBe(1)
  end('a')
  const { record } = entry
  actor.send({ type: 'task.note', entry, fields: { exitCode: 2 } })
  expect(entry.record).toBe(record)
})
