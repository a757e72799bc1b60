/** A host that is never idle: what it is owed rides on the results of its tools, and what was removed from its context is told again. */
import fc from 'fast-check'
import { BehaviorSubject } from 'rxjs'
import { describe, expect, it, vi } from 'vitest'
import { AsyncTaskManager, createAgentTasks, type AgentTasksOptions } from '../../../src/index.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { memoryStore } from '../../../src/store/index.js'
import { checkProperty } from '../../support/property.js'

function setUp(options: AgentTasksOptions = {}) {
  const clock = createManualClock()
  const turns: string[] = []
  const tasks = createAgentTasks({
    clock,
    onError: vi.fn(),
    maxAsyncTasks: -1,
    isAgentBusy: new BehaviorSubject(true),
    triggerAgentTurn: (text: string) => void turns.push(text),
    ...options,
  })
  const manager = tasks.getAsyncTaskManager()
  const end = (id: string, owner?: string) => {
    manager.registerTask({ id, subagentName: 's', goalPrompt: 'g', ...(owner !== undefined && { owner }) })
    manager.completeTask(id, { final_message: `result of ${id}` })
  }
  const call = async (context = {}) =>
    (await tasks.tools.check_async_tasks.execute({ action: 'list' }, context)).llmContent
  const deliveryOf = (id: string) => manager.getTask(id)?.delivery
  return { clock, turns, tasks, manager, end, call, deliveryOf }
}

describe('an agent that is never idle', () => {
  it('F11: gets what has been owed for maxDelayMs with the result of its next tool, once', async () => {
    const { clock, end, call, deliveryOf, turns } = setUp()
    end('a')
    clock.advance(59_999)
    expect(await call()).not.toContain('result of a')
    clock.advance(1)
    const text = await call()
    expect(text).toContain('\n\nThis is a notification of background tasks. No person wrote it')
    expect(text).toContain('Output of task a (subagent \'s\', goal "g"):\n```json\n')
    expect(deliveryOf('a')).toBe('delivered')
    expect(await call()).not.toContain('result of a')
    expect(turns).toEqual([])
  })

  it('F11: gets a question, too', async () => {
    const { clock, manager, call } = setUp({ maxDelayMs: 1_000 })
    manager.launch({ id: 'asker', subagentName: 's', goalPrompt: 'g' }, async (_input, context) => {
      await context.ask('Which branch?')
      return {}
    })
    await Promise.resolve()
    clock.advance(1_000)
    expect((await call()).split('waits for an answer to question-1')).toHaveLength(2)
    expect((await call()).split('waits for an answer to question-1')).toHaveLength(1)
    manager.cancelTask('asker')
  })

  it('F11: owes it again when the caller could not return the result', async () => {
    const { clock, end, call, deliveryOf, tasks } = setUp()
    end('a')
    clock.advance(60_000)
    const held: { release: () => void }[] = []
    expect(await call({ hold: (lease: { release: () => void }) => held.push(lease) })).toContain('result of a')
    expect(deliveryOf('a')).toBe('leased')
    for (const lease of held) lease.release()
    expect(deliveryOf('a')).toBe('owed')
    const controller = new AbortController()
    controller.abort()
    const { llmContent } = await tasks.tools.check_async_tasks.execute({}, { signal: controller.signal })
    expect(llmContent).not.toContain('result of a')
    expect(deliveryOf('a')).toBe('owed')
    expect(await call({ detach: controller.signal })).not.toContain('result of a')
    expect(deliveryOf('a')).toBe('owed')
  })

  it('F11: a context whose hold is no function is refused, and nothing is leased', async () => {
    const { clock, end, call, deliveryOf } = setUp()
    end('a')
    clock.advance(60_000)
    expect(await call({ hold: true })).toContain('context.hold: got true, expected a function.')
    expect(deliveryOf('a')).toBe('owed')
  })

  it('F11: can be left alone, and hears nothing of other owners', async () => {
    const off = setUp({ maxDelayMs: Infinity })
    off.end('a')
    off.clock.advance(10 ** 9)
    expect(await off.call()).not.toContain('result of a')
    const other = setUp()
    other.end('a', 'other')
    other.clock.advance(10 ** 9)
    expect(await other.call()).not.toContain('result of a')
    expect(() => createAgentTasks({ maxDelayMs: -1 })).toThrow('maxDelayMs')
  })

  it('F11: receives the delivery id in the metadata of the result', async () => {
    const { clock, end, tasks } = setUp({ maxDelayMs: 0 })
    end('a')
    clock.advance(1)
    const { metadata } = await tasks.tools.check_async_tasks.execute({ action: 'list' })
    expect(metadata?.['notification']).toEqual({ deliveryId: expect.any(String) as string, taskIds: ['a'] })
  })

  it('F11: hears within an hour of every result, within maxDelayMs and the time to its next call', () =>
    checkProperty(
      'a host that is never idle',
      fc.asyncProperty(
        fc.array(fc.record({ after: fc.integer({ min: 1, max: 120_000 }), isEnd: fc.boolean() }), { maxLength: 60 }),
        fc.integer({ min: 1, max: 120_000 }),
        async (steps, maxDelayMs) => {
          const { clock, end, call, manager } = setUp({ maxDelayMs })
          const endedAt = new Map<string, number>()
          const heard: string[] = []
          for (const { after, isEnd } of steps) {
            clock.advance(after)
            if (isEnd) {
              const id = `t${endedAt.size}`
              endedAt.set(id, clock.now())
              end(id)
            } else {
              const text = await call()
              for (const id of endedAt.keys()) if (text.includes(`result of ${id}"`)) heard.push(id)
              for (const [id, at] of endedAt) if (clock.now() - at >= maxDelayMs) expect(heard).toContain(id)
            }
          }
          clock.advance(3_600_000)
          const text = await call()
          for (const id of endedAt.keys()) if (text.includes(`result of ${id}"`)) heard.push(id)
          expect(heard.toSorted()).toEqual([...endedAt.keys()].toSorted())
          await manager.dispose()
        },
      ),
    ))
})

