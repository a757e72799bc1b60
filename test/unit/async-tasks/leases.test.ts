/** Leases: what a message carries is in no other message until it is accepted or refused. */
import { describe, expect, it } from 'vitest'
import { AsyncTaskManager } from '../../../src/async-tasks/manager.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

function setUp(...ids: string[]) {
  const clock = createManualClock(1_000)
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
  const complete = (id: string, owner = 'main'): void => {
    manager.registerTask({ id, owner, subagentName: 'helper', goalPrompt: 'help' })
    manager.completeTask(id, { final_message: id })
  }
  for (const id of ids) complete(id)
  const deliveryOf = (id: string): string | undefined => manager.getTask(id)?.delivery
  const pending = (): string[] => manager.getPendingNotifications().map(({ id }) => id)
  return { clock, manager, complete, deliveryOf, pending }
}

describe('a lease', () => {
  it('A6: holds what was owed when it was taken, in the order in which it ended, and nothing that ends later', () => {
    const { manager, complete, pending } = setUp()
    for (const id of ['b', 'a']) manager.registerTask({ id, subagentName: 'helper', goalPrompt: 'help' })
    manager.failTask('a', 'no luck')
    manager.completeTask('b', {})
    const lease = manager.lease()
    complete('c')
    expect(lease?.tasks).toMatchObject([
      { id: 'a', status: 'failed', delivery: 'leased' },
      { id: 'b', status: 'completed', delivery: 'leased' },
    ])
    expect(pending()).toEqual(['c'])
  })

  it('is undefined when nothing is owed', () => {
    const { manager } = setUp()
    expect(manager.lease()).toBeUndefined()
    manager.registerTask({ id: 'a', subagentName: 'helper', goalPrompt: 'help' })
    expect(manager.lease()).toBeUndefined()
  })

  it('is frozen, and so are its tasks', () => {
    const lease = setUp('a').manager.lease()
    expect(Object.isFrozen(lease)).toBe(true)
    expect(Object.isFrozen(lease?.tasks)).toBe(true)
  })

  it('A5: that is acknowledged delivers what it holds, and no more', () => {
    const { manager, complete, clock, deliveryOf } = setUp('a')
    const lease = manager.lease()
    complete('b')
    clock.advance(5)
    lease?.acknowledge()
    expect(manager.getTask('a')).toMatchObject({ delivery: 'delivered', notifiedAt: 1_005 })
    expect(deliveryOf('b')).toBe('owed')
  })

  it('A5: that is released makes what it holds owed again, once', () => {
    const { manager, deliveryOf, pending } = setUp('a')
    const lease = manager.lease()
    lease?.release()
    expect(deliveryOf('a')).toBe('owed')
    const next = manager.lease()
    lease?.release()
    expect(deliveryOf('a')).toBe('leased')
    next?.acknowledge()
    lease?.release()
    expect(deliveryOf('a')).toBe('delivered')
    expect(pending()).toEqual([])
  })

  it('A5: that is acknowledged twice stays acknowledged', () => {
    const { manager, clock } = setUp('a')
    const lease = manager.lease()
    lease?.acknowledge()
    clock.advance(5)
    lease?.acknowledge()
    expect(manager.getTask('a')).toMatchObject({ delivery: 'delivered', notifiedAt: 1_000 })
  })

  it('A5: that is acknowledged after its release delivers what is still owed', () => {
    const { manager, deliveryOf } = setUp('a')
    const lease = manager.lease()
    lease?.release()
    lease?.acknowledge()
    expect(deliveryOf('a')).toBe('delivered')
  })

  it('A5: that is acknowledged after its release keeps what another lease holds by then from being owed again', () => {
    const { manager, complete, deliveryOf } = setUp('a')
    const lease = manager.lease()
    lease?.release()
    complete('b')
    const next = manager.lease()
    lease?.acknowledge()
    expect(deliveryOf('a')).toBe('leased')
    next?.release()
    expect([deliveryOf('a'), deliveryOf('b')]).toEqual(['delivered', 'owed'])
  })

  it('A5: no longer holds what the host marks as notified', () => {
    const { manager, deliveryOf } = setUp('a', 'b')
    const lease = manager.lease()
    manager.markNotified('a')
    expect(deliveryOf('a')).toBe('delivered')
    lease?.release()
    expect([deliveryOf('a'), deliveryOf('b')]).toEqual(['delivered', 'owed'])
  })

  it('A6: of one owner holds nothing of another', () => {
    const { manager, complete } = setUp('a')
    complete('b', 'sub')
    expect(manager.lease({ owner: 'sub' })?.tasks).toMatchObject([{ id: 'b' }])
    expect(manager.lease()?.tasks).toMatchObject([{ id: 'a' }])
  })

  it('A6: that is exclusive excludes other exclusive leases of its owner until it ends, but no plain ones', () => {
    const { manager, complete } = setUp('a')
    const lease = manager.lease({ owner: 'main', exclusive: true })
    complete('b')
    complete('c', 'sub')
    expect(manager.lease({ owner: 'main', exclusive: true })).toBeUndefined()
    expect(manager.lease({ owner: 'sub', exclusive: true })).toBeDefined()
    manager.lease({ owner: 'main' })?.release()
    lease?.release()
    const next = manager.lease({ owner: 'main', exclusive: true })
    expect(next?.tasks).toMatchObject([{ id: 'a' }, { id: 'b' }])
    lease?.release()
    complete('d')
    expect(manager.lease({ owner: 'main', exclusive: true })).toBeUndefined()
    next?.acknowledge()
    expect(manager.lease({ owner: 'main', exclusive: true })?.tasks).toMatchObject([{ id: 'd' }])
  })

  it('A5: releases what it holds to the heir of its owner, or to no owner', () => {
    const inherited = setUp('a')
    const lease = inherited.manager.lease({ owner: 'main' })
    inherited.manager.releaseOwner('main', { to: 'sub' })
    lease?.release()
    expect(inherited.manager.getTask('a')).toMatchObject({ owner: 'sub', delivery: 'owed' })

    const dropped = setUp('a')
    const lost = dropped.manager.lease({ owner: 'main' })
    dropped.manager.releaseOwner('main')
    lost?.release()
    expect(dropped.deliveryOf('a')).toBe('none')
  })

  it('A9: that ends after dispose changes nothing', async () => {
    const { manager, deliveryOf } = setUp('a')
    const lease = manager.lease()
    await manager.dispose()
    lease?.acknowledge()
    lease?.release()
    expect(deliveryOf('a')).toBe('leased')
    expect(manager.lease()).toBeUndefined()
  })
})
