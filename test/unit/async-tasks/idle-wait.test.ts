/** onIdle resolves when nothing runs or is owed, and says when that may never be. */
import { describe, expect, it } from 'vitest'
import { setUpHost, settle } from '../tools/tool-host.js'
import { pushSubscribers } from '../../../src/features/delivery/push-subscribers.js'

function setUp() {
  const host = setUpHost()
  let isResolved = false
  const wait = (owner?: string) => void host.manager.onIdle(owner).then(() => (isResolved = true))
  const isOver = async () => {
    await settle()
    return isResolved
  }
  return { ...host, wait, isOver }
}

describe('a wait for idleness', () => {
  it('reports, once, results that nothing delivers', async () => {
    const { clock, manager, register, onError, wait, isOver } = setUp()
    register('a')
    wait()
    clock.advance(10_000)
    expect(onError).not.toHaveBeenCalled()
    manager.completeTask('a', {})
    clock.advance(999)
    expect(onError).not.toHaveBeenCalled()
    clock.advance(1)
    expect(onError).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({
        message: expect.stringMatching(/^onIdle may never resolve: 1 result\(s\) are owed to main/) as string,
      }),
      { source: 'idle', owner: 'main' },
    )
    clock.advance(60_000)
    expect(onError).toHaveBeenCalledOnce()
    expect(await isOver()).toBe(false)
    manager.markNotified('a')
    expect(await isOver()).toBe(true)
    expect(clock.pending).toBe(0)
  })

  it('reports nothing for an owner that gets messages, nor for what is fetched in time', async () => {
    const { clock, manager, register, onError, wait, isOver } = setUp()
    manager.registry.use(pushSubscribers).add('main')
    register('a')
    register('b', { owner: 'sub' })
    wait()
    for (const id of ['a', 'b']) manager.completeTask(id, {})
    clock.advance(500)
    manager.lease({ owner: 'sub' })?.acknowledge()
    clock.advance(60_000)
    manager.markNotified('a')
    expect(await isOver()).toBe(true)
    expect(onError).not.toHaveBeenCalled()
  })

  it('A9: leaves no timer when the manager is disposed', async () => {
    const { clock, manager, register, onError, wait, isOver } = setUp()
    register('a')
    manager.completeTask('a', {})
    wait('main')
    expect(clock.pending).toBe(1)
    await manager.dispose()
    expect(await isOver()).toBe(true)
    expect(clock.pending).toBe(0)
    expect(onError).not.toHaveBeenCalled()
  })

  it('reports nothing while a task runs or waits in a message, and says then what a host can do, once', async () => {
    const { clock, manager, register, onError, wait, isOver } = setUp()
    for (const id of ['a', 'b', 'c']) register(id)
    wait()
    manager.completeTask('a', {})
    clock.advance(5000)
    expect(clock.pending).toBe(0)
    manager.completeTask('b', {})
    const lease = manager.lease()
    manager.completeTask('c', {})
    clock.advance(5000)
    expect([onError.mock.calls, clock.pending]).toEqual([[], 0])
    lease?.release()
    clock.advance(1000)
    const message =
      'onIdle may never resolve: 3 result(s) are owed to main, and no subscriber delivers them. ' +
      'Subscribe an auto-trigger, use beforeTurn or withTurn, or wait for the tasks.'
    expect(onError.mock.calls.map(([error]) => (error as Error).message)).toEqual([message])
    // Also where what is owed changes after that.
    register('d')
    manager.completeTask('d', {})
    expect(clock.pending).toBe(0)
    clock.advance(60_000)
    expect(onError).toHaveBeenCalledOnce()
    manager.lease()?.acknowledge()
    expect([await isOver(), clock.pending]).toEqual([true, 0])
  })

  it('for one owner looks at nobody else', async () => {
    const { clock, manager, register, onError, wait, isOver } = setUp()
    register('a')
    register('b', { owner: 'sub' })
    wait('main')
    manager.completeTask('b', {})
    clock.advance(5000)
    expect([onError.mock.calls, clock.pending]).toEqual([[], 0])
    manager.completeTask('a', {})
    clock.advance(1000)
    expect(onError.mock.calls.map(([, source]) => source as unknown)).toEqual([{ source: 'idle', owner: 'main' }])
    manager.markNotified('a')
    expect([await isOver(), clock.pending]).toEqual([true, 0])
  })
})
