/** The guarantees of the auto-trigger, one example each; `test/race` runs them in many orders. */
import { BehaviorSubject, Observable } from 'rxjs'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { InvalidSettingError } from '../../../src/errors.js'
import { setUpTrigger } from './trigger-host.js'
import { createCheckAsyncTasksTool } from '../../../src/tools/check-async-tasks.js'
import { deliveryStates } from '../../../src/features/delivery/delivery-states.js'
import { pushSubscribers } from '../../../src/features/delivery/push-subscribers.js'

describe('a delivery', () => {
  it('A5: carries what was owed before the subscription, and acknowledges it when the turn resolves', async () => {
    const { clock, complete, createTrigger, turns, deliveryOf, manager } = setUpTrigger()
    complete('a')
    createTrigger().subscribe()
    expect(turns).toHaveLength(0)
    await clock.advance(0)
    expect(turns).toMatchObject([{ taskIds: ['a'], text: expect.stringContaining('"agent_id": "a"') as string }])
    expect(deliveryOf('a')).toBe('leased')
    turns[0]!.accept()
    await clock.advance(0)
    expect(manager.getTask('a')).toMatchObject({ delivery: 'delivered', notifiedAt: 1_000 })
    await clock.advance(60_000)
    expect(turns).toHaveLength(1)
  })

  it.each([
    ['rejects', () => Promise.reject(new Error('no'))],
    [
      'throws',
      () => {
        throw new Error('no')
      },
    ],
  ])('A5: a turn that %s leaves its tasks owed, is reported and tried again', async (_, turn) => {
    const { clock, complete, createTrigger, deliveryOf, onError } = setUpTrigger({ turn })
    complete('a')
    createTrigger().subscribe()
    await clock.advance(0)
    expect(deliveryOf('a')).toBe('owed')
    expect(onError).toHaveBeenCalledExactlyOnceWith(
      new Error('no'),
      expect.objectContaining({ source: 'delivery', owner: 'main', deliveryId: expect.any(String) as string }),
    )
    await clock.advance(999)
    expect(onError).toHaveBeenCalledTimes(1)
    await clock.advance(1)
    expect(onError).toHaveBeenCalledTimes(2)
  })

  it.each([
    ['nothing', () => undefined],
    ['a value that is no promise', () => 'accepted' as unknown as undefined],
    ['a thenable', () => ({ then: (resolve: () => void) => resolve() }) as unknown as Promise<void>],
  ])('A5: a turn that returns %s has accepted its message', async (_, turn) => {
    const { clock, complete, createTrigger, deliveryOf } = setUpTrigger({ turn })
    complete('a')
    createTrigger().subscribe()
    await clock.advance(0)
    expect(deliveryOf('a')).toBe('delivered')
  })

  it('A5: the reminder that a turn asks for while it is in flight carries only what ended since', async () => {
    const { clock, complete, createTrigger, turns, reminders } = setUpTrigger()
    complete('a')
    createTrigger().subscribe()
    await clock.advance(0)
    complete('b')
    const next = reminders.leaseReminder()
    expect(next?.taskIds).toEqual(['b'])
    expect(reminders.leaseReminder()).toBeUndefined()
    turns[0]!.accept()
    next?.acknowledge()
    await clock.advance(60_000)
    expect(turns).toHaveLength(1)
  })

  it('A6: what ends in one tick shares a message', async () => {
    const { clock, complete, createTrigger, turns } = setUpTrigger()
    createTrigger().subscribe()
    await clock.advance(0)
    complete('a')
    complete('b')
    await clock.advance(0)
    expect(turns).toMatchObject([{ taskIds: ['a', 'b'] }])
  })

  it('A6: waits coalesceMs after each end for more, but no longer than maxWaitMs in all', async () => {
    const { clock, complete, createTrigger, turns } = setUpTrigger({ coalesceMs: 100, maxWaitMs: 250 })
    createTrigger().subscribe()
    await clock.advance(300)
    for (const id of ['a', 'b', 'c', 'd']) {
      complete(id)
      await clock.advance(80)
    }
    expect(turns).toMatchObject([{ at: 1_550, taskIds: ['a', 'b', 'c', 'd'] }])
  })

  it('A6: ends of other owners, and results that are delivered meanwhile, do not extend the wait', async () => {
    const { clock, complete, createTrigger, turns, manager } = setUpTrigger({ coalesceMs: 100 })
    createTrigger().subscribe()
    await clock.advance(100)
    complete('a')
    complete('b')
    await clock.advance(80)
    complete('c', 'sub')
    manager.markNotified('b')
    await clock.advance(20)
    expect(turns).toMatchObject([{ taskIds: ['a'] }])
  })

  it('A6: a coalesceMs above the default maxWaitMs extends it', async () => {
    const { clock, complete, createTrigger, turns } = setUpTrigger({ coalesceMs: 9_000 })
    complete('a')
    createTrigger().subscribe()
    await clock.advance(20_000)
    expect(turns).toMatchObject([{ at: 10_000 }])
  })

  it('A6: what ends during a delivery gets the next one', async () => {
    const { clock, complete, createTrigger, turns } = setUpTrigger()
    complete('a')
    createTrigger().subscribe()
    await clock.advance(0)
    complete('b')
    await clock.advance(5_000)
    expect(turns).toHaveLength(1)
    turns[0]!.accept()
    await clock.advance(0)
    expect(turns).toMatchObject([{ taskIds: ['a'] }, { taskIds: ['b'] }])
  })

  it('A6: backs off up to the maximum, delivers new ends after the retry, and starts over after a success', async () => {
    const { clock, complete, createTrigger, turns } = setUpTrigger({ retry: { initialMs: 100, maxMs: 300 } })
    complete('a')
    createTrigger().subscribe()
    await clock.advance(0)
    for (const wait of [100, 200, 300, 300]) {
      turns.at(-1)!.refuse()
      const count = turns.length
      await clock.advance(wait - 1)
      expect(turns).toHaveLength(count)
      await clock.advance(1)
      expect(turns).toHaveLength(count + 1)
    }
    turns.at(-1)!.refuse()
    await clock.advance(50)
    complete('b')
    await clock.advance(249)
    expect(turns).toHaveLength(5)
    await clock.advance(1)
    expect(turns.at(-1)!.taskIds).toEqual(['a'])
    turns.at(-1)!.accept()
    await clock.advance(0)
    expect(turns.at(-1)!.taskIds).toEqual(['b'])
    turns.at(-1)!.accept()
    complete('c')
    await clock.advance(0)
    turns.at(-1)!.refuse()
    await clock.advance(100)
    expect(turns.map(({ taskIds }) => taskIds).slice(-2)).toEqual([['c'], ['c']])
  })

  it('A6: an idle edge fires the retry', async () => {
    const { clock, complete, createTrigger, turns } = setUpTrigger()
    complete('a')
    const trigger = createTrigger()
    trigger.subscribe()
    await clock.advance(0)
    turns[0]!.refuse()
    await clock.advance(10)
    expect(turns).toHaveLength(1)
    trigger.notifyIdle()
    await clock.advance(0)
    expect(turns).toHaveLength(2)
  })

  it('is retried when its reminder throws', async () => {
    const { clock, complete, createTrigger, turns, onError } = setUpTrigger({
      reminders: (reminders) => {
        const leaseReminder = vi.fn(reminders.leaseReminder.bind(reminders))
        return {
          leaseReminder: leaseReminder.mockImplementationOnce(() => {
            throw new Error('no words')
          }),
        }
      },
    })
    complete('a')
    createTrigger().subscribe()
    await clock.advance(0)
    expect(onError).toHaveBeenCalledExactlyOnceWith(new Error('no words'), { source: 'delivery', owner: 'main' })
    await clock.advance(1_000)
    expect(turns).toHaveLength(1)
  })

  it('is retried, but not at once, when its reminder is undefined', async () => {
    const leaseReminder = vi.fn(() => undefined)
    const { clock, complete, createTrigger, onError } = setUpTrigger({ reminders: () => ({ leaseReminder }) })
    complete('a')
    createTrigger().subscribe()
    await clock.advance(2_999)
    expect(leaseReminder).toHaveBeenCalledTimes(2)
    await clock.advance(1)
    expect(leaseReminder).toHaveBeenCalledTimes(3)
    expect(onError).not.toHaveBeenCalled()
  })

  it('changes nothing when onError throws', async () => {
    const onError = vi.fn(() => {
      throw new Error('onError is broken')
    })
    const { clock, complete, createTrigger, turns } = setUpTrigger({ onError })
    complete('a')
    createTrigger().subscribe()
    await clock.advance(0)
    turns[0]!.refuse()
    await clock.advance(1_000)
    expect(onError).toHaveBeenCalledTimes(1)
    expect(turns).toHaveLength(2)
  })
})

