/** Somebody sets the clock while things run: no duration, expiry or time limit moves with it. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createLink } from '../../src/client/link.js'
import { AsyncTaskManager } from '../../src/index.js'
import { InstanceManager } from '../../src/server/index.js'
import { createEventLog } from '../../src/server/backend/event-log.js'
import { createRateLimiter } from '../../src/server/rates.js'
import { registerWorker } from '../../src/command-tasks/instances/worker-socket.js'
import { createCommandHost, type CommandHost } from '../support/command-host.js'
import { connectFakeWorker } from '../support/fake-worker.js'
import { createJumpingClock } from '../support/jumping-clock.js'
import { scriptSockets, settle } from '../support/scripted-sockets.js'

const TEN_MINUTES_ON = 600_000
const AN_HOUR_BACK = -3_600_000
const bothWays = [TEN_MINUTES_ON, AN_HOUR_BACK]
const NOON = Date.UTC(2024, 0, 1, 12)

describe.each(bothWays)('a clock that is set by %i ms', (ms) => {
  const clock = createJumpingClock(NOON)

  it('A3: does not change when a reservation expires', async () => {
    const manager = new AsyncTaskManager({ clock, maxAsyncTasks: 1 })
    manager.tryReserveAsyncSlot({ ttlMs: 5000 })
    clock.jump(ms)
    clock.advance(4999)
    expect(manager.canLaunchAsync().allowed).toBe(false)
    clock.advance(1)
    expect(manager.canLaunchAsync().allowed).toBe(true)
    await manager.dispose()
  })

  it('does not change when a deadline passes, or a wait ends', async () => {
    const manager = new AsyncTaskManager({ clock })
    const task = { subagentName: 'helper', goalPrompt: 'help', graceMs: 0 }
    manager.registerTask({ id: 'a', ...task, timeoutMs: 5000 })
    manager.registerTask({ id: 'b', ...task })
    const wait = manager.waitFor(['b'], { timeoutMs: 5000 })
    clock.jump(ms)
    clock.advance(4999)
    expect(manager.getTask('a')?.status).toBe('running')
    clock.advance(1)
    expect(manager.getTask('a')?.status).toBe('failed')
    expect((await wait).pending).toHaveLength(1)
    await manager.dispose()
    expect(clock.pending).toBe(0)
  })

  it('I3: does not make a worker silent that answers its pings, or keep one that does not', async () => {
    const instances = new InstanceManager({ clock })
    const connect = (instanceId: string, answersPings: boolean) => {
      const registration = registerWorker(instances, { instanceId }, { websocketUrl: 'ws://127.0.0.1/worker', clock })
      connectFakeWorker(instances, registration, { clock, answersPings }).hello()
    }
    connect('alive', true)
    connect('silent', false)
    clock.jump(ms)
    for (let n = 0; n < 45; n += 1) {
      clock.advance(1000)
      await settle()
    }
    expect(instances.list().map(({ id }) => id)).toEqual(['alive'])
    await instances.dispose()
  })

  it("does not drop a worker's or a client's connection that is not silent", async () => {
    const sockets = scriptSockets()
    const silences: number[] = []
    const link = createLink({
      url: () => 'ws://127.0.0.1:1/ws',
      clock,
      reconnection: () => undefined,
      onMessage: () => undefined,
      loadSocket: () => Promise.resolve(sockets.WebSocket),
      onOpen: () => link.ready(),
      onDown: () => false,
      heartbeat: { everyMs: 30_000, onSilence: (silentMs) => silences.push(silentMs) },
    })
    link.wake()
    await settle()
    sockets.last.open()
    clock.advance(20_000)
    clock.jump(ms)
    sockets.last.receive({})
    clock.jump(ms)
    clock.advance(29_999)
    expect(silences).toEqual([])
    clock.advance(1)
    expect(silences).toEqual([30_000])
    await link.close()
    expect(clock.pending).toBe(0)
  })

  it('S9: does not change how long the events of an ended task are kept', () => {
    const log = createEventLog({ clock, isKnown: () => true, retentionMs: 1000 })
    const summary = { totalCommands: 0, successfulCommands: 0, duration: 0 }
    const event = { type: 'task_complete', instanceId: 'calc', status: 'completed', timestamp: 0 } as const
    log.append({ ...event, taskId: 'a', summary, results: [] })
    clock.jump(ms)
    log.append({ ...event, taskId: 'b', summary, results: [] })
    clock.advance(999)
    expect([log.lastSeq('a'), log.lastSeq('b')]).toEqual([1, 1])
    clock.advance(1)
    expect([log.lastSeq('a'), log.lastSeq('b')]).toEqual([0, 0])
    log.dispose()
  })

  it('does not change how many requests a minute has', () => {
    const limiter = createRateLimiter(2, clock)
    expect([limiter.take('a'), limiter.take('a')]).toEqual([0, 0])
    clock.jump(ms)
    expect(limiter.take('a')).toBe(30_000)
    clock.advance(30_000)
    expect(limiter.take('a')).toBe(0)
  })
})

describe('command tasks', () => {
  let host: CommandHost
  beforeEach(() => {
    host = createCommandHost()
    host.connect()
  })
  afterEach(() => host.dispose())
  const end = async (name: string): Promise<string> => {
    const id = host.submit(name)
    await host.settle()
    host.call(name).finish()
    await host.settle()
    return id
  }

  it.each(bothWays)('S2: last as long as they run, in their complete and in their record (%i ms)', async (ms) => {
    const id = host.submit('a')
    await host.settle()
    host.clock.advance(100)
    host.clock.jump(ms)
    host.clock.advance(50)
    host.call('a').finish()
    await host.settle()
    expect(host.completes()).toMatchObject([{ summary: { duration: 150 } }])
    expect(host.tasks.getTask(id)).toMatchObject({ duration: 150 })
  })

  it('S9: one that ended while the clock was ahead does not keep later ones from being removed', async () => {
    host.clock.jump(TEN_MINUTES_ON)
    const ahead = await end('ahead')
    host.clock.jump(-TEN_MINUTES_ON)
    const later = await end('later')
    host.clock.advance(100)
    expect(host.tasks.cleanupTasks(100)).toBe(0)
    expect(host.tasks.cleanupTasks(99)).toBe(2)
    expect([ahead, later].map((id) => host.tasks.getTask(id))).toEqual([undefined, undefined])
  })

  it('S9: are not removed too early because the clock was set on', async () => {
    await end('a')
    host.clock.jump(2 * 3_600_000)
    expect(host.tasks.cleanupTasks()).toBe(0)
  })
})
