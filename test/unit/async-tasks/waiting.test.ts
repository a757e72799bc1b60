/** Waiting for tasks to end, and for everything to be delivered. */
import { describe, expect, it, vi } from 'vitest'
import { AsyncTaskManager } from '../../../src/async-tasks/manager.js'
import { InvalidInputError } from '../../../src/errors.js'
import { createPacedClock } from '../../support/paced-clock.js'

function setUp(...ids: string[]) {
  const clock = createPacedClock(1_000)
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
  const register = (id: string, owner = 'main'): void => {
    manager.registerTask({ id, owner, subagentName: 'helper', goalPrompt: 'help' })
  }
  for (const id of ids) register(id)
  const deliveryOf = (id: string): string | undefined => manager.getTask(id)?.delivery
  /** Whether a promise has settled by now. */
  const isOver = async (promise: Promise<unknown>): Promise<boolean> => {
    const then = vi.fn()
    promise.then(then, then)
    await clock.advance(0)
    return then.mock.calls.length > 0
  }
  return { clock, manager, register, deliveryOf, isOver }
}

describe('waiting for tasks', () => {
  it('waits for the last of them, and returns how each ended', async () => {
    const { manager, isOver } = setUp('a', 'b', 'c')
    const wait = manager.waitFor(['a', 'b', 'c'])
    manager.failTask('b', 'no luck')
    manager.completeTask('a', {})
    expect(await isOver(wait)).toBe(false)
    manager.cancelTask('c')
    expect(await wait).toMatchObject({
      settled: [
        { id: 'a', status: 'completed' },
        { id: 'b', status: 'failed' },
        { id: 'c', status: 'cancelled' },
      ],
      pending: [],
      unknown: [],
    })
  })

  it('waits for the first of them with mode any', async () => {
    const { manager, isOver } = setUp('a', 'b')
    const wait = manager.waitFor(['a', 'b'], { mode: 'any' })
    expect(await isOver(wait)).toBe(false)
    manager.completeTask('b', {})
    expect(await wait).toMatchObject({ settled: [{ id: 'b' }], pending: [{ id: 'a', status: 'running' }] })
  })

  it('ends at once for tasks that have ended, for no ids, and for unknown ids', async () => {
    const { manager } = setUp('a', 'b')
    manager.completeTask('a', {})
    expect(await manager.waitFor(['a'])).toMatchObject({ settled: [{ id: 'a' }] })
    expect(await manager.waitFor(['a', 'b'], { mode: 'any' })).toMatchObject({ settled: [{ id: 'a' }] })
    expect(await manager.waitFor([])).toEqual({ settled: [], pending: [], unknown: [] })
    expect(await manager.waitFor(['x', 'y'], { mode: 'any' })).toEqual({
      settled: [],
      pending: [],
      unknown: ['x', 'y'],
    })
  })

  it('returns unknown ids, and counts an id that is given twice once', async () => {
    const { manager } = setUp('a')
    const wait = manager.waitFor(['a', 'x', 'a', 'x'])
    manager.completeTask('a', {})
    expect(await wait).toMatchObject({ settled: [{ id: 'a' }], unknown: ['x'] })
    expect((await wait).settled).toHaveLength(1)
  })

  it('ends at its timeout, with the tasks that have ended by then', async () => {
    const { manager, clock, isOver, deliveryOf } = setUp('a', 'b')
    const wait = manager.waitFor(['a', 'b'], { timeoutMs: 500 })
    manager.completeTask('a', {})
    await clock.advance(499)
    expect(await isOver(wait)).toBe(false)
    await clock.advance(1)
    expect(await wait).toMatchObject({ settled: [{ id: 'a' }], pending: [{ id: 'b' }] })
    manager.completeTask('b', {})
    expect([deliveryOf('a'), deliveryOf('b')]).toEqual(['delivered', 'owed'])
  })

  it('sets no timer when its time is not limited', async () => {
    const { manager, clock } = setUp('a')
    const wait = manager.waitFor(['a'])
    expect(clock.pending).toBe(0)
    manager.completeTask('a', {})
    await wait
  })

  it('leaves no timer and no listener when it is over', async () => {
    const { manager, clock } = setUp('a')
    const { signal } = new AbortController()
    const remove = vi.spyOn(signal, 'removeEventListener')
    const wait = manager.waitFor(['a'], { timeoutMs: 500, signal })
    expect(clock.pending).toBe(1)
    manager.completeTask('a', {})
    await wait
    expect(clock.pending).toBe(0)
    expect(remove).toHaveBeenCalledExactlyOnceWith('abort', expect.any(Function))
  })

  it('A5: leases each end, so that no reminder carries it, and acknowledges what it returns', async () => {
    const { manager, deliveryOf } = setUp('a', 'b', 'c')
    manager.completeTask('a', {})
    const wait = manager.waitFor(['a', 'b'])
    expect(deliveryOf('a')).toBe('leased')
    expect(manager.lease()).toBeUndefined()
    manager.completeTask('c', {})
    expect(manager.lease()?.tasks).toMatchObject([{ id: 'c' }])
    manager.completeTask('b', {})
    expect(deliveryOf('b')).toBe('leased')
    await wait
    expect([deliveryOf('a'), deliveryOf('b')]).toEqual(['delivered', 'delivered'])
  })

  it('A5: returns what another message carried when that is refused', async () => {
    const { manager, deliveryOf } = setUp('a', 'b')
    manager.completeTask('a', {})
    const lease = manager.lease()
    const wait = manager.waitFor(['a', 'b'])
    lease?.release()
    expect(deliveryOf('a')).toBe('leased')
    expect(manager.lease()).toBeUndefined()
    manager.completeTask('b', {})
    await wait
    expect(deliveryOf('a')).toBe('delivered')
  })

  it('A5: what it returned is not owed again when the message that carries it too is refused', async () => {
    const { manager, deliveryOf } = setUp('a')
    manager.completeTask('a', {})
    const lease = manager.lease()
    expect((await manager.waitFor(['a'])).settled).toHaveLength(1)
    expect(deliveryOf('a')).toBe('leased')
    lease?.release()
    expect(deliveryOf('a')).toBe('delivered')
  })

  it('A5: two waits for one task both return it, and it is not owed afterwards', async () => {
    const { manager, deliveryOf } = setUp('a')
    const waits = [manager.waitFor(['a']), manager.waitFor(['a'])]
    manager.completeTask('a', {})
    for (const wait of waits) expect((await wait).settled).toMatchObject([{ id: 'a' }])
    expect(deliveryOf('a')).toBe('delivered')
  })

  it('A5: aborted, it rejects with the reason and releases what it had leased', async () => {
    const { manager, deliveryOf } = setUp('a', 'b')
    const controller = new AbortController()
    const wait = manager.waitFor(['a', 'b'], { signal: controller.signal })
    manager.completeTask('a', {})
    controller.abort('no time')
    await expect(wait).rejects.toBe('no time')
    expect(deliveryOf('a')).toBe('owed')
    manager.completeTask('b', {})
    expect(deliveryOf('b')).toBe('owed')
  })

  it('A5: aborted, it leaves what it had leased to the next wait', async () => {
    const { manager, deliveryOf } = setUp('a', 'b')
    const controller = new AbortController()
    const aborted = manager.waitFor(['a', 'b'], { signal: controller.signal })
    const next = manager.waitFor(['a', 'b'])
    manager.completeTask('a', {})
    controller.abort(new Error('no time'))
    await expect(aborted).rejects.toThrow('no time')
    expect(deliveryOf('a')).toBe('leased')
    manager.completeTask('b', {})
    await next
    expect(deliveryOf('a')).toBe('delivered')
  })

  it('leases nothing when its signal has aborted before', async () => {
    const { manager, deliveryOf } = setUp('a')
    manager.completeTask('a', {})
    await expect(manager.waitFor(['a'], { signal: AbortSignal.abort(new Error('too late')) })).rejects.toThrow(
      'too late',
    )
    expect(deliveryOf('a')).toBe('owed')
  })

  it('ends when its signal aborts while it leases what has ended', async () => {
    const { manager, deliveryOf } = setUp('a', 'b')
    manager.completeTask('a', {})
    const controller = new AbortController()
    manager.transitions$.subscribe(() => controller.abort(new Error('meanwhile')))
    await expect(manager.waitFor(['a', 'b'], { signal: controller.signal })).rejects.toThrow('meanwhile')
    expect(deliveryOf('a')).toBe('owed')
  })

  it('A9: ends when the manager is disposed', async () => {
    const { manager, clock } = setUp('a')
    const wait = manager.waitFor(['a'], { timeoutMs: 500 })
    await manager.dispose()
    expect(await wait).toMatchObject({ settled: [{ id: 'a', status: 'cancelled' }] })
    expect(clock.pending).toBe(0)
    expect(await manager.waitFor(['a'])).toMatchObject({ settled: [{ id: 'a' }] })
  })

  it.each([
    ['ids that are no list', 'a', {}],
    ['a mode that does not exist', ['a'], { mode: 'some' }],
    ['a negative time', ['a'], { timeoutMs: -1 }],
    ['a signal that is none', ['a'], { signal: {} }],
  ])('refuses %s', async (_, ids, options) => {
    const { manager } = setUp('a')
    await expect(manager.waitFor(ids as string[], options as never)).rejects.toThrow(InvalidInputError)
  })
})