describe('a delivery that takes too long', () => {
  async function setUpExpired() {
    const host = setUpTrigger({ deliveryTimeoutMs: 3_000 })
    host.complete('a')
    host.createTrigger().subscribe()
    await host.clock.advance(0)
    await host.clock.advance(2_999)
    expect(host.turns[0]!.signal.aborted).toBe(false)
    await host.clock.advance(1)
    return host
  }

  it('A5: is given up: its signal aborts, its tasks are owed again, onError is called', async () => {
    const { turns, deliveryOf, onError } = await setUpExpired()
    expect(turns[0]!.signal.reason).toMatchObject({ name: 'TimeoutError' })
    expect(deliveryOf('a')).toBe('owed')
    expect(onError).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ message: expect.stringContaining('3000 ms') as string }),
      { source: 'delivery-timeout', owner: 'main' },
    )
  })

  it('A5: that is accepted late is acknowledged, and not retried', async () => {
    const { clock, turns, deliveryOf } = await setUpExpired()
    turns[0]!.accept()
    await clock.advance(60_000)
    expect(deliveryOf('a')).toBe('delivered')
    expect(turns).toHaveLength(1)
  })

  it('A5: that is refused late changes nothing, and is not reported again', async () => {
    const { clock, turns, deliveryOf, onError } = await setUpExpired()
    await clock.advance(1_000)
    turns[0]!.refuse(new Error('late'))
    await clock.advance(0)
    expect(deliveryOf('a')).toBe('leased')
    expect(turns).toHaveLength(2)
    expect(onError).toHaveBeenCalledTimes(1)
  })

  it('A5: that is accepted during its retry needs no other acceptance', async () => {
    const { clock, turns, deliveryOf } = await setUpExpired()
    await clock.advance(1_000)
    turns[0]!.accept()
    await clock.advance(0)
    turns[1]!.refuse()
    await clock.advance(60_000)
    expect(deliveryOf('a')).toBe('delivered')
    expect(turns).toHaveLength(2)
  })

  it('A2: is reported outside the transition: onError may register tasks and subscribe', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
    const onError = vi.fn(() => {
      host.register('b')
      host.createTrigger({ owner: 'sub' }).subscribe()
    })
    const host = setUpTrigger({ deliveryTimeoutMs: 3_000, onError })
    host.complete('a')
    host.createTrigger().subscribe()
    await host.clock.advance(3_000)
    expect(onError).toHaveBeenCalledTimes(1)
    expect(host.manager.getTask('b')?.status).toBe('running')
    // XState warns about actors that are created inside an action.
    expect(warn).not.toHaveBeenCalled()
    warn.mockRestore()
  })

  it('A2: reports an abort listener that throws', async () => {
    const { clock, complete, createTrigger, onError } = setUpTrigger({
      deliveryTimeoutMs: 3_000,
      turn: (_, { signal }) => {
        signal.addEventListener('abort', () => {
          throw new Error('listener is broken')
        })
        return new Promise(() => undefined)
      },
    })
    complete('a')
    createTrigger().subscribe()
    await clock.advance(3_000)
    expect(onError).toHaveBeenCalledWith(
      new Error('listener is broken'),
      expect.objectContaining({ source: 'abort-listener' }),
    )
  })
})

