/** A turn that waits for a person is suspended: nothing of it ends before `resume` or `abandon`. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { TurnDelivery } from '../../../src/features/delivery/auto-trigger.js'
import { createAgentTasks } from '../../../src/index.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { InvalidInputError } from '../../../src/errors.js'
import { createTurns, type AgentTurns } from '../../../src/parts.js'

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A host whose turns are suspended after they have taken `task`, until they are not the first. */
function setUp(suspending = 1) {
  const clock = createManualClock()
  const sent: TurnDelivery[] = []
  const onError = vi.fn()
  let left = suspending
  const turns: AgentTurns<string> = createTurns(async (text, _signal, delivery) => {
    if (delivery !== undefined) sent.push(delivery)
    left -= 1
    if (left < 0) return text
    end('tool')
    await tasks.tools.wait_for_async_tasks.execute({ task_ids: ['tool'] })
    turns.suspend()
    return 'suspended'
  })
  const tasks = createAgentTasks({
    clock,
    onError,
    isAgentBusy: turns.isBusy$,
    triggerAgentTurn: turns.triggerAgentTurn,
    autoTrigger: { deliveryTimeoutMs: 5000 },
  })
  onTestFinished(async () => {
    await turns.dispose()
    await tasks.dispose()
    expect(clock.pending).toBe(0)
  })
  const end = (id: string): void => {
    tasks.manager.registerTask({ id, subagentName: 'agent', goalPrompt: 'look' })
    tasks.manager.completeTask(id, { final_message: `result of ${id}` })
  }
  const pass = async (ms = 0): Promise<void> => {
    await tick()
    clock.advance(ms)
    await tick()
  }
  return { tasks, turns, sent, onError, end, pass, of: (id: string) => tasks.manager.getTask(id)?.delivery }
}

describe('a suspended turn', () => {
  it('H6: of the user holds up the next one, keeps its leases, and delivers when it is resumed', async () => {
    const { turns, sent, end, pass, of } = setUp()
    expect(await turns.take('first')).toBe('suspended')
    const next = turns.take('second')
    end('a')
    await pass(3_600_000)
    expect([sent.length, of('tool'), of('a')]).toEqual([0, 'leased', 'owed'])
    expect(await turns.resume((signal) => `resumed ${signal.aborted}`)).toBe('resumed false')
    expect(of('tool')).toBe('delivered')
    expect(await next).toBe('second')
    await pass()
    expect([sent.length, of('a')]).toEqual([1, 'delivered'])
  })

  it('H6: that delivers a message has no time limit until it is resumed, and then a whole one', async () => {
    const { turns, sent, onError, end, pass, of } = setUp()
    end('a')
    await pass()
    await pass(3_600_000)
    expect([sent.length, of('a'), of('tool')]).toEqual([1, 'leased', 'leased'])
    expect(onError).not.toHaveBeenCalled()
    let finish: (answer: string) => void = () => undefined
    const resumed = turns.resume(() => new Promise<string>((resolve) => (finish = resolve)))
    await pass(4999)
    expect(of('a')).toBe('leased')
    finish('done')
    await resumed
    await pass()
    expect([of('a'), of('tool')]).toEqual(['delivered', 'delivered'])

    end('b')
    await pass()
    expect(sent).toHaveLength(2)
  })

  it('H6: that takes longer than the time limit after it was resumed is repeated', async () => {
    const { turns, sent, onError, end, pass, of } = setUp()
    end('a')
    await pass()
    const untilAborted = (signal: AbortSignal): Promise<string> =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
    turns.resume(untilAborted).catch(() => undefined)
    await pass(5000)
    expect(onError).toHaveBeenCalledTimes(1)
    expect([of('a'), of('tool')]).toEqual(['owed', 'owed'])
    expect(sent[0]?.signal.aborted).toBe(true)
  })

  it('H6: that is abandoned, or fails when it is resumed, owes what it has received, marked', async () => {
    const abandoned = setUp()
    abandoned.end('a')
    await abandoned.pass()
    expect(abandoned.turns.abandon()).toBe(true)
    expect(abandoned.turns.abandon()).toBe(false)
    for (let turn = 0; turn < 3; turn += 1) await abandoned.pass(2000)
    expect(abandoned.sent.map(({ taskIds, isRepeat }) => [taskIds.join(), isRepeat])).toEqual([
      ['a', undefined],
      ['a', true],
      ['tool', true],
    ])
    expect(abandoned.sent[1]?.deliveryId).toBe(abandoned.sent[0]?.deliveryId)

    const failing = setUp()
    await failing.turns.take('go')
    await expect(failing.turns.resume(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
    for (let turn = 0; turn < 2; turn += 1) await failing.pass(1000)
    expect(failing.sent).toMatchObject([{ taskIds: ['tool'], isRepeat: true }])
  })

  it('H6: can be suspended again, and results of calls after that belong to it', async () => {
    const { tasks, turns, end, of } = setUp()
    await turns.take('go')
    const again = await turns.resume(async () => {
      end('later')
      await tasks.tools.wait_for_async_tasks.execute({ task_ids: ['later'] })
      turns.suspend()
      return 'again'
    })
    expect(again).toBe('again')
    expect([of('tool'), of('later')]).toEqual(['leased', 'leased'])
    await turns.resume(() => 'done')
    expect([of('tool'), of('later')]).toEqual(['delivered', 'delivered'])
  })

  it('H6: keeps what `withTurn` has leased inside it beyond the time limit of a turn', async () => {
    const { tasks, turns, onError, end, pass, of } = setUp()
    await turns.take('go')
    await turns.resume(async () => {
      end('a')
      const text = await tasks.withTurn(({ reminder }) => reminder?.text)
      turns.suspend()
      return text ?? ''
    })
    expect(of('a')).toBe('leased')
    await pass(24 * 3_600_000)
    expect(of('a')).toBe('leased')
    expect(onError).not.toHaveBeenCalled()
    await turns.resume(() => 'done')
    expect(of('a')).toBe('delivered')
  })

  it('H6: ends with dispose as one that has failed', async () => {
    const { turns, of } = setUp()
    await turns.take('go')
    await turns.dispose()
    expect(of('tool')).toBe('owed')
    await expect(turns.resume(() => 'late')).rejects.toThrow(InvalidInputError)
  })

  it('H4: only a running turn is suspended, and only a suspended one resumed', async () => {
    const { turns } = setUp(0)
    expect(() => turns.suspend()).toThrow('a turn that runs')
    await expect(turns.resume(() => 'x')).rejects.toThrow('a turn that is suspended')
    await expect(turns.resume('x' as never)).rejects.toThrow('a function')
    expect(turns.abandon()).toBe(false)
  })
})
