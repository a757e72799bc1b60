/** N1 to N6: whatever becomes of the viewer, and whatever the callbacks do, the work goes on as it would without an inspector. */
import { setImmediate } from 'node:timers/promises'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createActor } from 'xstate'
import { commandTaskMachine } from '../../../machines/index.js'
import { AsyncTaskManager } from '../../../src/async-tasks/manager.js'
import { systemClock } from '../../../src/clock.js'
import { createAgentTasks } from '../../../src/host/agent-tasks.js'
import { createInspector, redactByDefault, type InspectorOptions } from '../../../src/inspect/index.js'
import { createSessions } from '../../../src/inspect/sessions.js'
import { startRelay } from '../../support/inspector-relay.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { createGate, flushTo, inspectorFor, storyOf, treeOf } from './inspected.js'

/** Starts and ends tasks; what they came to is what they come to without an inspector. */
async function work(manager: AsyncTaskManager, ids: readonly string[], output: Record<string, unknown> = {}) {
  for (const id of ids) manager.launch({ id, subagentName: 's', goalPrompt: 'g' }, () => output)
  const { settled } = await manager.waitFor(ids, { mode: 'all' })
  expect(new Set(settled.map(({ status }) => status))).toEqual(new Set(['completed']))
  expect(settled).toHaveLength(ids.length)
}

/** A manager that is disposed when the test has finished. */
function managerWith(inspect: ReturnType<typeof createInspector>): AsyncTaskManager {
  const manager = new AsyncTaskManager({ inspect, maxAsyncTasks: -1 })
  onTestFinished(() => manager.dispose())
  return manager
}

it('sends what happened before the relay was there', async () => {
  const relay = await startRelay()
  const { port, url } = relay
  await relay.stop()
  const down = createGate()
  const { inspector } = inspectorFor(url, { onError: () => down.open() })
  const manager = managerWith(inspector)
  await work(manager, ['a'])
  await down.opened
  expect(inspector.stats).toMatchObject({ isConnected: false, sent: 0, dropped: 0 })
  const later = await startRelay(port)
  const received = await later.received()
  await received.until((message) => message.type === '@xstate.event' && message.event.type === 'slot.release')
  expect(treeOf(received)).toEqual(['registry', 'registry > task.a'])
  expect(storyOf(received, 'task.a').at(-1)).toBe('is "completed"')
})

it('N5: tells a relay that comes back of the actors that live, and says once that it was gone', async () => {
  const relay = await startRelay()
  const before = await relay.received()
  const errors: unknown[][] = []
  const down = createGate()
  const { inspector } = inspectorFor(relay.url, {
    onError: (...error) => {
      errors.push(error)
      down.open()
    },
  })
  const manager = managerWith(inspector)
  const register = (id: string) =>
    manager.registerTask({ id, subagentName: 's', goalPrompt: 'g', abortController: new AbortController() })
  for (const id of ['idle', 'busy', 'past']) register(id)
  manager.completeTask('past', {})
  await before.until((message) => message.type === '@xstate.event' && message.event.type === 'task.complete')
  await before.until(() => before.messages.length === inspector.stats.sent && inspector.stats.buffered === 0)
  await relay.stop()
  await down.opened
  manager.completeTask('busy', {})
  register('new')
  const again = await startRelay(relay.port)
  const after = await again.received()
  await after.until((message) => message.type === '@xstate.actor' && message.name === 'task.idle')
  // What had ended before is not told again; what happened meanwhile is, after the actors that it happened to.
  expect(treeOf(after)).toEqual(['registry', 'registry > task.busy', 'registry > task.new', 'registry > task.idle'])
  expect(storyOf(after, 'task.busy').slice(1)).toEqual(['task.complete', 'is "completed"'])
  expect(storyOf(after, 'task.idle')).toEqual(['made "running"'])
  expect(errors).toEqual([[expect.any(Error), 'connection']])
  expect(inspector.stats.dropped).toBe(0)
})