describe('onIdle', () => {
  it('resolves at once when nothing runs, is owed or is leased', async () => {
    const { manager } = setUp()
    await manager.onIdle()
    await manager.onIdle('main')
  })

  it('waits until the last message was accepted', async () => {
    const { manager, isOver } = setUp('a')
    const quiet = manager.onIdle()
    expect(await isOver(quiet)).toBe(false)
    manager.completeTask('a', {})
    expect(await isOver(quiet)).toBe(false)
    const lease = manager.lease()
    expect(await isOver(quiet)).toBe(false)
    lease?.acknowledge()
    expect(await isOver(quiet)).toBe(true)
  })

  it('waits for one owner only, if given', async () => {
    const { manager, register, isOver } = setUp('a')
    register('b', 'sub')
    const quiet = manager.onIdle('sub')
    manager.cancelTask('b')
    expect(await isOver(quiet)).toBe(true)
    expect(await isOver(manager.onIdle())).toBe(false)
  })

  it('A9: resolves at dispose, although something is owed', async () => {
    const { manager, isOver } = setUp('a')
    manager.completeTask('a', {})
    const quiet = manager.onIdle()
    await manager.dispose()
    expect(await isOver(quiet)).toBe(true)
    expect(await isOver(manager.onIdle())).toBe(true)
  })
})
