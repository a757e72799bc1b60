/** What becomes of the leases of one answer. */
import { AsyncTaskManager } from 'agent-tasks'
import { expect, it } from 'vitest'
import { CarriedResults } from '../../../src/mcp/carried-results.js'

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
  carried.hold(lease as never)
  carried.hold(lease as never)
  expect(carried.taskIds).toEqual(['a'])
  carried.end(false)
  carried.end(true)
  expect(ends).toEqual(['released', 'released'])
})
