/** Instances that are paused: S11. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { TaskManagerOptions } from '../../../src/server/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { breakableStore } from '../../support/breakable-store.js'
import { createCommandHost } from '../../support/command-host.js'

function hostOn(options: Partial<TaskManagerOptions> = {}) {
  const host = createCommandHost(options)
  onTestFinished(() => host.dispose().then(() => undefined))
  const events: object[] = []
  host.tasks.on('pause', (message) => events.push(message))
  return { ...host, submit: host.submit.bind(host), events, called: () => host.calls.map(({ name }) => name) }
}

describe('a paused instance', () => {
  it('S11: starts no task, and goes on with the one that runs, all commands of it', async () => {
    const { tasks, connect, submit, settle, call, called } = hostOn()
    connect()
    submit(['a', 'b'])
    submit('c')
    await settle()
    expect(tasks.pauseInstance('one')).toBe(true)
    call('a').finish()
    await settle()
    call('b').finish()
    await settle()
    submit('d')
    await settle()
    expect(called()).toEqual(['a', 'b'])
    expect(tasks.lanes).toMatchObject([{ instanceId: 'one', state: 'idle', size: 2 }])
    expect(tasks.resumeInstance('one')).toBe(true)
    await settle()
    expect(called()).toEqual(['a', 'b', 'c'])
    call('c').finish()
    await settle()
    expect(called()).toEqual(['a', 'b', 'c', 'd'])
  })

  it('S11: does not concern other instances', async () => {
    const { tasks, connect, submit, settle, called } = hostOn()
    connect('one')
    connect('two')
    tasks.pauseInstance('one')
    submit('a', { instanceId: 'one' })
    submit('b', { instanceId: 'two' })
    await settle()
    expect(called()).toEqual(['b'])
  })

  it('S11: says once that it was paused or resumed', async () => {
    const { tasks, connect, clock, events, settle } = hostOn()
    connect()
    expect([tasks.pauseInstance('one'), tasks.pauseInstance('one')]).toEqual([true, false])
    expect([...tasks.pausedInstances]).toEqual([['one', 10_000]])
    clock.advance(500)
    expect([tasks.resumeInstance('one'), tasks.resumeInstance('one')]).toEqual([true, false])
    await settle()
    expect(events).toEqual([
      { type: 'instance_pause', instanceId: 'one', pausedSince: 10_000, timestamp: 10_000 },
      { type: 'instance_pause', instanceId: 'one', timestamp: 10_500 },
    ])
    expect(tasks.pausedInstances.size).toBe(0)
  })

  it('S11: says one time for a pause, although the clock goes on', async () => {
    const { tasks, connect, clock, events, settle } = hostOn()
    connect()
    let time = 10_000
    const reads = vi.spyOn(clock, 'now').mockImplementation(() => (time += 1))
    tasks.pauseInstance('one')
    reads.mockRestore()
    await settle()
    const pausedSince = tasks.pausedInstances.get('one')
    expect(events).toEqual([{ type: 'instance_pause', instanceId: 'one', pausedSince, timestamp: pausedSince }])
  })

  it('S11: must exist, and its tasks can be cancelled', async () => {
    const { tasks, connect, submit, settle, called } = hostOn()
    expect(() => tasks.pauseInstance('one')).toThrow(
      expect.objectContaining({ code: 'INSTANCE_UNKNOWN', instanceId: 'one' }),
    )
    expect(tasks.resumeInstance('one')).toBe(false)
    connect()
    tasks.pauseInstance('one')
    expect(tasks.cancelTask(submit('a'))).toBe(true)
    await settle()
    expect([called(), tasks.lanes]).toEqual([[], []])
  })

  it('S11: stays paused when it connects again', async () => {
    const { tasks, instances, connect, submit, settle, called } = hostOn()
    connect()
    tasks.pauseInstance('one')
    await instances.disconnect('one')
    connect()
    submit('a')
    await settle()
    expect(called()).toEqual([])
    tasks.resumeInstance('one')
    await settle()
    expect(called()).toEqual(['a'])
  })

  it('S11: makes room for others when it is gone', async () => {
    const { tasks, instances, connect } = hostOn()
    connect('stays')
    tasks.pauseInstance('stays')
    for (let n = 0; n < 1_001; n += 1) {
      connect(`i${n}`)
      tasks.pauseInstance(`i${n}`)
      void instances.disconnect(`i${n}`)
    }
    expect(tasks.pausedInstances.size).toBe(1_000)
    expect(tasks.pausedInstances.has('stays')).toBe(true)
    expect(tasks.pausedInstances.has('i1000')).toBe(true)
    expect(tasks.pausedInstances.has('i0')).toBe(false)
  })

  it('S11: leaves nothing behind when everything is disposed', async () => {
    const host = hostOn()
    host.connect()
    host.tasks.pauseInstance('one')
    host.submit('a')
    await host.dispose()
    expect([host.tasks.pauseInstance('one'), host.tasks.resumeInstance('one')]).toEqual([false, false])
    expect([host.clock.pending, host.tasks.lanes]).toEqual([0, []])
  })
})

describe('a paused instance with a store', () => {
  it('S11: is paused after a restart, and its tasks start when it is resumed', async () => {
    const store = memoryStore()
    const first = hostOn({ store })
    first.connect()
    first.tasks.pauseInstance('one')
    first.submit('a')
    await first.tasks.stored()
    expect(store.contents().featureStates).toEqual([
      { id: 'paused-instances/one', feature: 'paused-instances', data: { since: 10_000 } },
    ])
    const copy = store.copy()
    const next = hostOn({ store: copy })
    next.connect()
    await next.settle()
    expect(next.called()).toEqual([])
    expect([...next.tasks.pausedInstances]).toEqual([['one', 10_000]])
    next.tasks.resumeInstance('one')
    await next.settle()
    expect(next.called()).toEqual(['a'])
    await next.tasks.stored()
    expect(copy.contents().featureStates).toEqual([])
  })

  it('S11: passes over rows that are none', () => {
    const store = memoryStore()
    store.open()
    void store.write([
      {
        table: 'featureStates',
        put: { id: 'paused-instances/one', feature: 'paused-instances', data: { since: 'x' } },
      },
      { table: 'featureStates', put: { id: 'other/two', feature: 'other', data: { since: 1 } } },
      { table: 'featureStates', put: { id: 'paused-instances/two', feature: 'paused-instances', data: null as never } },
    ])
    expect(hostOn({ store: store.copy() }).tasks.pausedInstances.size).toBe(0)
  })

  it('S11: says that it is paused when that is stored', async () => {
    const { store, state } = breakableStore()
    const host = hostOn({ store })
    host.connect()
    state.isBroken = true
    host.tasks.pauseInstance('one')
    await expect(host.tasks.stored()).rejects.toMatchObject({ code: 'STORE_FULL' })
    expect(host.events).toEqual([])
    state.isBroken = false
    host.clock.advance(60_000)
    await host.settle()
    expect(host.events).toHaveLength(1)
  })
})