it('N2: holds no more for a relay that does not read than it may, drops the oldest, and counts them', async () => {
  const relay = await startRelay()
  const received = await relay.received()
  const { inspector } = inspectorFor(relay.url, { redact: false, maxBuffered: 500 })
  const manager = managerWith(inspector)
  await received.until((message) => message.type === '@xstate.actor')
  relay.pause()
  const output = { final_message: 'x'.repeat(9000) }
  let round = 0
  const { sent } = inspector.stats
  while (inspector.stats.dropped === 0) {
    // What is taken in, and what is made of it.
    expect(inspector.stats.buffered).toBeLessThanOrEqual(1000)
    await work(
      manager,
      Array.from({ length: 20 }, (_, index) => `t${round}-${index}`),
      output,
    )
    for (let turn = 0; turn < 100; turn += 1) await setImmediate()
    round += 1
    // The system keeps some megabytes for a connection that nobody reads.
    expect(round).toBeLessThan(200)
  }
  // It was not the first burst that was too much.
  expect(inspector.stats.sent - sent).toBeGreaterThan(100)
  relay.resume()
  await work(manager, ['last'])
  await flushTo(inspector, received)
  expect(inspector.stats).toMatchObject({ buffered: 0, sent: received.messages.length })
  // N5: also after a gap nobody hears of an actor that it does not know, or whose parent it does not know.
  const known = new Set<string>()
  for (const message of received.messages) {
    if (message.type !== '@xstate.actor') expect(known).toContain(message.sessionId)
    else if (message.parentId !== undefined) expect(known).toContain(message.parentId)
    known.add(message.sessionId)
  }
}, 30_000)

it.each([
  [
    'filter',
    {
      filter: () => {
        throw new Error('no')
      },
    },
  ],
  [
    'redact',
    {
      redact: () => {
        throw new Error('no')
      },
    },
  ],
  [
    'redact',
    {
      redact: (key: string, value: unknown) =>
        key === 'status'
          ? {
              toJSON: () => {
                throw new Error('no')
              },
            }
          : value,
    },
  ],
] satisfies [string, InspectorOptions][])(
  'N3, N4: a %s that throws costs its messages and nothing else, and is told once',
  async (source, options) => {
    const relay = await startRelay()
    const received = await relay.received()
    const { inspector, onError } = inspectorFor(relay.url, options)
    await work(managerWith(inspector), ['a', 'b'])
    await flushTo(inspector, received)
    expect(onError.mock.calls).toEqual([[new Error('no'), source]])
    expect(inspector.stats.failed).toBeGreaterThan(5)
    expect(received.messages.length).toBe(inspector.stats.sent)
    expect(received.messages.filter(({ type }) => type === '@xstate.snapshot')).toEqual([])
  },
)

it('N3: an onError that throws is nobody’s problem', async () => {
  const relay = await startRelay()
  const { inspector } = inspectorFor(relay.url, {
    redact: () => {
      throw new Error('no')
    },
    onError: () => {
      throw new Error('neither')
    },
  })
  await work(managerWith(inspector), ['a'])
  await inspector.close()
  expect(inspector.stats.failed).toBeGreaterThan(0)
})

it('N3: what is no inspection event is counted, and throws nothing', () => {
  const { inspector } = inspectorFor('ws://127.0.0.1:9')
  for (const nonsense of [undefined, null, 5, { type: '@xstate.snapshot' }]) inspector.next(nonsense as never)
  expect(inspector.stats.failed).toBe(3)
})

