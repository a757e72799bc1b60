/** The delivery id and the mark of a possible repeat, in everything that a model or a host reads. */
import { afterEach, describe, expect, it } from 'vitest'
import {
  createAgentTasks,
  type AgentTasks,
  type AgentTasksOptions,
  type ToolResult,
  type TurnDelivery,
} from '../../../src/index.js'
import { memoryStore, StoreError, type MemoryStore, type Store } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/index.js'

const hosts: AgentTasks[] = []

afterEach(async () => {
  await Promise.all(hosts.splice(0).map((host) => host.dispose()))
})

function hostOn(store: Store | undefined, options: AgentTasksOptions = {}): AgentTasks {
  const host = createAgentTasks({
    clock: createManualClock(),
    onError: () => undefined,
    subagents: { quick: () => ({ final_message: 'found' }) },
    ...(store && { store }),
    ...options,
  })
  hosts.push(host)
  return host
}

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Ends tasks that are then owed. */
function end(host: AgentTasks, ...ids: string[]): void {
  const manager = host.getAsyncTaskManager()
  for (const id of ids) {
    manager.registerTask({ id, subagentName: 'agent', goalPrompt: 'look' })
    manager.completeTask(id, { final_message: `result of ${id}` })
  }
}

/** A host after a crash that left a message of which nobody knows whether it arrived. */
async function hostWithRepeat(options: AgentTasksOptions = {}): Promise<{
  host: AgentTasks
  store: MemoryStore
  crashed: string | undefined
}> {
  const first = memoryStore()
  const before = hostOn(first)
  end(before, 'a')
  const lease = before.getAsyncTaskManager().lease()
  await lease?.stored
  const store = first.copy()
  const host = hostOn(store, options)
  await host.recovered
  end(host, 'b')
  await tick()
  return { host, store, crashed: lease?.deliveryId }
}

