/** A task is found by its id or a prefix of it, and only among the tasks of its owner. */
import { describe, expect, it } from 'vitest'
import { AsyncTaskManager } from '../../../src/async-tasks/manager.js'
import { lookUpTask, shortTaskIds, visibleTasks } from '../../../src/async-tasks/task-lookup.js'

function managerWith(tasks: Record<string, string>) {
  const manager = new AsyncTaskManager({ maxAsyncTasks: -1 })
  for (const [id, owner] of Object.entries(tasks)) {
    manager.registerTask({ id, subagentName: 'helper', goalPrompt: 'do it', owner })
  }
  return manager
}

const idOf = (lookup: ReturnType<typeof lookUpTask>): string | undefined =>
  lookup.type === 'found' ? lookup.task.id : undefined

describe('looking a task up', () => {
  it('prefers an exact id to a longer one that starts with it', () => {
    expect(idOf(lookUpTask(managerWith({ 'task-10': 'main', 'task-1': 'main' }), 'task-1'))).toBe('task-1')
  })

  it('finds the only task with that prefix', () => {
    expect(idOf(lookUpTask(managerWith({ alpha: 'main', beta: 'main' }), 'al'))).toBe('alpha')
  })

  it('returns every candidate when there are several', () => {
    const found = lookUpTask(managerWith({ 'task-1': 'main', 'task-2': 'main', other: 'main' }), 'task')
    expect(found).toMatchObject({ type: 'ambiguous', candidates: [{ id: 'task-1' }, { id: 'task-2' }] })
  })

  it('finds nothing for an empty or an unknown prefix', () => {
    const manager = managerWith({ alpha: 'main' })
    expect(lookUpTask(manager, '').type).toBe('unknown')
    expect(lookUpTask(manager, 'alphabet').type).toBe('unknown')
  })

  it('finds only the tasks of the given owner', () => {
    const manager = managerWith({ 'task-1': 'main', 'task-2': 'sub' })
    expect(idOf(lookUpTask(manager, 'task', 'sub'))).toBe('task-2')
    expect(lookUpTask(manager, 'task-1', 'sub').type).toBe('unknown')
    expect(visibleTasks(manager, 'sub').map((task) => task.id)).toEqual(['task-2'])
    expect(visibleTasks(manager)).toHaveLength(2)
  })
})

it('short ids are unique among the tasks of every owner', () => {
  const manager = managerWith({ 'researcher-a1': 'main', 'researcher-b2': 'sub' })
  expect(visibleTasks(manager, 'sub').map(shortTaskIds(manager))).toEqual(['researcher-b'])
})
