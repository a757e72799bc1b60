/** Every way through the machine of an instance, taken by the instance manager that owns it: I1 to I4. */
import { describe, expect, it, vi } from 'vitest'
import {
  instanceMachine,
  type InstanceEvent,
  type InstanceHost,
  type InstanceTiming,
} from '../../../machines/instance.js'
import type { Instance, InstanceConnection } from '../../../src/command-tasks/instances/instance.js'
import { InstanceManager } from '../../../src/command-tasks/instances/instance-manager.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { watchState } from '../../support/watched-xstate.js'
import { elapsed, everyWay, takeEach, type Elapsed, type Way } from './ways.js'

vi.mock('xstate', () => import('../../support/watched-xstate.js').then(({ watchedXState }) => watchedXState()))

type Event = InstanceEvent | Elapsed<'connectTimeout' | 'liveness'>

const LIMIT_MS = 1_000

const host: InstanceHost = { failCalls: () => undefined }

const events: readonly Event[] = [
  { type: 'connection.opened' },
  { type: 'connection.alive' },
  { type: 'connection.takenOver' },
  { type: 'connection.lost' },
  { type: 'instance.disconnect' },
  elapsed(instanceMachine, 'connectTimeout'),
  elapsed(instanceMachine, 'liveness'),
]

const timings: readonly InstanceTiming[] = [
  {},
  { connectTimeoutMs: LIMIT_MS },
  { livenessMs: LIMIT_MS },
  { connectTimeoutMs: LIMIT_MS, livenessMs: LIMIT_MS },
]

async function take(way: Way<Event>, timing: InstanceTiming): Promise<void> {
  const clock = createManualClock(1_000)
  const manager = new InstanceManager({ clock, onError: () => undefined })
  const heard: string[] = []
  manager.onConnect((id) => heard.push(`${id} connected`))
  manager.onDisconnect((id) => heard.push(`${id} disconnected`))
  let emit: Parameters<InstanceConnection['onEvent']>[0] = () => undefined
  let lose: (reason: string) => void = () => undefined
  const failCalls = vi.fn()
  const close = vi.fn(() => Promise.resolve())
  const instance: Instance = {
    id: 'x',
    kind: 'websocket',
    listTools: () => Promise.resolve([]),
    callTool: () => Promise.reject(new Error('nobody calls')),
    onLost: (onLost) => (lose = onLost),
    connection: { timing, onEvent: (listener) => (emit = listener), failCalls },
    close,
  }
  const entry = manager.connect(instance)
  const state = watchState('instance.x')
  expect(state()).toEqual(way.start.value)
  let takeovers = 0
  for (const { event, before, after } of way.steps) {
    if ('delay' in event) clock.advance(LIMIT_MS)
    else if (event.type === 'connection.lost') lose('It went.')
    else if (event.type === 'instance.disconnect') {
      expect(await manager.disconnect('x')).toBe(before.status === 'active')
    } else emit(event.type)
    for (let turn = 0; turn < 5; turn += 1) await Promise.resolve()
    if (event.type === 'connection.takenOver' && before.matches('connected')) takeovers += 1
    expect(state(), event.type).toEqual(after.value)
    expect(after.matches(entry.state)).toBe(true)
    // I1: it ends once, is removed, and is closed once. I4: a take-over fails the calls and is not a loss.
    const hasEnded = after.status !== 'active'
    expect(manager.get('x') === undefined).toBe(hasEnded)
    expect(close).toHaveBeenCalledTimes(hasEnded ? 1 : 0)
    expect(failCalls).toHaveBeenCalledTimes(takeovers + (hasEnded ? 1 : 0))
    expect(heard).toEqual([
      ...(entry.connectedAt === undefined ? [] : ['x connected']),
      ...(hasEnded ? ['x disconnected'] : []),
    ])
    if (hasEnded) expect(clock.pending, 'timers after the end').toBe(0)
  }
  await manager.dispose()
  expect(clock.pending).toBe(0)
}

describe('every way through the machine of an instance', () => {
  it.each(timings)('I1 to I4: by the instance manager, with the limits %j', (timing) =>
    takeEach(instanceMachine, everyWay(instanceMachine, { input: { timing, host }, events }), (way) =>
      take(way, timing),
    ),
  )
})
