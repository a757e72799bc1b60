// A recorder of deliveries, on transitions of the test: what it writes, and what it leaves behind.
import { Subject } from 'rxjs'
import { expect, it, vi } from 'vitest'
import { recordDeliveryLog, type DeliveryRecorderOptions } from '../../../src/testing/delivery-recorder.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

function createSubject(options: DeliveryRecorderOptions = {}, past: readonly object[] = []) {
  const transitions$ = new Subject<object>()
  const clock = createManualClock(100)
  const manager = {
    transitions$,
    getAllTasks: () => past,
    getTask: (id: string) => (id === 't1' ? { owner: 'bob' } : undefined),
  }
  const recorder = recordDeliveryLog(manager as never, { clock, ...options })
  const deliver = (from: string, to: string, at = 100): void =>
    transitions$.next({ kind: 'delivery', taskId: 't1', owner: 'bob', at, from, to, deliveryId: 'd1', record: {} })
  const types = () => recorder.entries.map(({ type }) => type)
  return { transitions$, clock, recorder, deliver, types }
}

it('each step of a delivery is an entry, a lease that passes on to another is two', () => {
  const { deliver, types } = createSubject()
  deliver('none', 'owed')
  deliver('owed', 'leased')
  deliver('leased', 'leased')
  deliver('leased', 'owed')
  deliver('leased', 'delivered')
  deliver('delivered', 'owed')
  deliver('owed', 'none')
  expect(types()).toEqual(['leased', 'returned', 'leased', 'returned', 'acknowledged', 'repeated', 'dropped'])
})

it('the times of entries never go back, as a clock may', () => {
  const { deliver, recorder } = createSubject()
  deliver('owed', 'leased', 100)
  deliver('leased', 'owed', 40)
  deliver('owed', 'leased', 101)
  expect(recorder.entries.map(({ at }) => at)).toEqual([100, 100, 101])
})

it('a turn is accepted when its promise has resolved, and not when it rejects', async () => {
  const { recorder, types } = createSubject()
  let reject: (error: Error) => void = () => undefined
  const turns = [undefined, Promise.resolve(), new Promise<void>((_resolve, fail) => (reject = fail))]
  const turn = recorder.wrapTurn(() => turns.shift())
  const delivery = { deliveryId: 'd1', taskIds: ['t1'] } as never
  void turn('text', delivery)
  expect(recorder.entries).toEqual([
    { type: 'turn-started', at: 100, owner: 'bob', deliveryId: 'd1', taskIds: ['t1'] },
    { type: 'accepted', at: 100, deliveryId: 'd1', taskIds: ['t1'] },
  ])
  const later = turn('text', delivery)
  expect(types().slice(2)).toEqual(['turn-started'])
  await later
  expect(types().slice(2)).toEqual(['turn-started', 'accepted'])
  const failing = turn('text', delivery)
  reject(new Error('no'))
  await expect(failing).rejects.toThrow('no')
  expect(types().slice(4)).toEqual(['turn-started'])
})

it('the past comes first, in the order of its times', () => {
  const record = (id: string, launchedAt: number, more: object) => ({ id, launchedAt, owner: 'bob', ...more })
  const { recorder } = createSubject({}, [
    record('t1', 5, { status: 'completed', completedAt: 9, notifiedAt: 11, delivery: 'delivered' }),
    record('t2', 6, { status: 'failed', completedAt: 10, delivery: 'none' }),
    record('t3', 7, { status: 'running', delivery: 'none' }),
  ])
  expect(recorder.entries).toEqual([
    { type: 'registered', at: 5, taskId: 't1', owner: 'bob' },
    { type: 'registered', at: 6, taskId: 't2', owner: 'bob' },
    { type: 'registered', at: 7, taskId: 't3', owner: 'bob' },
    { type: 'settled', at: 9, taskId: 't1', status: 'completed', owes: true },
    { type: 'settled', at: 10, taskId: 't2', status: 'failed', owes: false },
    { type: 'acknowledged', at: 11, taskIds: ['t1'] },
  ])
})

it('entries are passed on also when they are not kept, and nothing is written once it has stopped', () => {
  const onEntry = vi.fn()
  const { transitions$, recorder, deliver } = createSubject({ onEntry, keepEntries: false })
  deliver('owed', 'leased')
  expect([onEntry.mock.calls.length, recorder.entries]).toEqual([1, []])
  expect(transitions$.observed).toBe(true)
  recorder.stop()
  expect(transitions$.observed).toBe(false)
  void recorder.wrapTurn(() => undefined)('text', { deliveryId: 'd1', taskIds: [] } as never)
  expect(onEntry).toHaveBeenCalledOnce()
})