describe('a busy agent', () => {
  it('A6: with a function is polled every pollMs, and only while something is owed', async () => {
    const isAgentBusy = vi.fn(() => true)
    const { clock, complete, createTrigger, turns } = setUpTrigger({ isAgentBusy, pollMs: 200 })
    createTrigger().subscribe()
    await clock.advance(10_000)
    expect(isAgentBusy).not.toHaveBeenCalled()
    expect(clock.pending).toBe(0)
    complete('a')
    await clock.advance(1_000)
    expect(isAgentBusy).toHaveBeenCalledTimes(6)
    complete('b')
    isAgentBusy.mockReturnValue(false)
    await clock.advance(200)
    expect(turns).toMatchObject([{ taskIds: ['a', 'b'] }])
  })

  it('A6: receives what it is owed at once when notifyIdle is called', async () => {
    const isAgentBusy = vi.fn(() => true)
    const { clock, complete, createTrigger, turns } = setUpTrigger({ isAgentBusy })
    const trigger = createTrigger()
    trigger.subscribe()
    complete('a')
    await clock.advance(500)
    isAgentBusy.mockReturnValue(false)
    trigger.notifyIdle()
    await clock.advance(0)
    expect(turns).toHaveLength(1)
  })

  it('A6: with an Observable is not polled, and receives what it is owed when it becomes idle', async () => {
    const busy$ = new BehaviorSubject(true)
    const { clock, complete, createTrigger, turns } = setUpTrigger({ isAgentBusy: busy$ })
    createTrigger().subscribe()
    complete('a')
    await clock.advance(100_000)
    expect(turns).toHaveLength(0)
    expect(clock.pending).toBe(0)
    busy$.next(false)
    await clock.advance(0)
    expect(turns).toMatchObject([{ taskIds: ['a'] }])
  })

  it('A6: counts as busy when its function throws, and the error is reported', async () => {
    const isAgentBusy = vi.fn((): boolean => {
      throw new Error('cannot tell')
    })
    const { clock, complete, createTrigger, turns, onError } = setUpTrigger({ isAgentBusy })
    createTrigger().subscribe()
    complete('a')
    await clock.advance(0)
    expect(turns).toHaveLength(0)
    expect(onError).toHaveBeenCalledExactlyOnceWith(new Error('cannot tell'), { source: 'busy', owner: 'main' })
    isAgentBusy.mockReturnValue(false)
    await clock.advance(1_000)
    expect(turns).toHaveLength(1)
  })
})

