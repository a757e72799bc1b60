/** N1 to N6: failing viewers, connections and callbacks do not affect the tasks. */
import { setImmediate } from 'node:timers/promises'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createActor } from 'xstate'
import { commandTaskMachine } from '../../../../machines/index.js'
import { AsyncTaskManager } from '../../../../src/async-tasks/manager.js'
import { systemClock } from '../../../../src/system/clock.js'
import { createAgentTasks } from '../../../../src/host/agent-tasks.js'
import { createInspector, redactByDefault } from '../../../../src/observability/inspect/index.js'
import { createSessions } from '../../../../src/observability/inspect/sessions.js'
import { startRelay } from '../../../support/inspector-relay.js'
import { createManualClock } from '../../../../src/testing/manual-clock.js'
import { createGate, flushTo, inspectorFor, storyOf, treeOf } from './inspected.js'
import type { InspectorOptions } from '../../../../src/observability/inspect/inspector-types.js'

/** Runs tasks to their end and checks that they end as they do without an inspector. */
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

it('sends events from before the relay was started', async () => {
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

it('N5: sends the live actors to a relay that comes back, and reports the lost connection once', async () => {
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
  // task.past, which had ended, is not sent again; the events since then follow their actors.
  expect(treeOf(after)).toEqual(['registry', 'registry > task.busy', 'registry > task.new', 'registry > task.idle'])
  expect(storyOf(after, 'task.busy').slice(1)).toEqual(['task.complete', 'is "completed"'])
  expect(storyOf(after, 'task.idle')).toEqual(['made {"active":"running"}'])
  expect(errors).toEqual([[expect.any(Error), 'connection']])
  expect(inspector.stats.dropped).toBe(0)
})

it('N2: bounds the backlog for a relay that does not read: drops the oldest messages and counts them', async () => {
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
    // 500 recorded events and 500 built messages.
    expect(inspector.stats.buffered).toBeLessThanOrEqual(1000)
    await work(
      manager,
      Array.from({ length: 20 }, (_, index) => `t${round}-${index}`),
      output,
    )
    for (let turn = 0; turn < 100; turn += 1) await setImmediate()
    round += 1
    // The operating system buffers some megabytes of a connection.
    expect(round).toBeLessThan(200)
  }
  // It was not the first burst that was too much.
  expect(inspector.stats.sent - sent).toBeGreaterThan(100)
  relay.resume()
  await work(manager, ['last'])
  await flushTo(inspector, received)
  expect(inspector.stats).toMatchObject({ buffered: 0, sent: received.messages.length })
  // N5: also after a gap an actor is introduced before its other messages, and its parent before it.
  const known = new Set<string>()
  for (const message of received.messages) {
    if (message.type !== '@xstate.actor') expect(known).toContain(message.sessionId)
    else if (message.parentId !== undefined) expect(known).toContain(message.parentId)
    known.add(message.sessionId)
  }
})

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
  'N3, N4: a %s that throws costs its messages and nothing else, and is reported once',
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

it('N3: an onError that throws does no harm', async () => {
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

it('N3: a value that is not an inspection event is counted, and does not throw', () => {
  const { inspector } = inspectorFor('ws://127.0.0.1:9')
  for (const nonsense of [undefined, null, 5, { type: '@xstate.snapshot' }]) inspector.next(nonsense as never)
  expect(inspector.stats.failed).toBe(3)
})

it('shows a part of a huge output, and reads only that part', async () => {
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

it('N1: records an event without reading it', () => {
  const clock = createManualClock()
  const redact = vi.fn(redactByDefault)
  const filter = vi.fn(() => true)
  const inspector = createInspector({ url: 'ws://127.0.0.1:9', clock, redact, filter, onError: () => {} })
  onTestFinished(async () => {
    const closed = inspector.close()
    clock.advance(60_000)
    await closed
  })
  const manager = new AsyncTaskManager({ inspect: inspector })
  manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g', abortController: new AbortController() })
  expect(redact).not.toHaveBeenCalled()
  clock.advance(1)
  expect(redact).toHaveBeenCalled()
  expect(filter).toHaveBeenCalledWith(expect.objectContaining({ type: '@xstate.actor', name: 'registry' }))
  return manager.dispose()
})

it('N1: builds messages in batches, so that other work gets its turn', async () => {
  const timers: (() => void)[] = []
  // Without the time limit of the connection.
  const setTimeout = (run: () => void, ms: number): unknown => (ms === 0 ? timers.push(run) : undefined)
  const clock = { ...systemClock, setTimeout }
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

it('sends only messages that pass the filter, which gets them redacted', async () => {
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

it('N5: an actor that the filter rejects is not sent on the next connection either', async () => {
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

it('N6: close sends the waiting messages, closes the connection, and later events are ignored', async () => {
  const relay = await startRelay()
  const received = await relay.received()
  const { inspector } = inspectorFor(relay.url)
  const manager = managerWith(inspector)
  manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g', abortController: new AbortController() })
  await Promise.all([inspector.close(), inspector[Symbol.asyncDispose]()])
  const { sent } = inspector.stats
  manager.completeTask('a', {})
  expect(sent).toBeGreaterThan(0)
  await received.until(() => received.messages.length >= sent)
  expect(inspector.stats).toEqual({ isConnected: false, sent, buffered: 0, dropped: 0, filtered: 0, failed: 0 })
})

it('N6: close stops waiting for a relay that does not answer after its time limit, and counts what was left', async () => {
  const relay = await startRelay()
  const received = await relay.received()
  const { inspector } = inspectorFor(relay.url, { redact: false, clock: { ...systemClock } })
  const manager = managerWith(inspector)
  await received.until((message) => message.type === '@xstate.actor')
  relay.pause()
  const output = { final_message: 'x'.repeat(9000) }
  // More than the operating system and the socket buffer.
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
})

it('leaves out the oldest of more than ten thousand live actors when a connection opens', () => {
  const sessions = createSessions((_key, value) => value)
  const actors = Array.from({ length: 10_001 }, (_, index) => ({
    id: `a${index}`,
    sessionId: `x:${index}`,
    getSnapshot: () => ({ status: 'active' }),
  }))
  const [oldest, second] = actors.map((actor) => sessions.of(actor as never, 'x:0', 0))
  const live = sessions.live()
  expect([live.length, live.includes(oldest!), live.includes(second!)]).toEqual([10_000, false, true])
  expect(sessions.of(actors[0] as never, 'x:0', 0)).toBe(oldest)
})

it('N5: a session ends with its actor, and is introduced again when its parent is known', () => {
  const sessions = createSessions((_key, value) => value)
  const [parent, child] = ['parent', 'child'].map((id) => ({
    id,
    sessionId: `x:${id}`,
    getSnapshot: () => ({ status: 'active' }),
  })) as never[]
  const session = sessions.of(child!, 'x:0', 5)
  session.introducedOn = 3
  expect(sessions.of(child!, 'x:0', 6)).toBe(session)
  expect([session.introducedOn, session.createdAt]).toEqual([3, '5'])
  sessions.setParent(child!, parent)
  sessions.of(child!, 'x:0', 7)
  expect([session.parent?.name, session.introducedOn]).toEqual(['parent', 0])
  session.introducedOn = 3
  sessions.of(child!, 'x:0', 8)
  expect(session.introducedOn).toBe(3)
  sessions.update(session, { status: 'active' })
  expect(sessions.live().map(({ name }) => name)).toEqual(['child', 'parent'])
  sessions.update(session, { status: 'done' })
  expect(sessions.live().map(({ name }) => name)).toEqual(['parent'])
})

it('N5: sends an actor again with its parent when it is started after it was shown', async () => {
  const relay = await startRelay()
  const received = await relay.received()
  const { inspector } = inspectorFor(relay.url)
  const parent = createActor(commandTaskMachine, { id: 'above', input: { totalCommands: 1 }, inspect: inspector })
  parent.start()
  const child = createActor(commandTaskMachine, { id: 'below', input: { totalCommands: 1 }, parent })
  await received.until((message) => message.type === '@xstate.actor' && message.name === 'below')
  child.start()
  await flushTo(inspector, received)
  expect(treeOf(received)).toEqual(['above', 'below', 'above > below'])
  expect(storyOf(received, 'below')).toEqual(['made "queued"', 'made "queued"', 'xstate.init', 'is "queued"'])
})

it('N6: close does not wait for a relay that is down', async () => {
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
  [{ url: 'https://stately.ai/inspect' }, /^Setting url: .*: there is no browser window here/],
  [{ maxBuffered: 0 }, /^Setting maxBuffered/],
  [{ redact: 'no' as never }, /^options.redact: got "no", expected a function, true or false/],
  [{ filter: true as never }, /^options.filter/],
] satisfies [InspectorOptions, RegExp][])('rejects %j', (options, message) => {
  expect(() => createInspector(options)).toThrow(message)
})

it.each([5, {}, { inspect: { next: () => {} } }])('rejects %j as an inspector, and changes nothing', (inspect) => {
  expect(() => createAgentTasks({ inspect: inspect as never })).toThrow(
    /^options.inspect: .* a function, or an observer/,
  )
})
