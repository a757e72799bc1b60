/** A7: a task whose record was pruned is not one that never existed, to anyone who looks it up. */
import { describe, expect, it } from 'vitest'
import { createAgentTasks } from '../../../src/index.js'
import { PrunedTasks } from '../../../src/features/history/pruned-tasks.js'
import { createManualClock } from '../../../src/testing/index.js'

const entry = (id: string, owner = 'main') =>
  ({ record: { id, owner, subagentName: 'gold', goalPrompt: 'dig', status: 'cancelled' } }) as never

describe('the tasks that were pruned', () => {
  it('A7: are found by their id, or by what only one of them begins with, for their owner', () => {
    const pruned = new PrunedTasks()
    pruned.pruned(entry('gold-1'), 5)
    pruned.pruned(entry('gold-12', 'other'), 6)
    expect(pruned.find('gold-1')?.prunedAt).toBe(5)
    expect(pruned.find('gold')).toBeUndefined()
    expect(pruned.find('')).toBeUndefined()
    expect(pruned.find('gold', 'other')?.id).toBe('gold-12')
    expect(pruned.find('gold-1', 'other')?.id).toBe('gold-12')
    expect(pruned.find('gold-12', 'main')).toBeUndefined()
  })

  it('A7: are the latest thousand, each with its last time', () => {
    const pruned = new PrunedTasks()
    for (let n = 0; n < 1000; n += 1) pruned.pruned(entry(`t${n}.`), n)
    pruned.pruned(entry('t0.'), 5000)
    pruned.pruned(entry('new'), 5001)
    expect(pruned.find('t0.')?.prunedAt).toBe(5000)
    expect(pruned.find('t1.')).toBeUndefined()
    expect(pruned.find('t2.')?.prunedAt).toBe(2)
  })

  it('A7: are remembered since their last time, when their id was given again', () => {
    const pruned = new PrunedTasks()
    pruned.pruned(entry('again.'), 1)
    pruned.pruned(entry('again.'), 2)
    for (let n = 0; n < 999; n += 1) pruned.pruned(entry(`t${n}.`), 3)
    expect(pruned.find('again.')?.prunedAt).toBe(2)
    pruned.pruned(entry('new.'), 4)
    expect(pruned.find('again.')).toBeUndefined()
  })
})

describe('a host with room for one task', () => {
  const PRUNED = 'Task gold-4 (gold) has ended, and its record was pruned at 1970-01-01T00:00:05.000Z.'

  it('A7: keeps what it has delivered while others are owed, and says of what was pruned when', async () => {
    const clock = createManualClock(5000)
    const tasks = createAgentTasks({ maxAsyncTasks: 1, clock, subagents: {} })
    const manager = tasks.getAsyncTaskManager()
    for (let n = 1; n <= 6; n += 1) manager.registerTask({ id: `gold-${n}`, subagentName: 'gold', goalPrompt: 'dig' })
    for (let n = 1; n <= 6; n += 1) manager.completeTask(`gold-${n}`, { final_message: 'found' })
    const check = async (id: string) => (await tasks.tools.check_async_tasks.execute({ task_id: id })).llmContent
    manager.lease({ taskIds: ['gold-1'] })?.acknowledge()
    expect(await check('gold-1')).toContain('"final_message": "found"')
    for (const n of [4, 5, 6]) manager.markNotified(`gold-${n}`)
    manager.cancelTask('gold-1')
    for (const n of [2, 3]) manager.markNotified(`gold-${n}`)
    manager.setMaxAsyncTasks(0)
    clock.advance(1000)
    expect(await check('gold-4')).toBe(PRUNED)
    expect(await check('nope')).toBe("No async task found with ID or prefix 'nope'.")
    const { tools, commands } = tasks
    expect((await tools.wait_for_async_tasks.execute({ task_ids: ['gold-4'] })).llmContent).toBe(PRUNED)
    expect((await tools.send_to_task.execute({ task_id: 'gold-4', message: 'hi' })).llmContent).toBe(PRUNED)
    const task = commands.find(({ name }) => name === 'task')
    expect(task?.run('end gold-4')).toEqual({ type: 'error', text: PRUNED })
    manager.registerTask({ id: 'gold-4', subagentName: 'gold', goalPrompt: 'dig' })
    expect(await check('gold-4')).toContain('"status": "running"')
    await tasks.dispose()
  })
})