describe('several triggers', () => {
  it('A6: of one owner have one delivery in flight, and the other takes over when the first fails', async () => {
    const { clock, complete, createTrigger, turns } = setUpTrigger()
    complete('a')
    const unsubscribe = createTrigger().subscribe()
    createTrigger().subscribe()
    await clock.advance(0)
    expect(turns).toHaveLength(1)
    complete('b')
    await clock.advance(0)
    expect(turns).toHaveLength(1)
    unsubscribe()
    turns[0]!.refuse()
    await clock.advance(0)
    expect(turns).toMatchObject([{ taskIds: ['a'] }, { taskIds: ['a'] }])
  })

  it('A6: of different owners do not wait for each other, and deliver only to their own', async () => {
    const { clock, complete, createTrigger, turns } = setUpTrigger()
    createTrigger().subscribe()
    createTrigger({ owner: 'sub' }).subscribe()
    complete('a')
    complete('b', 'sub')
    await clock.advance(0)
    expect(turns.map(({ taskIds }) => taskIds)).toEqual(expect.arrayContaining([['a'], ['b']]))
    expect(turns).toHaveLength(2)
  })

  it('A6: the heir receives what another owner was owed', async () => {
    const { clock, complete, createTrigger, turns, manager } = setUpTrigger()
    complete('b', 'sub')
    createTrigger().subscribe()
    await clock.advance(0)
    expect(turns).toHaveLength(0)
    manager.releaseOwner('sub', { to: 'main' })
    await clock.advance(0)
    expect(turns).toMatchObject([{ taskIds: ['b'] }])
  })
})

describe('a subscription', () => {
  it('A9: that has ended calls no callback, and ending it again does nothing', async () => {
    const isAgentBusy = vi.fn(() => true)
    const { clock, complete, createTrigger, turns } = setUpTrigger({ isAgentBusy })
    const trigger = createTrigger()
    const unsubscribe = trigger.subscribe()
    trigger.subscribe()
    unsubscribe()
    unsubscribe()
    complete('a')
    await clock.advance(0)
    expect(isAgentBusy).toHaveBeenCalledTimes(1)

    const ended = createTrigger({ owner: 'sub' }).subscribe()
    complete('b', 'sub')
    await clock.advance(0)
    expect(isAgentBusy).toHaveBeenCalledTimes(2)
    ended()
    isAgentBusy.mockReturnValue(false)
    await clock.advance(10_000)
    expect(turns).toMatchObject([{ taskIds: ['a'] }])
  })

  it('A9: that has ended lets a delivery in flight be acknowledged, and reports nothing', async () => {
    const { clock, complete, createTrigger, turns, deliveryOf, onError } = setUpTrigger()
    complete('a')
    const trigger = createTrigger()
    const unsubscribe = trigger.subscribe()
    await clock.advance(0)
    complete('b')
    unsubscribe()
    turns[0]!.accept()
    await clock.advance(60_000)
    expect([deliveryOf('a'), deliveryOf('b')]).toEqual(['delivered', 'owed'])

    const again = trigger.subscribe()
    await clock.advance(0)
    again()
    turns[1]!.refuse(new Error('no'))
    await clock.advance(60_000)
    expect(deliveryOf('b')).toBe('owed')
    expect(onError).not.toHaveBeenCalled()
    expect(clock.pending).toBe(0)
  })

  it('A6: that starts again delivers what is owed, and continues the delivery in flight', async () => {
    const { clock, complete, createTrigger, turns } = setUpTrigger()
    complete('a')
    const trigger = createTrigger()
    trigger.subscribe()()
    await clock.advance(0)
    expect(turns).toHaveLength(0)
    const unsubscribe = trigger.subscribe()
    await clock.advance(0)
    unsubscribe()
    complete('b')
    trigger.subscribe()
    await clock.advance(5_000)
    expect(turns).toMatchObject([{ taskIds: ['a'] }])
    turns[0]!.accept()
    await clock.advance(0)
    expect(turns).toMatchObject([{ taskIds: ['a'] }, { taskIds: ['b'] }])
  })

  it('A6: that starts again during a delivery backs off when the delivery is refused', async () => {
    const { clock, complete, createTrigger, turns, onError } = setUpTrigger()
    complete('a')
    const trigger = createTrigger()
    const unsubscribe = trigger.subscribe()
    await clock.advance(0)
    unsubscribe()
    trigger.subscribe()
    turns[0]!.refuse()
    await clock.advance(999)
    expect(onError).toHaveBeenCalledTimes(1)
    expect(turns).toHaveLength(1)
    await clock.advance(1)
    expect(turns).toHaveLength(2)
  })

  it('makes its owner a push subscriber: what it reads itself remains owed', async () => {
    const { complete, createTrigger, deliveryOf, manager } = setUpTrigger()
    complete('a')
    complete('b')
    const unsubscribe = createTrigger().subscribe()
    const check = createCheckAsyncTasksTool({ getAsyncTaskManager: () => manager })
    await check.execute({ task_id: 'a' })
    expect(deliveryOf('a')).toBe('owed')
    unsubscribe()
    await check.execute({ task_id: 'b' })
    expect(deliveryOf('b')).toBe('delivered')
  })

  it('A6: new callbacks replace the old ones, and what is owed is checked again', async () => {
    const busy$ = new BehaviorSubject(true)
    const { clock, complete, createTrigger, turns, startTurn } = setUpTrigger({ isAgentBusy: busy$ })
    const trigger = createTrigger()
    trigger.subscribe()
    complete('a')
    await clock.advance(5_000)
    const turn = vi.fn(startTurn)
    trigger.updateCallbacks(() => false, turn)
    await clock.advance(0)
    expect(turn).toHaveBeenCalledTimes(1)
    expect(turns).toHaveLength(1)
    expect(busy$.observed).toBe(false)
  })

  it('A6: a function that replaces an Observable is polled until its agent is idle', async () => {
    const isAgentBusy = vi.fn(() => true)
    const { clock, complete, createTrigger, turns, startTurn } = setUpTrigger({
      isAgentBusy: new BehaviorSubject(false),
    })
    const trigger = createTrigger()
    const unsubscribe = trigger.subscribe()
    complete('a')
    await clock.advance(0)
    unsubscribe()
    trigger.updateCallbacks(isAgentBusy, startTurn)
    trigger.subscribe()
    complete('b')
    turns[0]!.accept()
    await clock.advance(0)
    isAgentBusy.mockReturnValue(false)
    await clock.advance(1_000)
    expect(turns).toMatchObject([{ taskIds: ['a'] }, { taskIds: ['b'] }])
  })
})