const REPEAT =
  /^possible repeat: this result may have been delivered before.*\nOutput of task a \(.*\):\n```json\n\{\n {2}"agent_id": "a"/m

describe('with a store', () => {
  it('K3: a reminder names its delivery id, and without a store it does not', async () => {
    const store = memoryStore()
    const host = hostOn(store)
    end(host, 'a')
    const { reminder } = host.beforeTurn()
    await reminder?.stored
    expect(reminder?.text.endsWith(`\n\nDelivery ID: ${reminder.deliveryId}\n---`)).toBe(true)
    expect(store.contents().deliveries.map(({ id }) => id)).toEqual([reminder?.deliveryId])
    expect(reminder).not.toHaveProperty('isRepeat')
    expect(host.getAsyncTaskReminderService().generateReminder()).not.toContain('Delivery')
    const plain = hostOn(undefined)
    end(plain, 'a')
    const { reminder: unstored } = plain.beforeTurn()
    expect(unstored?.text).not.toContain('Delivery')
    expect(unstored).not.toHaveProperty('stored')
  })

  it('K4: of two turns that begin before the first lease is stored, the second alone has the message', async () => {
    const host = hostOn(memoryStore())
    end(host, 'a')
    await host.manager.stored()
    const sent: unknown[] = []
    const takeTurn = async (): Promise<void> => {
      const { reminder } = host.beforeTurn()
      await reminder?.stored
      sent.push([reminder?.taskIds, reminder?.isRepeat])
      host.afterTurn({ accepted: true })
    }
    const [first, second] = await Promise.allSettled([takeTurn(), takeTurn()])
    expect(first).toMatchObject({ status: 'rejected', reason: { code: 'LEASE_ENDED' } })
    expect(second.status).toBe('fulfilled')
    expect(sent).toEqual([[['a'], undefined]])
    expect(host.manager.getTask('a')?.delivery).toBe('delivered')
  })

  it('K4: a possible repeat is a message of its own, with the same id, and later results follow', async () => {
    const { host, crashed } = await hostWithRepeat()
    const { reminder } = host.beforeTurn()
    expect(reminder).toMatchObject({ deliveryId: crashed, taskIds: ['a'], isRepeat: true })
    expect(reminder?.text).toMatch(REPEAT)
    reminder?.acknowledge()
    const next = host.beforeTurn().reminder
    expect(next?.taskIds).toEqual(['b'])
    expect(next?.deliveryId).not.toBe(crashed)
    expect(next?.text).not.toContain('possible repeat')
  })

  it('K4: a possible repeat is marked in the turn that the auto-trigger starts', async () => {
    const turns: [string, TurnDelivery][] = []
    const clock = createManualClock()
    await hostWithRepeat({
      clock,
      isAgentBusy: () => false,
      triggerAgentTurn: (text, delivery) => void turns.push([text, delivery]),
    })
    clock.advance(2000)
    await tick()
    const [text, delivery] = turns[0]!
    expect(delivery).toMatchObject({ isRepeat: true })
    expect(text).toMatch(REPEAT)
    expect(text).toContain(`Delivery ID: ${delivery.deliveryId}`)
    expect(turns.slice(1).map(([, other]) => 'isRepeat' in other)).toEqual(turns.slice(1).map(() => false))
  })
})

/** The ways in which a tool returns results. */
const calls: Readonly<Record<string, (host: AgentTasks, id: string) => Promise<ToolResult>>> = {
  wait_for_async_tasks: ({ tools }, id) => tools.wait_for_async_tasks.execute({ task_ids: [id] }),
  'check_async_tasks, peek': ({ tools }, id) => tools.check_async_tasks.execute({ task_id: id }),
  'check_async_tasks, peek from a cursor': ({ tools }, id) =>
    tools.check_async_tasks.execute({ task_id: id, cursor: 0 }),
  'check_async_tasks, output of the result': ({ tools }, id) =>
    tools.check_async_tasks.execute({ task_id: id, action: 'output', part: 'result' }),
}

describe.each(Object.entries(calls))('a result of %s', (_name, call) => {
  it('K5: names its delivery id, and is unconfirmed until the owner confirms it', async () => {
    const store = memoryStore()
    const host = hostOn(store)
    end(host, 'a')
    await tick()
    const { metadata, error } = await call(host, 'a')
    expect(error).toBeUndefined()
    const deliveryId = String(metadata?.['deliveryId'])
    expect(metadata).not.toHaveProperty('isRepeat')
    await tick()
    expect(store.contents().deliveries).toMatchObject([{ id: deliveryId, state: 'accepted', taskIds: ['a'] }])
    expect(host.getAsyncTaskManager().getTask('a')?.delivery).toBe('delivered')
    const asked: string[] = []
    const next = hostOn(store.copy(), { wasDelivered: (id) => asked.push(id) > 0 })
    await next.recovered
    expect(asked).toEqual([deliveryId])
    expect(next.getAsyncTaskManager().getTask('a')?.delivery).toBe('delivered')
    expect(host.confirm(deliveryId)).toBe(true)
    await tick()
    expect(store.contents().deliveries).toEqual([])
  })

  it('K5: is confirmed by the next accepted message of its owner', async () => {
    const store = memoryStore()
    const host = hostOn(store)
    end(host, 'a', 'b')
    await tick()
    const first = (await call(host, 'a')).metadata?.['deliveryId']
    const second = (await call(host, 'b')).metadata?.['deliveryId']
    expect(second).not.toBe(first)
    await tick()
    expect(store.contents().deliveries.map(({ id }) => id)).toEqual([second])
  })

  it('K4: marks a possible repeat', async () => {
    const { host } = await hostWithRepeat()
    const { metadata, llmContent } = await call(host, 'a')
    expect(metadata).toMatchObject({ isRepeat: true })
    expect(llmContent).toContain('possible repeat: this result may have been delivered before')
    const other = await call(host, 'b')
    expect(other.metadata).not.toHaveProperty('isRepeat')
    expect(other.llmContent).not.toContain('possible repeat')
  })

  it('K3: is refused while it cannot be stored, and stays owed', async () => {
    const memory = memoryStore()
    let isBroken = false
    const store: Store = {
      ...memory,
      write: async (changes) => {
        if (isBroken) throw new StoreError('STORE_FULL', 'the disk is full')
        await memory.write(changes)
      },
    }
    const host = hostOn(store)
    end(host, 'a')
    await tick()
    isBroken = true
    expect((await call(host, 'a')).error).toMatchObject({ type: 'execution_failed' })
    isBroken = false
    expect(host.getAsyncTaskManager().getTask('a')?.delivery).toBe('owed')
    expect((await call(host, 'a')).error).toBeUndefined()
  })

  it('has no delivery id without a store', async () => {
    const host = hostOn(undefined)
    end(host, 'a')
    const { metadata } = await call(host, 'a')
    expect(metadata).not.toHaveProperty('deliveryId')
    expect(host.getAsyncTaskManager().getTask('a')?.delivery).toBe('delivered')
  })

  it('has no delivery id when it delivers nothing', async () => {
    const host = hostOn(memoryStore())
    end(host, 'a')
    host.getAsyncTaskManager().markNotified('a')
    expect((await call(host, 'a')).metadata).not.toHaveProperty('deliveryId')
  })
})

it('K5: the result of the tool task, run in place, names its delivery id and is unconfirmed', async () => {
  const store = memoryStore()
  const host = hostOn(store)
  const { metadata } = await host.tools.task.execute({ subagent_name: 'quick', goal_prompt: 'look' })
  await tick()
  expect(store.contents().deliveries).toMatchObject([
    { id: metadata?.['deliveryId'], state: 'accepted', taskIds: [metadata?.['agentId']] },
  ])
  const plain = await hostOn(undefined).tools.task.execute({ subagent_name: 'quick', goal_prompt: 'look' })
  expect(plain.metadata).not.toHaveProperty('deliveryId')
})

describe('a message that was accepted late', () => {
  it('K5: is unconfirmed like any other', async () => {
    const store = memoryStore()
    const manager = hostOn(store).getAsyncTaskManager()
    end(hosts[0]!, 'a')
    const lease = manager.lease()
    lease?.release()
    lease?.acknowledge()
    await tick()
    expect(store.contents().deliveries).toMatchObject([{ id: lease?.deliveryId, state: 'accepted', taskIds: ['a'] }])
    expect(manager.confirm(lease?.deliveryId ?? '')).toBe(true)
  })

  it.each([
    ['is not told again when one of two messages arrived', { first: false, second: true }, 'delivered', undefined],
    ['is not told again when the other arrived', { first: true, second: false }, 'delivered', undefined],
    ['is owed when neither arrived', { first: false, second: false }, 'owed', undefined],
    ['is a possible repeat when one is unknown', { first: undefined, second: false }, 'owed', true],
    [
      'is not told again when one is unknown and the other arrived',
      { first: undefined, second: true },
      'delivered',
      undefined,
    ],
  ])('K4: a result %s', async (_what, answers, delivery, isRepeat) => {
    const store = memoryStore()
    const host = hostOn(store)
    end(host, 'a')
    const manager = host.getAsyncTaskManager()
    const first = manager.lease()
    const { deliveryId: second } = await manager.waitFor(['a'])
    await tick()
    expect(store.contents().deliveries.map(({ id }) => id)).toEqual([first?.deliveryId, second])
    const copy = store.copy()
    const next = hostOn(copy, { wasDelivered: (id) => (id === second ? answers.second : answers.first) })
    const { uncertain } = await next.recovered
    const record = next.getAsyncTaskManager().getTask('a')
    expect(record?.delivery).toBe(delivery)
    if (delivery === 'owed') expect(record?.isRepeat).toBe(isRepeat)
    expect(uncertain).toEqual(isRepeat === true ? ['a'] : [])
    await tick()
    expect(copy.contents().deliveries).toEqual([])
  })
})

it('K5: a result that had no room in a message is not in its row, and is owed', async () => {
  const store = memoryStore()
  const host = hostOn(store, { maxMessageChars: 20_000 })
  const manager = host.getAsyncTaskManager()
  for (const id of ['a', 'b']) {
    manager.registerTask({ id, subagentName: 'agent', goalPrompt: 'look' })
    manager.completeTask(id, { final_message: 'x'.repeat(12_000) })
  }
  const { metadata } = await host.tools.wait_for_async_tasks.execute({ task_ids: ['a', 'b'] })
  await tick()
  expect(store.contents().deliveries).toMatchObject([{ id: metadata?.['deliveryId'], taskIds: ['a'] }])
  expect(manager.getPendingNotifications().map(({ id }) => id)).toEqual(['b'])
})