describe('a message that was removed from the context', () => {
  it('F11: is delivered again while its records live, marked as a repeat', () => {
    const { tasks, manager, end, deliveryOf } = setUp()
    end('a')
    const { reminder } = tasks.beforeTurn()
    const id = reminder!.deliveryId
    expect(tasks.redeliver(id)).toBe(false)
    tasks.afterTurn({ accepted: true })
    expect(tasks.redeliver(id)).toBe(true)
    expect(tasks.redeliver(id)).toBe(false)
    expect(deliveryOf('a')).toBe('owed')
    const again = tasks.beforeTurn().reminder
    expect(again).toMatchObject({ taskIds: ['a'], isRepeat: true })
    expect(again?.text).toContain('repeat: this result was delivered before, and is resent at the request of the host')
    expect(again?.deliveryId).not.toBe(id)
    tasks.afterTurn({ accepted: true })
    expect(tasks.redeliver(id)).toBe(false)
    expect(tasks.redeliver(again!.deliveryId)).toBe(true)
    expect(manager.redeliver('nothing')).toBe(false)
  })

  it('F11: is gone once its records were pruned, and is not pruned while it is owed again', () => {
    const { tasks, end, manager } = setUp({ maxAsyncTasks: 1 })
    const deliver = (id: string) => {
      end(id)
      const { deliveryId } = tasks.beforeTurn().reminder!
      tasks.afterTurn({ accepted: true })
      return deliveryId
    }
    const first = deliver('a')
    const second = deliver('b')
    expect(tasks.redeliver(first)).toBe(true)
    end('c0')
    expect(manager.getTask('a')?.delivery).toBe('owed')
    deliver('c') // tells a again, too
    deliver('d')
    deliver('e')
    deliver('f')
    expect(manager.getTask('a')).toBeUndefined()
    expect(tasks.redeliver(first)).toBe(false)
    expect(tasks.redeliver(second)).toBe(false)
  })

  it('F11: is delivered again by the next process, where there is a store', async () => {
    const store = memoryStore()
    const clock = createManualClock()
    const first = new AsyncTaskManager({ store, clock })
    await first.recovered
    first.registerTask({ id: 'a', subagentName: 's', goalPrompt: 'g' })
    first.completeTask('a', {})
    const lease = first.lease({ owner: 'main' })!
    lease.acknowledge()
    first.confirm(lease.deliveryId)
    await first.dispose()
    const second = new AsyncTaskManager({ store, clock })
    await second.recovered
    expect(second.getTask('a')?.delivery).toBe('delivered')
    expect(second.redeliver(lease.deliveryId)).toBe(true)
    expect(second.getPendingNotifications()).toMatchObject([{ id: 'a', isRepeat: true }])
    await second.dispose()
    const third = new AsyncTaskManager({ store, clock, wasDelivered: () => true })
    await third.recovered
    expect(third.getPendingNotifications()).toMatchObject([{ id: 'a' }])
    await third.dispose()
  })

  it('F11: asks its open questions again', async () => {
    const { tasks, manager } = setUp()
    manager.launch({ id: 'asker', subagentName: 's', goalPrompt: 'g' }, async (_input, context) => {
      await context.ask('Which branch?')
      return {}
    })
    await Promise.resolve()
    const { deliveryId } = tasks.beforeTurn().reminder!
    tasks.afterTurn({ accepted: true })
    expect(tasks.beforeTurn().reminder).toBeUndefined()
    expect(tasks.redeliver(deliveryId)).toBe(true)
    expect(tasks.beforeTurn().reminder?.questions).toEqual([{ taskId: 'asker', questionId: 'question-1' }])
    manager.cancelTask('asker')
  })
})
