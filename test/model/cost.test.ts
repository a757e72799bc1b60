/** A10: what one task's life costs. */
import { describe, expect, it } from 'vitest'
import { createActor, createMachine, raise } from 'xstate'
import { coreOf } from '../../src/async-tasks/core.js'
import { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { indexTimers } from '../../src/engine/timers.js'
import { createManualClock } from '../../src/testing/manual-clock.js'
import { checkProperty } from '../support/property.js'
import { createSubject } from '../support/subject.js'
import { countVisits } from '../support/visits.js'
import { costProperty } from './cost.property.js'

describe('the cost of one life', () => {
  it('A10: visits as many elements, reads the clock as often and tells as much in a crowd as alone', async () => {
    await checkProperty('cost', costProperty(createSubject()), { numRuns: 50 })
  })
})

describe('the timers of a crowd', () => {
  it('A10: are not looked through when a task ends, and its own deadline goes with it', async () => {
    const clock = createManualClock()
    const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
    const task = (id: string) => ({ id, subagentName: 'helper', goalPrompt: 'help', timeoutMs: 60_000 })
    for (let n = 0; n < 50; n += 1) manager.registerTask(task(`live-${n}`))
    const system = coreOf(manager).registry.system as unknown as { _snapshot: { _scheduledEvents: object } }
    let searches = 0
    const timers = system._snapshot._scheduledEvents
    const count = (): void => void (searches += 1)
    system._snapshot._scheduledEvents = new Proxy(timers, {
      ownKeys: (target) => (count(), Reflect.ownKeys(target)),
    })
    manager.registerTask(task('a'))
    expect(Object.keys(timers)).toHaveLength(51)
    expect(clock.pending).toBe(51)
    manager.completeTask('a', {})
    expect(searches).toBe(0)
    expect(Object.keys(timers)).toHaveLength(50)
    expect(clock.pending).toBe(50)
    await manager.dispose()
    expect(clock.pending).toBe(0)
  })

  it('are found by a search where one has no name', () => {
    const clock = createManualClock()
    const machine = createMachine({
      on: { set: { actions: [raise({ type: 'later' }, { delay: 1000 })] }, end: '.over' },
      initial: 'on',
      states: { on: { after: { 500: 'on' } }, over: { type: 'final' } },
    })
    const actor = createActor(machine, { clock })
    indexTimers(actor.system)
    actor.start()
    actor.send({ type: 'set' })
    expect(clock.pending).toBe(2)
    actor.send({ type: 'end' })
    expect(clock.pending).toBe(0)
  })
})

describe('the measure', () => {
  const array = Array.from({ length: 50 }, (_, n) => n)
  const set = new Set(array)
  const map = new Map(array.entries())

  it.each<[string, () => unknown]>([
    ['spreading an array', () => [...array]],
    ['spreading a set', () => [...set]],
    ['making an array from a map', () => Array.from(map.values(), (value) => value)],
    ['walking through a map', () => map.forEach(() => undefined)],
    ['filtering an array', () => array.filter(Boolean)],
    ['sorting an array', () => array.sort()],
    ['a loop over a map', () => Math.max(...map.keys())],
  ])('counts the elements of %s', (_what, walk) => {
    expect(countVisits(() => void walk())).toBeGreaterThanOrEqual(50)
    expect(countVisits(() => undefined)).toBe(0)
  })
})