describe('dispose', () => {
  it('A9: aborts the delivery in flight, stops every timer, and no late outcome changes anything', async () => {
    const { clock, complete, createTrigger, turns, deliveryOf, manager, onError } = setUpTrigger({
      deliveryTimeoutMs: 9_000,
    })
    complete('a')
    createTrigger().subscribe()
    await clock.advance(0)
    await manager.dispose()
    expect(turns[0]!.signal.aborted).toBe(true)
    expect(clock.pending).toBe(0)
    const before = deliveryOf('a')
    turns[0]!.accept()
    await clock.advance(60_000)
    expect(deliveryOf('a')).toBe(before)
    expect(onError).not.toHaveBeenCalled()
  })

  it('A9: ends a delivery in flight whose subscription has ended', async () => {
    const { clock, complete, createTrigger, turns, manager } = setUpTrigger({ deliveryTimeoutMs: 9_000 })
    complete('a')
    const unsubscribe = createTrigger().subscribe()
    await clock.advance(0)
    unsubscribe()
    await manager.dispose()
    expect(turns[0]!.signal.aborted).toBe(true)
    expect(clock.pending).toBe(0)
  })

  it('A9: leaves a trigger whose methods have no effect', async () => {
    const isAgentBusy = vi.fn(() => false)
    const { clock, complete, createTrigger, turns, manager, startTurn } = setUpTrigger({ isAgentBusy })
    complete('a')
    const trigger = createTrigger()
    await manager.dispose()
    const unsubscribe = trigger.subscribe()
    trigger.notifyIdle()
    trigger.updateCallbacks(isAgentBusy, startTurn)
    await clock.advance(60_000)
    unsubscribe()
    expect(turns).toHaveLength(0)
    expect(isAgentBusy).not.toHaveBeenCalled()
  })

  it('A9: a subscription that is made during disposal receives nothing', async () => {
    let listeners = 0
    const busy$ = new Observable<boolean>(() => {
      listeners += 1
      return () => (listeners -= 1)
    })
    const { clock, complete, createTrigger, manager } = setUpTrigger({
      turn: (_, { signal }) => {
        signal.addEventListener('abort', () => late.subscribe())
        return new Promise(() => undefined)
      },
    })
    const late = createTrigger({ owner: 'sub' })
    late.updateCallbacks(busy$, () => undefined)
    complete('a')
    createTrigger().subscribe()
    await clock.advance(0)
    await manager.dispose()
    expect(listeners).toBe(0)
    expect(clock.pending).toBe(0)
  })
})

