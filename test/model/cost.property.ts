/**
 * A10: the life of one task visits as many elements, reads the clock and sets timers at most as often, and makes as many transitions
 * among many other tasks as it does alone.
 *
 * A life: reserve, register or launch with a deadline, report, append, complete, lease, acknowledge, be pruned. The other tasks have
 * other owners; they run, are owed or leased, are kept, or hold reservations. Delivered results fill the history of the owner, so that a life
 * ends with the pruning of the oldest record.
 */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { createManualClock } from '../../src/testing/manual-clock.js'
import { createControllableEngine } from '../support/controllable-engine.js'
import type { Subject } from '../support/subject.js'
import { countVisits } from '../support/visits.js'

interface Crowd {
  readonly running: number
  readonly owed: number
  readonly leased: number
  readonly reserved: number
  /** Tasks that run, and for which somebody waits: for each alone, and for all of them. */
  readonly waitedFor: number
  /** Owners with a record that is kept. */
  readonly others: number
}

/** The history limit of an unlimited registry. */
const HISTORY = 10

const size = fc.integer({ min: 1, max: 20 })
const crowds: fc.Arbitrary<Crowd> = fc.record({
  running: size,
  owed: size,
  leased: size,
  reserved: size,
  waitedFor: size,
  others: size,
})
const noCrowd: Crowd = { running: 0, owed: 0, leased: 0, reserved: 1, waitedFor: 0, others: 0 }

export function costProperty(subject: Subject) {
  const measureAlone = (isLaunched: boolean): Record<string, number> => {
    // The first life pays for what is done once in a process, such as compiling a schema.
    measureLife(subject, noCrowd, isLaunched)
    return measureLife(subject, noCrowd, isLaunched)
  }
  const alone = { registered: measureAlone(false), launched: measureAlone(true) }
  assert.equal(alone.registered['retained'], HISTORY)
  return fc.property(crowds, fc.constantFrom('registered' as const, 'launched' as const), (crowd, kind) => {
    const measured = measureLife(subject, crowd, kind === 'launched')
    // Deadlines share a timer: in a crowd a life sets fewer, and reads the clock for fewer.
    const { timers = 0, readings = 0, ...others } = measured
    const { timers: timersAlone = 0, readings: readingsAlone = 0, ...othersAlone } = alone[kind]
    assert.ok(timers <= timersAlone && readings <= readingsAlone)
    assert.deepStrictEqual(others, { ...othersAlone, retained: retainedOf(crowd) })
  })
}

const retainedOf = ({ running, owed, leased, waitedFor, others }: Crowd): number =>
  HISTORY + running + owed + leased + waitedFor + others

function measureLife(subject: Subject, crowd: Crowd, isLaunched: boolean): Record<string, number> {
  const clock = createManualClock()
  const measured = { readings: 0, timers: 0, transitions: 0 }
  let created = 0
  const manager = subject.createManager({
    maxAsyncTasks: -1,
    engine: createControllableEngine(),
    createId: (prefix) => `${prefix}-${++created}`,
    clock: {
      now: () => {
        measured.readings += 1
        return clock.now()
      },
      setTimeout: (run, ms) => {
        measured.timers += 1
        return clock.setTimeout(run, ms)
      },
      clearTimeout: (timer) => clock.clearTimeout(timer),
    },
  })
  const reminders = subject.createReminders(manager)
  gather(manager, crowd)
  manager.transitions$.subscribe(() => (measured.transitions += 1))
  measured.readings = measured.timers = 0
  const visits = countVisits(() => {
    const reservation = manager.tryReserveAsyncSlot()!
    const input = { id: 'one', subagentName: 'agent', goalPrompt: '', owner: 'owner', timeoutMs: 1000 }
    if (isLaunched) manager.launch(input, () => ({}), reservation)
    else manager.registerTask(input, reservation)
    manager.reportProgress('one', 1)
    manager.appendOutput('one', 'text')
    manager.completeTask('one', {})
    reminders.leaseReminder({ owner: 'owner', exclusive: true })?.acknowledge()
  })
  const result = { visits, ...measured, retained: manager.getAllTasks().length }
  void manager.dispose()
  return result
}

function gather(manager: AsyncTaskManager, crowd: Crowd): void {
  const register = (owner: string, count: number): void => {
    for (let n = 0; n < count; n += 1) {
      manager.registerTask({ id: `${owner}-${n}`, subagentName: 'agent', goalPrompt: '', owner, timeoutMs: 1000 })
    }
  }
  const end = (owner: string, count: number): void => {
    register(owner, count)
    for (let n = 0; n < count; n += 1) manager.completeTask(`${owner}-${n}`, {})
  }
  end('owner', HISTORY)
  for (let n = 0; n < HISTORY; n += 1) manager.markNotified(`owner-${n}`)
  for (let n = 0; n < crowd.others; n += 1) {
    end(`other-${n}`, 1)
    manager.markNotified(`other-${n}-0`)
  }
  end('leased', crowd.leased)
  manager.lease({ owner: 'leased' })
  end('owed', crowd.owed)
  register('running', crowd.running)
  register('waited', crowd.waitedFor)
  const waited = Array.from({ length: crowd.waitedFor }, (_, n) => `waited-${n}`)
  for (const id of waited) void manager.waitFor([id])
  if (waited.length > 0) void manager.waitFor(waited)
  for (let n = 0; n < crowd.reserved; n += 1) manager.tryReserveAsyncSlot()
}
