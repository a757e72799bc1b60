/** Notes: texts that are owed although no run has produced them. */
import { describe, expect, it } from 'vitest'
import { createAgentTasks } from '../../../src/index.js'
import { AsyncTaskManager } from '../../../src/async-tasks/manager.js'
import { AsyncTaskReminderService } from '../../../src/features/delivery/reminder-service.js'
import { addNote, MAX_OWED_NOTES } from '../../../src/features/notes/notes.js'
import { memoryStore } from '../../../src/store/index.js'
import { createWaitForAsyncTasksTool } from '../../../src/tools/index.js'

const note = { owner: 'main', source: 'schedule', title: 'stand-up', text: 'It is nine.' } as const

describe('a note', () => {
  it('is owed at once, takes no slot, and is delivered once', () => {
    const manager = new AsyncTaskManager({ maxAsyncTasks: 1 })
    manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g' })
    const { record } = addNote(manager.registry, note) ?? {}
    expect(record).toMatchObject({
      isNote: true,
      owner: 'main',
      subagentName: 'schedule',
      status: 'completed',
      delivery: 'owed',
    })
    expect(manager.actor.getSnapshot()).toMatchObject({ running: 1, slots: 1, owed: 1 })
    const reminders = new AsyncTaskReminderService(manager)
    const lease = reminders.leaseReminder()
    expect(lease?.text).toContain(`Note ${record?.id} (schedule, "stand-up"):`)
    expect(lease?.text).toContain('"note": "It is nine."')
    expect(lease?.text).toContain('1 note(s):')
    expect(lease?.text).not.toContain('async task(s) completed')
    lease?.acknowledge()
    expect(reminders.leaseReminder()).toBeUndefined()
    expect(reminders.generateStatusSummary()).not.toContain('schedule')
  })

  it('is counted beside the results of a message', () => {
    const manager = new AsyncTaskManager()
    manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g' })
    manager.completeTask('a', { final_message: 'done' })
    addNote(manager.registry, note)
    expect(new AsyncTaskReminderService(manager).generateReminder('main')).toContain(
      '1 async task(s) completed, 1 note(s):',
    )
  })

  it('is refused when the owner is owed too many, unless it is the last of its kind', () => {
    const manager = new AsyncTaskManager()
    for (let count = 0; count < MAX_OWED_NOTES; count += 1) expect(addNote(manager.registry, note)).toBeDefined()
    expect(addNote(manager.registry, note)).toBeUndefined()
    expect(addNote(manager.registry, { ...note, owner: 'other' })).toBeDefined()
    expect(addNote(manager.registry, { ...note, isFinal: true })).toBeDefined()
  })

  it('is no task that has ended: neither settled$ nor onTaskCompleted has it', async () => {
    const tasks = createAgentTasks({ subagents: { helper: () => 'done' } })
    const { manager } = tasks
    const settled: string[] = []
    manager.settled$.subscribe(({ id }) => settled.push(id))
    manager.onTaskCompleted(({ id }) => settled.push(id))
    tasks.schedule({ in: 0, message: 'It is nine.' })
    await expect.poll(() => manager.getAllTasks().filter(({ isNote }) => isNote === true)).toHaveLength(1)
    const { id, result } = tasks.launch('helper', 'x')
    await result
    expect(settled).toEqual([id, id])
    await tasks.dispose()
  })

  it('changes nothing after the registry was disposed', async () => {
    const manager = new AsyncTaskManager()
    await manager.dispose()
    expect(addNote(manager.registry, note)).toBeUndefined()
  })

  it('is stored in one write, and is owed and told as a note after a restart', async () => {
    const store = memoryStore()
    const writes: number[] = []
    const counting = {
      ...store,
      write: (changes: Parameters<typeof store.write>[0]) => {
        writes.push(changes.length)
        return store.write(changes)
      },
    }
    const manager = new AsyncTaskManager({ store: counting })
    addNote(manager.registry, note)
    manager.registry.persistence?.keepState('schedules', '1', { next: 7 })
    await manager.registry.persistence?.stored()
    expect(writes).toEqual([2])
    const later = new AsyncTaskManager({ store: store.copy() })
    await later.recovered
    expect(new AsyncTaskReminderService(later).leaseReminder()?.text).toContain('(schedule, "stand-up"):')
    expect(addNote(later.registry, note)).toBeDefined()
  })
})

describe('a wait', () => {
  it('ends when a note comes, and says so', async () => {
    const manager = new AsyncTaskManager()
    manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g' })
    const tool = createWaitForAsyncTasksTool({ getAsyncTaskManager: () => manager, owner: 'main' })
    const waiting = tool.execute({})
    addNote(manager.registry, { ...note, owner: 'other' })
    addNote(manager.registry, note)
    expect((await waiting).llmContent).toContain('The wait has ended because a note came.')
    expect(manager.getTask('a')?.status).toBe('running')
  })

  it('returns at once with a note that is owed, also when other tasks run', async () => {
    const manager = new AsyncTaskManager()
    manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g' })
    addNote(manager.registry, note)
    const { llmContent } = await createWaitForAsyncTasksTool({
      getAsyncTaskManager: () => manager,
      owner: 'main',
    }).execute({})
    expect(llmContent).toContain('It is nine.')
    expect(manager.getPendingNotifications()).toEqual([])
  })
})

it('the result of a tool carries a note at once, also where results are never overdue', async () => {
  const tasks = createAgentTasks({ maxDelayMs: Infinity })
  tasks.manager.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g' })
  const waiting = tasks.tools.wait_for_async_tasks.execute({ task_ids: ['a'] })
  addNote(tasks.manager.registry, note)
  const { llmContent } = await waiting
  expect(llmContent).toContain('The wait has ended because a note came.')
  expect(llmContent).toContain('It is nine.')
  expect(tasks.manager.getPendingNotifications()).toEqual([])
  await tasks.dispose()
})

describe('the states of a feature', () => {
  it('are those of its own name, without what it has dropped', async () => {
    const store = memoryStore()
    const manager = new AsyncTaskManager({ store })
    const { persistence } = manager.registry
    persistence?.keepState('alarms', 'a', { at: 1 })
    persistence?.keepState('alarms', 'b/c', { at: 2 })
    persistence?.keepState('other', 'a', { at: 3 })
    await persistence?.stored()
    persistence?.dropState('alarms', 'a')
    await persistence?.stored()
    expect(store.contents().featureStates.map(({ id }) => id)).toEqual(['alarms/b/c', 'other/a'])
    const later = new AsyncTaskManager()
    const restored: [string, unknown][][] = []
    later.registry.use(() => ({ states: { feature: 'alarms', restore: (states) => restored.push([...states]) } }))
    later.registry.restoreStates(store.contents().featureStates)
    expect(restored).toEqual([[['b/c', { at: 2 }]]])
  })
})
