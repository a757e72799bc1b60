/** A10: the cost of one task's life. */
import { describe, expect, it } from 'vitest'
import { AsyncTaskManager } from '../../src/async-tasks/manager.js'
import { createManualClock } from '../../src/testing/manual-clock.js'
import { checkProperty } from '../support/property.js'
import { createSubject } from '../support/subject.js'
import { countVisits } from '../support/visits.js'
import { costProperty } from './cost.property.js'

describe('the cost of one life', () => {
  it('A10: visits as many elements, reads the clock as often and emits as much in a crowd as alone', async () => {
    await checkProperty('cost', costProperty(createSubject()), { numRuns: 50 })
  })
})

describe('the deadlines of a crowd', () => {
  it('A10: share one timer, and the deadline of a task goes with the task', async () => {
    const clock = createManualClock()
    const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock })
    const task = (id: string, timeoutMs: number) => ({ id, subagentName: 'helper', goalPrompt: 'help', timeoutMs })
    for (let n = 0; n < 50; n += 1) manager.registerTask(task(`live-${n}`, 60_000 + n))
    expect(clock.pending).toBe(1)
    manager.registerTask(task('a', 1000))
    manager.completeTask('a', {})
    expect(clock.pending).toBe(1)
    clock.advance(60_000)
    expect(manager.getAllTasks().filter(({ status }) => status === 'running')).toHaveLength(50)
    for (let n = 0; n < 50; n += 1) manager.completeTask(`live-${n}`, {})
    expect(clock.pending).toBe(0)
    await manager.dispose()
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
