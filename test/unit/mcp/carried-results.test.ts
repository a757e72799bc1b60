/** What becomes of the leases of one answer. */
import { AsyncTaskManager, AsyncTaskReminderService } from 'agent-tasks'
import { expect, it } from 'vitest'
import { addImages, addOwed, CarriedResults, withText } from '../../../src/mcp/carried-results.js'

/** Two results, each in a lease of the answer, that end with it. */
function carrying() {
  const manager = new AsyncTaskManager()
  const carried = new CarriedResults()
  const ids = ['a', 'b']
  for (const id of ids) {
    manager.registerTask({ id, subagentName: 'helper', goalPrompt: 'g' })
    manager.completeTask(id, {})
    const lease = manager.lease({ taskIds: [id] })!
    carried.hold({ ...lease, taskIds: [id] })
  }
  const deliveries = () => ids.map((id) => manager.getTask(id)?.delivery)
  return { manager, carried, deliveries }
}

it('A5: results of an answer that was written are delivered, and what ends it again changes nothing', () => {
  const { carried, deliveries } = carrying()
  expect([carried.taskIds, deliveries()]).toEqual([
    ['a', 'b'],
    ['leased', 'leased'],
  ])
  carried.end(true)
  expect([carried.taskIds, deliveries()]).toEqual([[], ['delivered', 'delivered']])
  carried.end(false)
  expect(deliveries()).toEqual(['delivered', 'delivered'])
})

it('A5: results of an answer that was lost are owed at once, and a later end does not take them from their next answer', () => {
  const { manager, carried, deliveries } = carrying()
  carried.end(false)
  expect([carried.taskIds, deliveries()]).toEqual([[], ['owed', 'owed']])
  const next = manager.lease({ taskIds: ['a', 'b'] })
  carried.end(true)
  expect(deliveries()).toEqual(['leased', 'leased'])
  next?.release()
})

it('each lease ends once, though the call and its connection both end the answer', () => {
  const carried = new CarriedResults()
  const ends: string[] = []
  const lease = { taskIds: ['a'], acknowledge: () => ends.push('acknowledged'), release: () => ends.push('released') }
  carried.hold(lease)
  carried.hold(lease)
  expect(carried.taskIds).toEqual(['a'])
  carried.end(false)
  carried.end(true)
  expect(ends).toEqual(['released', 'released'])
})

const IMAGE = { type: 'image', data: 'AAAA', mimeType: 'image/png' } as const
const TEXT = { type: 'text', text: 'the result' } as const

it('what is owed is added to a result once, for both its readers, and to nothing else', async () => {
  const manager = new AsyncTaskManager()
  const reminders = new AsyncTaskReminderService(manager)
  const add = (result: object, carried = new CarriedResults()) => addOwed(result as never, carried, reminders, 'main')
  const result = { content: [TEXT], structuredContent: { text: 'the result', more: 1 } }
  expect(await add(result)).toBe(result)
  manager.registerTask({ id: 'a', subagentName: 'helper', goalPrompt: 'g' })
  manager.completeTask('a', { final_message: 'the answer' })
  const task = { taskId: 'a' }
  expect(await add(task)).toBe(task)
  expect(manager.getTask('a')?.delivery).toBe('owed')
  const carried = new CarriedResults()
  const added = (await add(result, carried)) as unknown as typeof result
  expect([carried.taskIds, manager.getTask('a')?.delivery]).toEqual([['a'], 'leased'])
  const [first, owed, ...more] = added.content
  expect([first, more, owed?.text]).toEqual([TEXT, [], expect.stringContaining('the answer')])
  expect(added.structuredContent).toEqual({ text: `the result\n\n${owed?.text}`, more: 1 })
  // Until it is known whether it has arrived, no other answer has it.
  expect(await add(result)).toBe(result)
  carried.end(false)
  expect(await add({ content: [] }, carried)).toEqual({ content: [{ type: 'text', text: owed?.text }] })
  carried.end(true)
  expect(manager.getTask('a')?.delivery).toBe('delivered')
})

it('images follow the rest of a result of a tool, and are added to nothing else', () => {
  const result = { content: [TEXT], isError: false }
  expect(addImages(result, [IMAGE, IMAGE])).toEqual({ content: [TEXT, IMAGE, IMAGE], isError: false })
  expect(addImages(result, [])).toBe(result)
  const task = { taskId: 'a' } as never
  expect(addImages(task, [IMAGE])).toBe(task)
  const structured = { text: 1, other: 'x' }
  expect([withText(structured, 'more'), withText({ text: 'a', b: 1 }, 'c')]).toEqual([
    structured,
    { text: 'a\n\nc', b: 1 },
  ])
})