describe('options', () => {
  it.each([
    ['coalesceMs', 0, { coalesceMs: -1 }],
    ['coalesceMs', 0, { coalesceMs: Number.NaN }],
    ['maxWaitMs', 0, { maxWaitMs: -1 }],
    ['retry.initialMs', 1, { retry: { initialMs: 0 } }],
    ['retry.maxMs', 1, { retry: { maxMs: Infinity } }],
    ['deliveryTimeoutMs', 1, { deliveryTimeoutMs: 0 }],
    ['pollMs', 1, { pollMs: 0 }],
  ])('a %s that is not at least %d is refused by name', (name, least, options) => {
    const { createTrigger } = setUpTrigger()
    expect(() => createTrigger(options)).toThrow(InvalidSettingError)
    expect(() => createTrigger(options)).toThrow(name)
    expect(() => createTrigger(options)).toThrow(`a number of milliseconds >= ${least}`)
  })

  it('may be at the minimum of their ranges', () => {
    const { createTrigger } = setUpTrigger()
    expect(() =>
      createTrigger({
        coalesceMs: 0,
        maxWaitMs: 0,
        retry: { initialMs: 1, maxMs: 1 },
        deliveryTimeoutMs: 1,
        pollMs: 1,
      }),
    ).not.toThrow()
  })
})

describe('what is left of a trigger', () => {
  it('A9: of two subscriptions, the one that stays delivers, and with the last one all of it ends', async () => {
    const { clock, complete, createTrigger, turns, manager } = setUpTrigger()
    const trigger = createTrigger()
    const ends = [trigger.subscribe(), trigger.subscribe()]
    ends[0]!()
    for (const [index, id] of ['a', 'b'].entries()) {
      complete(id)
      await clock.advance(0)
      expect(turns[index]?.taskIds).toEqual([id])
      turns[index]!.accept()
      await clock.advance(0)
    }
    expect([...manager.registry.use(deliveryStates).owners()]).toEqual(['main'])
    ends[1]!()
    complete('c')
    await clock.advance(60_000)
    expect([turns.length, clock.pending, [...manager.registry.use(deliveryStates).owners()]]).toEqual([2, 0, []])
  })

  it.each(['dormant', 'gathering', 'polling', 'delivering', 'backing off'])(
    'A9: that was ended while it was %s has no timer, and none either when its manager is disposed first',
    async (state) => {
      for (const how of ['unsubscribed', 'disposed']) {
        let isBusy = state === 'polling'
        const { clock, complete, createTrigger, turns, manager, deliveryOf } = setUpTrigger({
          isAgentBusy: () => isBusy,
          coalesceMs: state === 'gathering' ? 100 : 0,
          deliveryTimeoutMs: 60_000,
        })
        const end = createTrigger().subscribe()
        if (state !== 'dormant') complete('a')
        await clock.advance(state === 'gathering' ? 50 : 0)
        if (state === 'backing off') {
          turns[0]!.refuse()
          await clock.advance(0)
        }
        expect([how, clock.pending > 0]).toEqual([how, state !== 'dormant'])
        if (how === 'disposed') await manager.dispose()
        end()
        isBusy = false
        if (state === 'delivering') {
          turns[0]!.accept()
          await clock.advance(0)
          if (how === 'unsubscribed') expect(deliveryOf('a')).toBe('delivered')
        }
        expect([how, clock.pending, [...manager.registry.use(deliveryStates).owners()]]).toEqual([how, 0, []])
        await clock.advance(120_000)
        expect(turns).toHaveLength(state === 'delivering' || state === 'backing off' ? 1 : 0)
      }
    },
  )
})

it('A6: that was held up by a lease of its host delivers as soon as the lease ends', async () => {
  const { clock, complete, createTrigger, turns, reminders } = setUpTrigger({ pollMs: 10_000 })
  complete('a')
  const lease = reminders.leaseReminder({ exclusive: true })
  onTestFinished(createTrigger().subscribe())
  complete('b')
  await clock.advance(0)
  expect(turns).toHaveLength(0)
  lease?.release()
  await clock.advance(0)
  expect(turns).toMatchObject([{ taskIds: ['a', 'b'] }])
})

