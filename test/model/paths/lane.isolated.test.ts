/**
 * Every way through the machine of a lane, taken by the task manager that owns it: L1 to L4, S3, S5.
 *
 * The tasks in the lane are part of the world, not of the machine: here the events say whether a task is queued.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { laneMachine, type LaneEvent, type LaneHost } from '../../../machines/lane.js'
import { createCommandHost, type HostCall } from '../../support/command-host.js'
import { watchState } from '../../support/watched-xstate.js'
import { everyWay, takeEach, type Way } from './ways.js'

vi.mock('xstate', () => import('../../support/watched-xstate.js').then(({ watchedXState }) => watchedXState()))

/** `more`: whether a command can be started then. */
type Event = LaneEvent & { readonly more?: boolean }

const TIMEOUT_MS = 200
const GRACE_MS = 1_000

const events: readonly Event[] = [
  { type: 'lane.wake', more: true },
  { type: 'lane.wake', more: false },
  { type: 'call.settled', more: true },
  { type: 'call.settled', more: false },
  { type: 'call.abort' },
  { type: 'call.timedOut' },
]

const idleHost: LaneHost = {
  hasNext: () => false,
  startCall: () => undefined,
  abortCall: () => undefined,
  timeOutCall: () => undefined,
}

const machine = laneMachine.provide({
  guards: { hasNext: ({ event }) => 'more' in event && event.more === true },
})

const ways = everyWay(machine, {
  input: { instanceId: 'one', host: idleHost },
  events,
  // Nothing settles and nothing is aborted where nothing is in flight.
  canHappen: (snapshot, { type }) => !type.startsWith('call.') || !snapshot.matches('idle'),
})

/** How a call that was given up ends: its tool stops, or its grace period passes. */
type Ending = (call: HostCall, advance: (ms: number) => void) => void

const endings: readonly [string, Ending][] = [
  ['that stop', (call) => call.finish()],
  ['that do not', (_, advance) => advance(GRACE_MS)],
]

async function take(way: Way<Event>, endGivenUp: Ending): Promise<void> {
  const host = createCommandHost({ commandTimeout: TIMEOUT_MS, abortGraceMs: GRACE_MS })
  host.connect()
  const order: string[] = []
  const isQueued = (id: string): boolean => host.tasks.getTask(id)?.status === 'queued'
  const isRunning = (id: string): boolean => host.tasks.getTask(id)?.status === 'running'
  const submit = (): string => {
    const id = host.submit(`task ${order.length}`)
    order.push(id)
    return id
  }
  const setMore = (more: boolean): void => {
    const waiting = order.filter(isQueued)
    if (!more) for (const id of waiting) host.tasks.cancelTask(id)
    else if (waiting.length === 0) submit()
  }
  let settled = 0
  for (const { event, before, after } of way.steps) {
    const call = host.calls.at(-1)
    if (event.type === 'call.timedOut') host.clock.advance(TIMEOUT_MS)
    else if (event.type === 'lane.wake') {
      // Submitting wakes a lane; a task that is cancelled before the lane starts it leaves nothing to do.
      const id = submit()
      if (event.more !== true) host.tasks.cancelTask(id)
    } else if (event.type === 'call.abort') host.tasks.cancelTask(order.find(isRunning) ?? '')
    else {
      setMore(event.more === true)
      await host.settle()
      if (call !== undefined && before.matches('calling')) call.finish()
      else if (call !== undefined) endGivenUp(call, (ms) => host.clock.advance(ms))
      settled += 1
    }
    await host.settle()
    expect(watchState('lane.one')(), event.type).toEqual(after.value)
    // L1, L3, S3: one call in flight, also while one that was given up stops.
    expect(host.calls.length - settled).toBe(after.matches('idle') ? 0 : 1)
    // L3, S5: a call that is given up is aborted.
    expect(host.calls.at(-1)?.signal.aborted ?? false).toBe(
      after.matches('releasing') || (after.matches('idle') && before.matches('releasing')),
    )
  }
  // L2: in the order of submission.
  const called = host.calls.map(({ name }) => Number(name.slice('task '.length)))
  expect(called).toEqual([...called].sort((a, b) => a - b))
  await host.dispose()
  expect(host.clock.pending).toBe(0)
}

describe('every way through the machine of a lane', () => {
  beforeEach(() => void vi.spyOn(console, 'warn').mockImplementation(() => undefined))
  afterEach(() => void vi.restoreAllMocks())

  it.each(endings)('L1 to L4, S3, S5: by the task manager, with tools %s when they are given up', (_, end) =>
    takeEach(laneMachine, ways, (way) => take(way, end)),
  )
})