it('shows a huge output in part, and reads no more of it than it shows', async () => {
  const relay = await startRelay()
  const received = await relay.received()
  const { inspector } = inspectorFor(relay.url, { redact: false })
  const output = {
    text: 'x'.repeat(5_000_000),
    list: Array.from({ length: 100_000 }, (_, index) => ({ index })),
    bytes: new Uint8Array(1000),
  }
  const actor = createActor(commandTaskMachine, { input: { totalCommands: 1 }, inspect: inspector })
  actor.start()
  actor.send({ type: 'command.failed', error: output as never })
  actor.stop()
  await flushTo(inspector, received)
  const event = received.messages.find(
    (message) => message.type === '@xstate.event' && message.event.type === 'command.failed',
  )
  expect(JSON.stringify(event).length).toBeLessThan(250_000)
  expect(event).toMatchObject({
    event: { error: { text: expect.stringMatching(/^x{10000}… \[4990000 more characters\]$/) as string } },
  })
  expect(JSON.stringify(event)).toContain('more]')
})

it('N1: takes an event in without looking into it', () => {
  const clock = createManualClock()
  const redact = vi.fn(redactByDefault)
  const filter = vi.fn(() => true)
  const inspector = createInspector({ url: 'ws://127.0.0.1:9', clock, redact, filter, onError: () => {} })
  const manager = new AsyncTaskManager({ inspect: inspector })
  manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g', abortController: new AbortController() })
  expect(redact).not.toHaveBeenCalled()
  clock.advance(1)
  expect(redact).toHaveBeenCalled()
  expect(filter).toHaveBeenCalledWith(expect.objectContaining({ type: '@xstate.actor', name: 'registry' }))
  return manager.dispose()
})

it('N1: makes some messages at a time, so that other work gets its turn', async () => {
  const timers: (() => void)[] = []
  const clock = { ...systemClock, setTimeout: (run: () => void) => timers.push(run) }
  const filter = vi.fn(() => true)
  const inspector = createInspector({ url: 'ws://127.0.0.1:9', clock, filter, onError: () => {} })
  const manager = new AsyncTaskManager({ inspect: inspector, maxAsyncTasks: -1 })
  for (let count = 0; count < 100; count += 1) {
    manager.registerTask({
      id: `t${count}`,
      subagentName: 's',
      goalPrompt: 'g',
      abortController: new AbortController(),
    })
  }
  const made: number[] = []
  for (let turn = 0; turn < 3; turn += 1) {
    expect(timers).toHaveLength(1)
    timers.pop()?.()
    made.push(filter.mock.calls.length)
  }
  expect(made).toEqual([100, 200, 300])
  expect(inspector.stats.buffered).toBeGreaterThan(400)
  await manager.dispose()
})

it('sends only what the filter lets through, which is given the message as it would be sent', async () => {
  const relay = await startRelay()
  const received = await relay.received()
  const seen: string[] = []
  const { inspector } = inspectorFor(relay.url, {
    filter: (message) => {
      seen.push(JSON.stringify(message))
      return message.type !== '@xstate.event' || (message.event as { type: string }).type !== 'task.register'
    },
  })
  const manager = managerWith(inspector)
  manager.launch({ id: 'a', subagentName: 's', goalPrompt: 'SECRET' }, () => ({}))
  await manager.waitFor(['a'], { mode: 'all' })
  await flushTo(inspector, received)
  expect(seen.some((text) => text.includes('SECRET'))).toBe(false)
  expect(inspector.stats.filtered).toBe(1)
  const events = received.messages.flatMap((message) => (message.type === '@xstate.event' ? [message.event.type] : []))
  expect(events).toContain('task.complete')
  expect(events).not.toContain('task.register')
})

it('N5: an actor that the filter leaves out is left out on the next connection as well', async () => {
  const relay = await startRelay()
  const down = createGate()
  const { inspector } = inspectorFor(relay.url, {
    onError: () => down.open(),
    filter: (message) => message.type !== '@xstate.actor' || !message.name.startsWith('task.'),
  })
  const received = await relay.received()
  const manager = managerWith(inspector)
  for (const id of ['a', 'b']) {
    manager.registerTask({ id, subagentName: 's', goalPrompt: 'g', abortController: new AbortController() })
  }
  await received.until((message) => message.type === '@xstate.actor')
  await relay.stop()
  await down.opened
  const later = await startRelay(relay.port)
  const after = await later.received()
  await after.until((message) => message.type === '@xstate.actor')
  manager.cancelTask('a')
  await after.until((message) => message.type === '@xstate.event' && message.event.type === 'task.cancel')
  expect(treeOf(after)).toEqual(['registry'])
})

