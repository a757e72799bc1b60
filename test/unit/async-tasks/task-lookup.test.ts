/** A task is found by its id or a prefix of it, and only among the tasks of its owner. */
import { describe, expect, it } from 'vitest'
import { AsyncTaskManager } from '../../../src/async-tasks/manager.js'
import { createCheckAsyncTasksTool } from '../../../src/tools/check-async-tasks.js'
import { lookUpTask, shortTaskIds, visibleTasks } from '../../../src/features/task-ids/task-lookup.js'
import { listedIds } from '../../../src/features/task-ids/listed-ids.js'

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

describe('a short id that was shown', () => {
  const register = (manager: AsyncTaskManager, id: string) =>
    manager.registerTask({ id, subagentName: 'helper', goalPrompt: '' })
  const show = (manager: AsyncTaskManager) => manager.getAllTasks().map(shortTaskIds(manager))

  it('A4: means the same task while its record is kept, whichever tasks come later', () => {
    const manager = new AsyncTaskManager()
    register(manager, 'researcher-a1')
    expect(show(manager)).toEqual(['research'])
    register(manager, 'researcher-b2')
    expect(show(manager)).toEqual(['research', 'researcher-b'])
    expect(idOf(lookUpTask(manager, 'research'))).toBe('researcher-a1')
    expect(lookUpTask(manager, 'researche').type).toBe('ambiguous')
    expect(lookUpTask(manager, 'research', 'sub').type).toBe('unknown')
    register(manager, 'research')
    expect(idOf(lookUpTask(manager, 'research'))).toBe('research')
    expect(show(manager)).toEqual(['researcher-a', 'researcher-b', 'research'])
  })

  it('is forgotten with the record of its task', () => {
    const manager = new AsyncTaskManager({ notifyCancelled: false, maxAsyncTasks: 0 })
    register(manager, 'researcher-a1')
    show(manager)
    const listed = manager.registry.use(listedIds)
    expect([listed.idOf('research'), listed.shortOf('researcher-a1')]).toEqual(['researcher-a1', 'research'])
    manager.cancelTask('researcher-a1')
    expect(manager.getTask('researcher-a1')).toBeUndefined()
    expect([listed.idOf('research'), listed.shortOf('researcher-a1')]).toEqual([undefined, undefined])
  })

  it('cancels no later task once its own is gone: a model has to read the new one first', async () => {
    const manager = new AsyncTaskManager({ maxAsyncTasks: 0 })
    const check = createCheckAsyncTasksTool({ getAsyncTaskManager: () => manager })
    const cancel = () => check.execute({ task_id: 'research', action: 'cancel' })
    register(manager, 'researcher-a1')
    expect((await check.execute({})).llmContent).toContain('[research]')
    manager.cancelTask('researcher-a1')
    expect(manager.getTask('researcher-a1')).toBeUndefined()
    register(manager, 'researcher-b2')
    expect((await cancel()).error?.message).toMatch(/^Nothing was cancelled: 'research' is short for researcher-b2, /)
    expect(manager.getTask('researcher-b2')?.status).toBe('running')
    await check.execute({})
    expect((await cancel()).metadata).toMatchObject({ id: 'researcher-b2', cancelled: true })
    await manager.dispose()
  })
})
