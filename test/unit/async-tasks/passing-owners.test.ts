/** Owners that come, get one message, and are never seen again: what is kept of them has limits in number and time (A7, K5). */
import { expect, it, onTestFinished } from 'vitest'
import { AsyncTaskManager, createAgentTasks } from '../../../src/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import { pushSubscribers } from '../../../src/features/delivery/push-subscribers.js'

const DAY_MS = 86_400_000
/** A result that takes 8 MiB. */
const LARGE = { final_message: 'x'.repeat(4 * 1024 * 1024) }
const tick = (): Promise<void> => Promise.resolve().then(() => undefined)

function setUp() {
  const memory = memoryStore()
  const clock = createManualClock()
  const manager = new AsyncTaskManager({ store: memory, clock, maxAsyncTasks: 5 })
  onTestFinished(() => manager.dispose())
  const visit = async (nth: number, output = {}): Promise<string> => {
    const [id, owner] = [`task-${nth}`, `owner-${nth}`]
    manager.registerTask({ id, subagentName: 'agent', goalPrompt: 'goal', owner })
    manager.completeTask(id, output)
    await tick()
    const lease = manager.lease({ owner })
    lease?.acknowledge()
    await tick()
    return lease?.deliveryId ?? ''
  }
  return { memory, clock, manager, visit }
}

it('A7, K5: the records of the last messages with 64 MiB of results are kept', async () => {
  const { memory, manager, visit } = setUp()
  const ids: string[] = []
  for (let nth = 0; nth < 20; nth += 1) ids.push(await visit(nth, LARGE))
  expect(memory.contents().deliveries.map(({ id }) => id)).toEqual(ids.slice(-7))
  expect(manager.confirm(ids[12] ?? '')).toBe(false)
  expect(manager.confirm(ids[13] ?? '')).toBe(true)
})

it('A7, K5: a message that was sent a day ago counts as confirmed when another one is accepted', async () => {
  const { memory, clock, visit } = setUp()
  const first = await visit(0)
  clock.advance(DAY_MS)
  const second = await visit(1)
  expect(memory.contents().deliveries.map(({ id }) => id)).toEqual([first, second])
  clock.advance(1)
  const third = await visit(2)
  expect(memory.contents().deliveries.map(({ id }) => id)).toEqual([second, third])
})

it('K5: a message that was accepted late counts as one of the last', async () => {
  const { memory, manager, visit } = setUp()
  manager.registerTask({ id: 'slow', subagentName: 'agent', goalPrompt: 'goal', owner: 'slow' })
  manager.completeTask('slow', LARGE)
  await tick()
  const lease = manager.lease({ owner: 'slow' })
  for (let nth = 0; nth < 10; nth += 1) await visit(nth, LARGE)
  lease?.acknowledge()
  await visit(10, LARGE)
  expect(memory.contents().deliveries).toHaveLength(7)
  expect(manager.confirm(lease?.deliveryId ?? '')).toBe(true)
})

it('A7: releaseOwner keeps nothing of an owner, with a store', async () => {
  const { memory, manager, visit } = setUp()
  for (let nth = 0; nth < 30; nth += 1) {
    await visit(nth)
    manager.releaseOwner(`owner-${nth}`)
  }
  await tick()
  expect(memory.contents().deliveries).toEqual([])
  await manager.dispose()
  expect(memory.contents().tasks).toHaveLength(10)
})

it('A7: without a store, the owners of the last 100,000 turns are known, and a turn makes one known again', () => {
  const tasks = createAgentTasks()
  onTestFinished(() => tasks.dispose())
  const subscribers = tasks.getAsyncTaskManager().registry.use(pushSubscribers)
  const turn = (owner: string): void => {
    tasks.beforeTurn(owner)
    tasks.afterTurn(owner, { accepted: true })
  }
  for (let nth = 0; nth < 100_000; nth += 1) turn(`owner-${nth}`)
  turn('owner-0')
  turn('new')
  expect(['owner-0', 'owner-1', 'owner-2', 'new'].map((owner) => subscribers.has(owner))).toEqual([
    ...[true, false, true, true],
  ])
  turn('owner-1')
  expect(subscribers.has('owner-1')).toBe(true)
  tasks.getAsyncTaskManager().releaseOwner('owner-1')
  expect(subscribers.has('owner-1')).toBe(false)
})

it('A7, K5: a record that an unconfirmed message has held is pruned when the message is confirmed', async () => {
  const { manager } = setUp()
  for (let nth = 0; nth < 12; nth += 1) {
    manager.registerTask({ id: `task-${nth}`, subagentName: 'agent', goalPrompt: 'goal' })
    manager.completeTask(`task-${nth}`, {})
  }
  await tick()
  const lease = manager.lease()
  lease?.acknowledge()
  await tick()
  expect(manager.getAllTasks()).toHaveLength(12)
  expect(manager.confirm(lease?.deliveryId ?? '')).toBe(true)
  expect(manager.getAllTasks().map(({ id }) => id)).toEqual(Array.from({ length: 10 }, (_, nth) => `task-${nth + 2}`))
})
