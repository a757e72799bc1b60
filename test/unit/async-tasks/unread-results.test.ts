/** Results that were cut, and whose rest was not read: they are kept besides the history, within bounds of their own. */
import { expect, it } from 'vitest'
import { AsyncTaskManager, AsyncTaskReminderService } from 'agent-tasks'

/** With the limit 1 two ended tasks are kept. */
function setUp() {
  const manager = new AsyncTaskManager({ maxAsyncTasks: 1 })
  const reminders = new AsyncTaskReminderService(manager)
  const end = (id: string, chars: number): string => {
    manager.registerTask({ id, subagentName: 'talker', goalPrompt: 'talk' })
    manager.completeTask(id, { final_message: 'x'.repeat(chars) })
    const reminder = reminders.leaseReminder()
    reminder?.acknowledge()
    return reminder?.deliveryId ?? ''
  }
  const ids = (): string[] => manager.getAllTasks().map(({ id }) => id)
  return { manager, end, ids }
}

it('A7: take no place of the records that end later', () => {
  const { manager, end, ids } = setUp()
  for (const id of ['long-1', 'long-2', 'long-3']) end(id, 50_000)
  manager.registerTask({ id: 'stopped', subagentName: 'talker', goalPrompt: 'talk' })
  manager.cancelTask('stopped')
  const deliveryId = end('short', 10)
  expect(ids()).toEqual(['long-1', 'long-2', 'long-3', 'stopped', 'short'])
  expect(manager.redeliver(deliveryId)).toBe(true)
})

it('A7: have at most 64 MiB, and the newest are kept', () => {
  const { end, ids } = setUp()
  // A character is counted as two bytes.
  for (const id of ['long-1', 'long-2', 'long-3']) end(id, 15_000_000)
  for (const id of ['a', 'b']) end(id, 10)
  expect(ids()).toEqual(['long-2', 'long-3', 'a', 'b'])
})

it('A7: a result of more than that has a place in the history, and no other', () => {
  const { end, ids } = setUp()
  end('long', 50_000)
  end('too-long', 40_000_000)
  expect(ids()).toEqual(['long', 'too-long'])
  for (const id of ['a', 'b']) end(id, 10)
  expect(ids()).toEqual(['long', 'a', 'b'])
})
