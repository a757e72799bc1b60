/** K5: what an accepted message may be repeated for. Each life of a host is a manager on the store of the one before. */
import { afterEach, describe, expect, it } from 'vitest'
import { AsyncTaskManager, createAgentTasks, type AgentTasks } from '../../../src/index.js'
import { memoryStore, type MemoryStore, type Store } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'
import type { WasDelivered } from '../../../src/features/delivery/unknown-deliveries.js'

const OUTPUT = { final_message: 'done' }
const clock = createManualClock()
const lives: { dispose(): Promise<void> }[] = []

afterEach(async () => {
  await Promise.all(lives.splice(0).map((life) => life.dispose()))
})

interface Life {
  readonly tasks: AgentTasks
  readonly manager: AsyncTaskManager
  /** What the auto-trigger has delivered: the tasks of each message, with a mark for a repeat. */
  readonly messages: string[]
}

/** A host with an auto-trigger. `accepts`: what becomes of its turns. */
function hostOn(
  store: Store,
  options: { accepts?: boolean | Promise<void>; wasDelivered?: WasDelivered; maxAsyncTasks?: number } = {},
): Life {
  const { accepts = true, wasDelivered, maxAsyncTasks } = options
  const messages: string[] = []
  const tasks = createAgentTasks({
    store,
    clock,
    subagents: {},
    isAgentBusy: () => false,
    triggerAgentTurn: (_, { taskIds, isRepeat = false }) => {
      messages.push(`${taskIds.join(' ')}${isRepeat ? ' again' : ''}`)
      if (accepts === false) throw new Error('the agent refused')
      return accepts
    },
    onError: () => undefined,
    ...(wasDelivered && { wasDelivered }),
    ...(maxAsyncTasks !== undefined && { maxAsyncTasks }),
  })
  lives.push(tasks)
  return { tasks, manager: tasks.getAsyncTaskManager(), messages }
}

/** A host that asks for its results. */
function managerOn(store: Store): AsyncTaskManager {
  const manager = new AsyncTaskManager({ store, clock, onError: () => undefined })
  lives.push(manager)
  return manager
}

function complete(manager: AsyncTaskManager, id: string): void {
  manager.registerTask({ id, subagentName: 'agent', goalPrompt: 'look into it' })
  manager.completeTask(id, OUTPUT)
}

const settle = async (): Promise<void> => {
  for (let ticks = 0; ticks < 30; ticks += 1) {
    await Promise.resolve()
    clock.advance(0)
  }
}

describe('an accepted message, with a clean end of its host', () => {
  it('K5: of an auto-trigger is not repeated, however often the host starts again', async () => {
    const store = memoryStore()
    const first = hostOn(store)
    complete(first.manager, 'a')
    await settle()
    await first.tasks.dispose()
    expect(first.messages).toEqual(['a'])
    for (let start = 0; start < 3; start += 1) {
      const next = hostOn(store)
      expect((await next.tasks.recovered).uncertain).toEqual([])
      await settle()
      await next.tasks.dispose()
      expect(next.messages).toEqual([])
    }
    expect(store.contents().deliveries).toEqual([])
  })

  const paths: Record<string, (life: Life) => unknown> = {
    'beforeTurn and afterTurn': ({ tasks }) => {
      tasks.beforeTurn()
      tasks.afterTurn({ accepted: true })
    },
    withTurn: ({ tasks }) => tasks.withTurn(() => undefined),
    wait_for_async_tasks: ({ tasks }) => tasks.tools.wait_for_async_tasks.execute({ task_ids: ['a'] }),
    'a peek': ({ tasks }) => tasks.tools.check_async_tasks.execute({ task_id: 'a' }),
    waitFor: ({ manager }) => manager.waitFor(['a']),
    'a lease': ({ manager }) => manager.lease()?.acknowledge(),
    'an overdue result in that of another tool': ({ tasks }) => tasks.tools.check_async_tasks.execute({}),
  }
  it.each(Object.entries(paths))('K5: of %s is not repeated', async (_, deliver) => {
    const store = memoryStore()
    const tasks = createAgentTasks({
      store,
      clock,
      subagents: {},
      maxDelayMs: 0,
      onError: () => undefined,
    })
    lives.push(tasks)
    const manager = tasks.getAsyncTaskManager()
    complete(manager, 'a')
    await settle()
    await deliver({ tasks, manager, messages: [] })
    expect(manager.getTask('a')?.delivery).toBe('delivered')
    await tasks.dispose()
    expect((await hostOn(store).tasks.recovered).uncertain).toEqual([])
  })

  it('K5: is sent again if it was not delivered, although no record of an ended task need be kept', async () => {
    const store = memoryStore()
    const killed = hostOn(store, { maxAsyncTasks: 0 })
    complete(killed.manager, 'a')
    await settle()
    expect(killed.messages).toEqual(['a'])
    const next = hostOn(store.copy(), { wasDelivered: () => false })
    await next.tasks.recovered
    await settle()
    expect(next.messages).toEqual(['a'])
  })

  it('K5: is confirmed on the disk while dispose waits for the runs', async () => {
    const store = memoryStore()
    const manager = managerOn(store)
    let end = (): void => undefined
    manager.launch(
      { subagentName: 'agent', goalPrompt: 'go' },
      () => new Promise((resolve) => (end = () => resolve({}))),
    )
    complete(manager, 'a')
    manager.lease()?.acknowledge()
    await settle()
    expect(store.contents().deliveries).toMatchObject([{ state: 'accepted' }])
    const disposal = manager.dispose()
    await settle()
    expect(store.contents().deliveries).toEqual([])
    end()
    await disposal
  })

  it.each([true, undefined])('K4: whose turn was still open is uncertain (wasDelivered says %s)', async (answer) => {
    const store = memoryStore()
    const first = hostOn(store, { accepts: new Promise(() => undefined) })
    complete(first.manager, 'a')
    await settle()
    expect(first.messages).toEqual(['a'])
    await first.tasks.dispose()
    const next = hostOn(store, { wasDelivered: () => answer })
    await next.tasks.recovered
    await settle()
    expect(next.messages).toEqual(answer === true ? [] : ['a again'])
  })

  it('K5: that was not accepted is repeated, marked', async () => {
    const store = memoryStore()
    const manager = managerOn(store)
    complete(manager, 'a')
    manager.lease()
    await manager.dispose()
    const next = hostOn(store)
    expect((await next.tasks.recovered).uncertain).toEqual(['a'])
    await settle()
    expect(next.messages).toEqual(['a again'])
  })
})