it('A6: that was held up by a lease of its host delivers the rest as soon as the lease is acknowledged', async () => {
  const { clock, complete, createTrigger, turns, reminders } = setUpTrigger({ pollMs: 10_000 })
  complete('a')
  const lease = reminders.leaseReminder({ exclusive: true })
  onTestFinished(createTrigger().subscribe())
  complete('b')
  await clock.advance(0)
  lease?.acknowledge()
  await clock.advance(0)
  expect(turns).toMatchObject([{ taskIds: ['b'], at: 1000 }])
})

it('A6: delivers as soon as a promise says that the agent is idle, before it is asked again', async () => {
  let answer: (isBusy: boolean) => void = () => undefined
  const isAgentBusy = (): Promise<boolean> => new Promise((resolve) => (answer = resolve))
  const { clock, complete, createTrigger, turns } = setUpTrigger({ isAgentBusy, pollMs: 10_000 })
  onTestFinished(createTrigger().subscribe())
  complete('a')
  await clock.advance(500)
  expect(turns).toHaveLength(0)
  answer(false)
  await clock.advance(0)
  expect(turns).toMatchObject([{ taskIds: ['a'], at: 1500 }])
})

it('a turn that takes too long is told so by its signal', async () => {
  const { clock, complete, createTrigger, turns } = setUpTrigger({ deliveryTimeoutMs: 1000 })
  onTestFinished(createTrigger().subscribe())
  complete('a')
  await clock.advance(999)
  expect(turns[0]?.signal.aborted).toBe(false)
  await clock.advance(1)
  expect(turns[0]?.signal.reason).toMatchObject({ name: 'TimeoutError', message: 'The delivery was abandoned.' })
})

describe('a trigger asks for what it needs', () => {
  it('A6: not whether the agent is busy, while another message to its owner is in flight', async () => {
    const isAgentBusy = vi.fn(() => false)
    const { clock, complete, createTrigger, turns, reminders } = setUpTrigger({ isAgentBusy })
    complete('a')
    const lease = reminders.leaseReminder({ exclusive: true })
    onTestFinished(createTrigger().subscribe())
    complete('b')
    await clock.advance(5_000)
    expect(isAgentBusy).not.toHaveBeenCalled()
    lease?.acknowledge()
    await clock.advance(0)
    expect(isAgentBusy).toHaveBeenCalledOnce()
    expect(turns).toMatchObject([{ taskIds: ['b'] }])
  })

  it('A9: for no turn, when its host unsubscribes while it is asked whether it is busy', async () => {
    const ends: (() => void)[] = []
    const isAgentBusy = (): boolean => {
      for (const end of ends) end()
      return false
    }
    const { clock, complete, createTrigger, turns, deliveryOf } = setUpTrigger({ isAgentBusy })
    ends.push(createTrigger().subscribe())
    complete('a')
    await clock.advance(60_000)
    expect([turns.length, deliveryOf('a'), clock.pending]).toEqual([0, 'owed', 0])
  })

  it('A6: for a turn again, when its host unsubscribes and subscribes while it is asked whether it is busy', async () => {
    const subscribe: (() => void)[] = []
    const isAgentBusy = (): boolean => {
      const isFirst = subscribe.length > 0
      for (const again of subscribe.splice(0)) again()
      return isFirst
    }
    const { clock, complete, createTrigger, turns } = setUpTrigger({ isAgentBusy })
    const trigger = createTrigger()
    const end = trigger.subscribe()
    subscribe.push(() => {
      end()
      onTestFinished(trigger.subscribe())
    })
    complete('a')
    await clock.advance(0)
    await clock.advance(5_000)
    expect(turns).toMatchObject([{ taskIds: ['a'] }])
  })

  it('A6: whether the agent is busy once a function replaces an Observable, until it is not', async () => {
    const { clock, complete, createTrigger, turns, startTurn } = setUpTrigger({
      isAgentBusy: new BehaviorSubject(true),
    })
    const trigger = createTrigger()
    onTestFinished(trigger.subscribe())
    complete('a')
    await clock.advance(0)
    let isBusy = true
    const isAgentBusy = vi.fn(() => isBusy)
    trigger.updateCallbacks(isAgentBusy, startTurn)
    await clock.advance(1_500)
    expect(isAgentBusy).toHaveBeenCalledTimes(2)
    isBusy = false
    await clock.advance(500)
    expect(turns).toMatchObject([{ taskIds: ['a'], at: 3_000 }])
  })

  it('A6: every second by default, while the agent is busy', async () => {
    const isAgentBusy = vi.fn(() => true)
    const { clock, complete, createTrigger } = setUpTrigger({ isAgentBusy })
    onTestFinished(createTrigger().subscribe())
    complete('a')
    await clock.advance(0)
    expect(isAgentBusy).toHaveBeenCalledTimes(1)
    await clock.advance(999)
    expect(isAgentBusy).toHaveBeenCalledTimes(1)
    await clock.advance(1)
    expect(isAgentBusy).toHaveBeenCalledTimes(2)
  })

  it('A6: for a turn after five seconds of ends by default, and after a minute at most when turns fail', async () => {
    const { clock, complete, createTrigger, turns } = setUpTrigger({ coalesceMs: 1_000 })
    onTestFinished(createTrigger().subscribe())
    await clock.advance(1_000)
    for (let nth = 0; nth < 6; nth += 1) {
      complete(`t${nth}`)
      await clock.advance(900)
    }
    expect(turns.map(({ at }) => at)).toEqual([2_000 + 5_000])
    for (let nth = 0; nth < 9; nth += 1) {
      const before = turns.length
      turns[before - 1]!.refuse(new Error('no'))
      await clock.advance(60_000)
      await clock.advance(1_000)
      expect(turns.length).toBe(before + 1)
    }
    const [last, beforeLast] = [turns.at(-1)!, turns.at(-2)!]
    expect(last.at - beforeLast.at).toBe(61_000)
  })

  it('A6: for the turn of new callbacks, also when it got them while it was not subscribed and its turn went on', async () => {
    const busy$ = new BehaviorSubject(false)
    const { clock, complete, createTrigger, turns, startTurn } = setUpTrigger({ isAgentBusy: busy$ })
    const trigger = createTrigger()
    const end = trigger.subscribe()
    complete('a')
    await clock.advance(0)
    end()
    let isBusy = true
    trigger.updateCallbacks(() => isBusy, startTurn)
    onTestFinished(trigger.subscribe())
    complete('b')
    turns[0]!.accept()
    await clock.advance(0)
    isBusy = false
    await clock.advance(1_000)
    expect(turns).toMatchObject([{ taskIds: ['a'] }, { taskIds: ['b'] }])
  })
})

