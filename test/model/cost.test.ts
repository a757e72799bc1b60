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

describe('a wait', () => {
  const task = (id: string) => ({ id, subagentName: 'helper', goalPrompt: 'help' })

  const costOfEnd = (waits: (manager: AsyncTaskManager, ids: readonly string[]) => void, count: number): number => {
    const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock: createManualClock() })
    const ids = Array.from({ length: count }, (_, n) => `task-${n}`)
    for (const id of ids) manager.registerTask(task(id))
    waits(manager, ids)
    const visits = countVisits(() => void manager.completeTask('task-1', {}))
    void manager.dispose()
    return visits
  }

  it.each<[string, (manager: AsyncTaskManager, ids: readonly string[]) => void]>([
    ['one wait for all of them', (manager, ids) => void manager.waitFor(ids)],
    ['one wait for the first that ends', (manager, ids) => void manager.waitFor(ids.slice(2), { mode: 'any' })],
    ['a wait for each', (manager, ids) => ids.forEach((id) => void manager.waitFor([id]))],
  ])('A10: an end among 1,000 waited-for tasks visits as many elements as among 10: %s', (_what, waits) => {
    expect(costOfEnd(waits, 1000)).toBe(costOfEnd(waits, 10))
  })

  it('A10: that was aborted leaves nothing on its task', async () => {
    const costAfter = async (count: number): Promise<number> => {
      const manager = new AsyncTaskManager({ maxAsyncTasks: -1, clock: createManualClock() })
      manager.registerTask(task('a'))
      const controllers = Array.from({ length: count }, () => new AbortController())
      const waits = controllers.map(({ signal }) => manager.waitFor(['a'], { signal }))
      for (const controller of controllers) controller.abort()
      await Promise.allSettled(waits)
      const visits = countVisits(() => void manager.completeTask('a', {}))
      void manager.dispose()
      return visits
    }
    expect(await costAfter(1000)).toBe(await costAfter(1))
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