describe('an accepted message, with a crash before it is confirmed', () => {
  /** What a new process finds when the host is killed once its message was accepted. */
  async function crashed(): Promise<MemoryStore> {
    const store = memoryStore()
    const { manager, messages } = hostOn(store)
    complete(manager, 'a')
    await settle()
    expect(messages).toEqual(['a'])
    return store.copy()
  }

  it('K5: is repeated once, marked, and confirmed when the repeat was accepted, also by a crash after that', async () => {
    const store = await crashed()
    const second = hostOn(store)
    expect((await second.tasks.recovered).uncertain).toEqual(['a'])
    await settle()
    expect(second.messages).toEqual(['a again'])
    const third = hostOn(store.copy())
    expect((await third.tasks.recovered).uncertain).toEqual([])
    await settle()
    expect(third.messages).toEqual([])
  })

  it('K5: is repeated again when the repeat was not accepted', async () => {
    const store = await crashed()
    const refusing = hostOn(store, { accepts: false })
    await refusing.tasks.recovered
    await settle()
    expect(refusing.messages).toEqual(['a again'])
    await refusing.tasks.dispose()
    for (const expected of [['a again'], []]) {
      const next = hostOn(store)
      await next.tasks.recovered
      await settle()
      expect(next.messages).toEqual(expected)
      await next.tasks.dispose()
    }
  })

  it('K5: a new result beside a repeat is unconfirmed like any other', async () => {
    const store = await crashed()
    const manager = managerOn(store)
    await manager.recovered
    complete(manager, 'b')
    await settle()
    const lease = manager.lease()
    expect(lease?.tasks.map(({ id }) => id)).toEqual(['a', 'b'])
    lease?.acknowledge()
    await settle()
    expect(store.contents().deliveries).toMatchObject([{ id: lease?.deliveryId, state: 'accepted', taskIds: ['b'] }])
    expect((await managerOn(store.copy()).recovered).uncertain).toEqual(['b'])
  })

  it('K5: that turns out to have arrived does not confirm what its owner has accepted since', async () => {
    const store = await crashed()
    let answer: (wasDelivered: boolean) => void = () => undefined
    const { tasks, manager, messages } = hostOn(store, {
      wasDelivered: () => new Promise((resolve) => (answer = resolve)),
    })
    complete(manager, 'b')
    await settle()
    expect(messages).toEqual(['b'])
    answer(true)
    await tasks.recovered
    await settle()
    expect(store.contents().deliveries).toMatchObject([{ state: 'accepted', taskIds: ['b'] }])
  })
})

describe('a result that the host has marked as delivered', () => {
  it('K5: is not repeated because a lease that it was in was never ended', async () => {
    const store = memoryStore()
    const manager = managerOn(store)
    complete(manager, 'a')
    complete(manager, 'b')
    manager.lease()
    manager.markNotified('a')
    await settle()
    expect(store.contents().deliveries).toMatchObject([{ state: 'sent', taskIds: ['b'] }])
    manager.markNotified('b')
    await settle()
    expect(store.contents().deliveries).toEqual([])
    expect((await managerOn(store.copy()).recovered).uncertain).toEqual([])
  })
})

it('F11: a message that is owed once more counts as confirmed: after a crash it is owed, and not asked for', async () => {
  const store = memoryStore()
  const manager = managerOn(store)
  complete(manager, 'a')
  const lease = manager.lease()
  lease?.acknowledge()
  await settle()
  expect(store.contents().deliveries).toHaveLength(1)
  expect(manager.redeliver(lease?.deliveryId ?? '')).toBe(true)
  await settle()
  expect(store.contents().deliveries).toEqual([])
  expect(store.contents().tasks).toMatchObject([{ id: 'a', delivery: 'owed' }])
  expect(manager.confirm(lease?.deliveryId ?? '')).toBe(false)
})
