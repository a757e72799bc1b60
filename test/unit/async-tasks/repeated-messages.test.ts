/** A message that the agent may have kept is repeated as it was: with the same id and the same results, and marked. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { TurnDelivery } from '../../../src/features/delivery/auto-trigger.js'
import { createAgentTasks, type AgentTasksOptions } from '../../../src/index.js'
import { memoryStore } from '../../../src/store/index.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A host whose agent fails the first `failing` messages. */
function setUp(failing: number, options: AgentTasksOptions = {}) {
  const clock = createManualClock()
  const sent: (TurnDelivery & { readonly text: string })[] = []
  let left = failing
  const tasks = createAgentTasks({
    clock,
    onError: vi.fn(),
    isAgentBusy: () => false,
    triggerAgentTurn: (text, delivery) => {
      sent.push({ ...delivery, text })
      left -= 1
      if (left >= 0) throw new Error('the provider is overloaded')
    },
    ...options,
  })
  onTestFinished(() => tasks.dispose())
  const end = (...ids: string[]): void => {
    for (const id of ids) {
      tasks.manager.registerTask({ id, subagentName: 'agent', goalPrompt: 'look' })
      tasks.manager.completeTask(id, { final_message: `result of ${id}` })
    }
  }
  const pass = async (ms: number): Promise<void> => {
    await tick()
    clock.advance(ms)
    await tick()
  }
  return { tasks, manager: tasks.manager, sent, end, pass }
}

describe('a message that was not accepted', () => {
  it.each([
    ['without a store', undefined],
    ['with a store', memoryStore()],
  ])('H6: %s is repeated with its id and its results, marked, and what ended since follows', async (_name, store) => {
    const { sent, end, pass } = setUp(2, store && { store })
    end('a', 'b')
    await pass(0)
    end('c')
    await pass(1000)
    end('d')
    await pass(2000)
    await pass(0)
    expect(sent.map(({ taskIds }) => taskIds.join())).toEqual(['a,b', 'a,b', 'a,b', 'c,d'])
    const [first, second, third, fresh] = sent.map(({ deliveryId }) => deliveryId)
    expect([second, third]).toEqual([first, first])
    expect(fresh).not.toBe(first)
    expect(sent.map(({ isRepeat }) => isRepeat)).toEqual([undefined, true, true, undefined])
    expect(sent[1]?.text.match(/possible repeat:/g)).toHaveLength(2)
    expect(sent[3]?.text).not.toContain('possible repeat')
  })

  it('H6: that took too long is repeated in the same way, and a late acceptance counts for it', async () => {
    const answers: (() => void)[] = []
    const sent: TurnDelivery[] = []
    const { manager, end, pass } = setUp(0, {
      autoTrigger: { deliveryTimeoutMs: 5000 },
      triggerAgentTurn: (_text, delivery) => {
        sent.push(delivery)
        return new Promise<void>((resolve) => answers.push(resolve))
      },
    })
    end('a')
    await pass(0)
    await pass(5000)
    await pass(1000)
    expect(sent.map(({ deliveryId }) => deliveryId)).toEqual([sent[0]?.deliveryId, sent[0]?.deliveryId])
    expect(sent[1]?.isRepeat).toBe(true)
    answers[0]?.()
    await pass(0)
    // The repeat is still in flight. Its failure does not matter any more.
    expect(manager.getTask('a')?.delivery).toBe('leased')
    await pass(5000)
    expect(manager.getTask('a')?.delivery).toBe('delivered')
    answers[1]?.()
    await pass(60_000)
    expect(sent).toHaveLength(2)
  })

  it('H6: is repeated by the next process with the same id and the same results', async () => {
    const store = memoryStore()
    const before = setUp(1, { store })
    before.end('a', 'b')
    await before.pass(0)
    before.end('c')
    await tick()
    const after = setUp(0, { store: store.copy() })
    await after.tasks.recovered
    await after.pass(0)
    await after.pass(0)
    expect(after.sent.map(({ taskIds }) => taskIds.join())).toEqual(['a,b', 'c'])
    expect(after.sent[0]).toMatchObject({ deliveryId: before.sent[0]?.deliveryId, isRepeat: true })
    expect(after.sent[1]).not.toHaveProperty('isRepeat')
  })

  it('H6: fits in its repeat, although that has a remark above each result', async () => {
    const { sent, end, pass } = setUp(1)
    end(...Array.from({ length: 200 }, (_, n) => `task-${n}`))
    await pass(0)
    await pass(1000)
    expect(sent[0]?.taskIds.length).toBeGreaterThan(20)
    expect(sent[1]?.taskIds).toEqual(sent[0]?.taskIds)
    for (const { text } of sent) expect(text.length).toBeLessThanOrEqual(20_000)
  })

  it('H6: lacks in its repeat what a pause holds back, which gets an id of its own', async () => {
    const { tasks, manager, sent, end, pass } = setUp(1)
    end('a', 'b')
    await pass(0)
    // Another call has one of them while the message is repeated, and gives it back.
    const lease = manager.lease({ taskIds: ['b'] })
    await pass(1000)
    lease?.release()
    await pass(0)
    expect(sent.map(({ taskIds }) => taskIds.join())).toEqual(['a,b', 'a', 'b'])
    expect(sent[1]?.deliveryId).toBe(sent[0]?.deliveryId)
    expect(sent[2]?.deliveryId).not.toBe(sent[0]?.deliveryId)
    expect(sent[2]?.isRepeat).toBe(true)
    expect(tasks.beforeTurn().reminder).toBeUndefined()
  })

  it('H6: repeats its question, but no later one', async () => {
    const sent: TurnDelivery[] = []
    const asked: ((question: string) => void)[] = []
    const { tasks, pass } = setUp(0, {
      subagents: {
        asker: (_request, { ask, signal }) => {
          asked.push(
            (message) =>
              void ask({ message, schema: { type: 'object', properties: { ok: { type: 'boolean' } } } }).catch(
                () => undefined,
              ),
          )
          return new Promise<never>((_resolve, reject) => signal.addEventListener('abort', reject))
        },
      },
      graceMs: 0,
      triggerAgentTurn: (_text, delivery) => {
        sent.push(delivery)
        if (sent.length === 1) throw new Error('overloaded')
      },
    })
    tasks.launch('asker', 'ask')
    await tick()
    asked[0]?.('first?')
    await pass(0)
    asked[0]?.('second?')
    await pass(1000)
    await pass(0)
    const ids = sent.map(({ questions = [] }) => questions.map(({ questionId }) => questionId).join())
    expect(ids).toHaveLength(3)
    expect(ids[1]).toBe(ids[0])
    expect(ids[2]).not.toBe(ids[0])
    expect(sent.map(({ deliveryId }) => deliveryId === sent[0]?.deliveryId)).toEqual([true, true, false])
  })
})