describe('a trigger leaves nothing behind', () => {
  it.each(['unsubscribed', 'disposed'])(
    'A9: when it is %s while the agent has not answered whether it is busy',
    async (how) => {
      const onAnswer: ((isBusy: boolean) => void)[] = []
      const isAgentBusy = (): Promise<boolean> => new Promise((resolve) => onAnswer.push(resolve))
      const { clock, complete, createTrigger, turns, manager, onError } = setUpTrigger({ isAgentBusy })
      const end = createTrigger().subscribe()
      complete('a')
      await clock.advance(0)
      expect(onAnswer).toHaveLength(1)
      if (how === 'disposed') await manager.dispose()
      else end()
      expect(clock.pending).toBe(0)
      for (const answer of onAnswer) answer(false)
      await clock.advance(60_000)
      expect([turns.length, onAnswer.length, onError.mock.calls.length]).toEqual([0, 1, 0])
      end()
    },
  )

  it.each(['unsubscribed', 'disposed'])('A9: no subscription of its own when it is %s', async (how) => {
    const busy$ = new BehaviorSubject(true)
    const { createTrigger, manager } = setUpTrigger({ isAgentBusy: busy$ })
    const { registry } = manager
    const end = createTrigger().subscribe()
    expect([busy$.observed, registry.use(pushSubscribers).has('main')]).toEqual([true, true])
    if (how === 'disposed') await manager.dispose()
    else end()
    expect([busy$.observed, registry.notifications$.observed]).toEqual([false, false])
    end()
    expect(registry.use(pushSubscribers).has('main')).toBe(false)
  })

  it('A5: what a turn has that is given up is owed again before its signal aborts', async () => {
    const { clock, complete, createTrigger, turns, deliveryOf } = setUpTrigger({ deliveryTimeoutMs: 1_000 })
    onTestFinished(createTrigger().subscribe())
    complete('a')
    await clock.advance(0)
    const seen: unknown[] = []
    turns[0]!.signal.addEventListener('abort', () => seen.push(deliveryOf('a')))
    await clock.advance(1_000)
    expect(seen).toEqual(['owed'])
  })

  it('A5: a delivery that was accepted in time is not given up later, nor one of the next turn by its limit', async () => {
    const { clock, complete, createTrigger, turns, onError } = setUpTrigger({ deliveryTimeoutMs: 1_000 })
    onTestFinished(createTrigger().subscribe())
    complete('a')
    await clock.advance(0)
    await clock.advance(600)
    turns[0]!.accept()
    complete('b')
    await clock.advance(0)
    expect(turns).toHaveLength(2)
    await clock.advance(999)
    expect(turns.map(({ signal }) => signal.aborted)).toEqual([false, false])
    await clock.advance(1)
    expect(turns.map(({ signal }) => signal.aborted)).toEqual([false, true])
    expect(onError).toHaveBeenCalledOnce()
  })
})