it('N6: close sends what is waiting, ends the connection, and ignores what comes later', async () => {
  const relay = await startRelay()
  const received = await relay.received()
  const { inspector } = inspectorFor(relay.url)
  const manager = managerWith(inspector)
  manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g', abortController: new AbortController() })
  await Promise.all([inspector.close(), inspector.close()])
  const { sent } = inspector.stats
  manager.completeTask('a', {})
  expect(sent).toBeGreaterThan(0)
  await received.until(() => received.messages.length >= sent)
  expect(inspector.stats).toEqual({ isConnected: false, sent, buffered: 0, dropped: 0, filtered: 0, failed: 0 })
})

it('N6: close gives up a relay that does not answer, when its time is over, and counts what was left', async () => {
  const relay = await startRelay()
  const received = await relay.received()
  const { inspector } = inspectorFor(relay.url, { redact: false, clock: { ...systemClock } })
  const manager = managerWith(inspector)
  await received.until((message) => message.type === '@xstate.actor')
  relay.pause()
  const output = { final_message: 'x'.repeat(9000) }
  // More than what the system and the socket take.
  while (inspector.stats.buffered < 2000) {
    await work(
      manager,
      Array.from({ length: 50 }, () => `t${Math.random()}`),
      output,
    )
  }
  await inspector.close({ timeoutMs: 10 })
  expect(inspector.stats.buffered).toBe(0)
  expect(inspector.stats.dropped).toBeGreaterThan(0)
}, 30_000)

it('an actor beyond the ten thousand that are kept is told of when it does something, not when a connection begins', () => {
  const sessions = createSessions((_key, value) => value)
  const actors = Array.from({ length: 10_001 }, (_, index) => ({ id: `a${index}`, sessionId: `x:${index}` }))
  const [oldest, second] = actors.map((actor) => sessions.of(actor as never, 'x:0', 0))
  const live = sessions.live()
  expect([live.length, live.includes(oldest!), live.includes(second!)]).toEqual([10_000, false, true])
  expect(sessions.of(actors[0] as never, 'x:0', 0)).toBe(oldest)
})

it('N6: close does not wait for a relay that is not there', async () => {
  const relay = await startRelay()
  await relay.stop()
  const down = createGate()
  const { inspector } = inspectorFor(relay.url, { onError: () => down.open() })
  await down.opened
  const manager = managerWith(inspector)
  manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g', abortController: new AbortController() })
  await inspector.close({ timeoutMs: 1e9 })
  expect(inspector.stats).toMatchObject({ sent: 0, buffered: 0 })
  expect(inspector.stats.dropped).toBeGreaterThan(0)
})

it.each([
  [{ url: 'nonsense' }, /^Setting url: got "nonsense", expected the ws: or wss: URL of a relay/],
  [{ url: 'ftp://a' }, /^Setting url/],
  [{ url: 'https://stately.ai/inspect' }, /^Setting url: .* as there is no browser window here/],
  [{ maxBuffered: 0 }, /^Setting maxBuffered/],
  [{ redact: 'no' as never }, /^options.redact: got "no", expected a function, true or false/],
  [{ filter: true as never }, /^options.filter/],
] satisfies [InspectorOptions, RegExp][])('refuses %j', (options, message) => {
  expect(() => createInspector(options)).toThrow(message)
})

it.each([5, {}, { inspect: { next: () => {} } }])(
  'refuses %j in place of an inspector, and changes nothing',
  (inspect) => {
    expect(() => createAgentTasks({ inspect: inspect as never })).toThrow(
      /^options.inspect: .* a function, or an observer/,
    )
  },
)