describe('the turns of a host', () => {
  it.each([
    [
      'withTurn',
      async ({ tasks }: ReturnType<typeof setUp>) => {
        await tasks.withTurn(() => Promise.reject(new Error('failed'))).catch(() => undefined)
      },
    ],
    [
      'afterTurn',
      ({ tasks }: ReturnType<typeof setUp>) => {
        tasks.beforeTurn()
        tasks.afterTurn({ accepted: false })
        return Promise.resolve()
      },
    ],
  ])('H6: %s repeats the reminder of a turn that failed as it was', async (_name, fail) => {
    const host = setUp(0, { isAgentBusy: () => true })
    host.end('a')
    await fail(host)
    host.end('b')
    const ids: string[] = []
    const seen: string[] = []
    for (let turn = 0; turn < 2; turn += 1) {
      await host.tasks.withTurn(({ reminder }) => {
        ids.push(reminder?.deliveryId ?? '')
        seen.push(`${reminder?.taskIds.join()} ${reminder?.isRepeat}`)
      })
    }
    expect(seen).toEqual(['a true', 'b undefined'])
    expect(ids[0]).not.toBe(ids[1])
  })

  it('H6: what was not sent is no repeat', async () => {
    const { tasks, sent, end, pass } = setUp(0, { store: memoryStore(), isAgentBusy: () => true })
    end('a')
    const stop = tasks.setupAsyncTaskAutoTrigger(
      () => false,
      () => undefined,
    )
    await Promise.resolve()
    stop()
    await pass(0)
    expect(sent).toEqual([])
    expect(tasks.beforeTurn().reminder).not.toHaveProperty('isRepeat')
  })
})
