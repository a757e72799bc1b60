/** Turns of one agent: one at a time, and nothing is left of those that are over. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createAgentTasks } from '../../../src/index.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { deferred } from '../tools/tool-host.js'
import { settle } from './launched-tasks.js'
import { DisposedError, InvalidInputError } from '../../../src/errors.js'
import { createTurns, type Respond } from '../../../src/parts.js'

const acceptIn = (): Promise<void> => Promise.resolve()

/** Turns whose answers the test gives. */
function setUp() {
  const answers: ReturnType<typeof deferred<string>>[] = []
  const respond = vi.fn<Respond<string>>(() => {
    const answer = deferred<string>()
    answers.push(answer)
    return answer.promise
  })
  const turns = createTurns(respond)
  onTestFinished(() => void turns.dispose())
  const busy: (boolean | 'over')[] = []
  turns.isBusy$.subscribe({ next: (isBusy) => busy.push(isBusy), complete: () => busy.push('over') })
  return { turns, respond, answers, busy, texts: () => respond.mock.calls.map(([text]) => text) }
}

/** Counts the listeners of a signal. */
function countListeners(signal: AbortSignal): () => number {
  const added = vi.spyOn(signal, 'addEventListener')
  const removed = vi.spyOn(signal, 'removeEventListener')
  return () => added.mock.calls.length - removed.mock.calls.length
}

describe('turns', () => {
  it('H4: are taken one at a time, in the order in which they were asked for', async () => {
    const { turns, answers, busy, texts } = setUp()
    const all = ['a', 'b', 'c'].map((text) => turns.take(text))
    expect(busy).toEqual([false, true])
    for (const [nth, text] of ['a', 'b', 'c'].entries()) {
      await settle()
      expect(texts()).toEqual(['a', 'b', 'c'].slice(0, nth + 1))
      answers[nth]?.resolve(`answer to ${text}`)
    }
    expect(await Promise.all(all)).toEqual(['answer to a', 'answer to b', 'answer to c'])
    expect(busy).toEqual([false, true, false])
  })

  it('H4: know the delivery that a turn for results makes, and no other turn has one', async () => {
    const { turns, respond, answers } = setUp()
    const delivery = { deliveryId: 'd1', taskIds: ['a'], signal: new AbortController().signal, acceptIn }
    const both = [turns.take('mine'), turns.triggerAgentTurn('results', delivery)]
    await settle()
    answers[0]?.resolve('')
    await settle()
    answers[1]?.resolve('')
    await Promise.all(both)
    expect(respond.mock.calls.map(([text, , carried]) => [text, carried])).toEqual([
      ['mine', undefined],
      ['results', delivery],
    ])
  })

  it('H4: begin after the call that asks for one has returned', async () => {
    const { turns, respond, answers } = setUp()
    const taken = turns.take('a')
    expect(respond).not.toHaveBeenCalled()
    await settle()
    expect(respond).toHaveBeenCalledOnce()
    answers[0]?.resolve('done')
    await taken
  })

  it('H4: go on after one that fails, also before it returns a promise', async () => {
    const { turns, respond, answers, busy } = setUp()
    respond.mockImplementationOnce(() => {
      throw new Error('at once')
    })
    await expect(turns.take('a')).rejects.toThrow('at once')
    const failed = turns.take('b')
    await settle()
    answers[0]?.reject(new Error('later'))
    await expect(failed).rejects.toThrow('later')
    await settle()
    expect(busy).toEqual([false, true, false, true, false])
  })

  it('H4: keep their messages apart, where a flag would not', async () => {
    let messages: readonly string[] = []
    const turns = createTurns(async (text) => {
      const asked = [...messages, text]
      await settle()
      messages = [...asked, `answer to ${text}`]
    })
    await Promise.all([turns.take('a'), turns.take('b')])
    expect(messages).toEqual(['a', 'answer to a', 'b', 'answer to b'])
  })

  it('H4: refuse what is no function, and unknown and wrong options', async () => {
    const { turns } = setUp()
    expect(() => createTurns('a' as never)).toThrow(InvalidInputError)
    await expect(turns.take('a', { sgnal: undefined } as never)).rejects.toBeInstanceOf(InvalidInputError)
    await expect(turns.take('a', { signal: 5 as never })).rejects.toBeInstanceOf(InvalidInputError)
  })
})

describe('the signal of a turn', () => {
  it('H4: gives up a turn that waits: it is not taken, and the next one is', async () => {
    const { turns, answers, texts } = setUp()
    const controller = new AbortController()
    const listeners = countListeners(controller.signal)
    const [first, second, third] = [turns.take('a'), turns.take('b', { signal: controller.signal }), turns.take('c')]
    const rejected = expect(second).rejects.toThrow('no longer')
    await settle()
    controller.abort(new Error('no longer'))
    await rejected
    expect(listeners()).toBe(0)
    answers[0]?.resolve('')
    await first
    await settle()
    expect(texts()).toEqual(['a', 'c'])
    answers[1]?.resolve('')
    await third
  })

  it('H4: gives up a turn before it begins', async () => {
    const { turns, respond, busy } = setUp()
    const controller = new AbortController()
    const taken = turns.take('a', { signal: controller.signal })
    controller.abort(new Error('no longer'))
    await expect(taken).rejects.toThrow('no longer')
    await expect(turns.take('b', { signal: controller.signal })).rejects.toThrow('no longer')
    await settle()
    expect(respond).not.toHaveBeenCalled()
    expect(busy).toEqual([false, true, false])
  })

  it('H4: is passed on to a turn that runs, which ends when it does', async () => {
    const { turns, respond, answers } = setUp()
    const controller = new AbortController()
    const listeners = countListeners(controller.signal)
    const taken = turns.take('a', { signal: controller.signal })
    const next = turns.take('b')
    await settle()
    controller.abort(new Error('no longer'))
    expect(respond.mock.calls[0]?.[1]).toMatchObject({ aborted: true, reason: new Error('no longer') })
    await settle()
    expect(respond).toHaveBeenCalledOnce()
    answers[0]?.resolve('after all')
    await expect(taken).resolves.toBe('after all')
    expect(listeners()).toBe(0)
    await settle()
    answers[1]?.resolve('')
    await next
  })

  it('A9, H4: has no listener after its turn', async () => {
    const { turns, answers } = setUp()
    const { signal } = new AbortController()
    const listeners = countListeners(signal)
    const [answered, failed] = [turns.take('a', { signal }), turns.take('b', { signal })]
    expect(listeners()).toBe(2)
    await settle()
    answers[0]?.resolve('')
    await answered
    expect(listeners()).toBe(1)
    await settle()
    answers[1]?.reject(new Error('broken'))
    await expect(failed).rejects.toThrow('broken')
    expect(listeners()).toBe(0)
  })
})

describe('the disposal of turns', () => {
  it('H4: rejects those that wait, aborts the one that runs, and resolves when that has ended', async () => {
    const { turns, respond, answers, busy } = setUp()
    const [running, waiting] = [turns.take('a'), turns.take('b')]
    const rejected = expect(waiting).rejects.toBeInstanceOf(DisposedError)
    await settle()
    const isOver = vi.fn()
    const disposed = turns.dispose().then(isOver)
    await rejected
    expect(respond.mock.calls[0]?.[1].reason).toBeInstanceOf(DisposedError)
    await settle()
    expect(isOver).not.toHaveBeenCalled()
    answers[0]?.resolve('after all')
    await expect(running).resolves.toBe('after all')
    await disposed
    await turns.dispose()
    expect(respond).toHaveBeenCalledOnce()
    expect(busy).toEqual([false, true, 'over'])
    await expect(turns.take('c')).rejects.toBeInstanceOf(DisposedError)
  })

  it('H4: rejects a turn that has not begun', async () => {
    const { turns, respond } = setUp()
    const taken = turns.take('a')
    const rejected = expect(taken).rejects.toBeInstanceOf(DisposedError)
    await turns[Symbol.asyncDispose]()
    await rejected
    expect(respond).not.toHaveBeenCalled()
  })

  it('H4: leaves results owed: an agent that takes no turns is busy', async () => {
    const { turns, respond } = setUp()
    const [clock, onError] = [createManualClock(), vi.fn()]
    const tasks = createAgentTasks({
      clock,
      onError,
      isAgentBusy: turns.isBusy$,
      triggerAgentTurn: turns.triggerAgentTurn,
      subagents: { echo: () => 'done' },
    })
    onTestFinished(() => tasks.dispose())
    await turns.dispose()
    tasks.launch('echo', 'hi')
    await settle()
    clock.advance(60_000)
    await settle()
    expect(tasks.manager.getPendingNotifications()).toHaveLength(1)
    expect(respond).not.toHaveBeenCalled()
    expect(onError).not.toHaveBeenCalled()
  })
})

describe('turns for results', () => {
  function setUpHost() {
    const turns = setUp()
    const clock = createManualClock()
    const { isBusy$, triggerAgentTurn } = turns.turns
    const tasks = createAgentTasks({
      clock,
      onError: vi.fn(),
      isAgentBusy: isBusy$,
      triggerAgentTurn,
      autoTrigger: { deliveryTimeoutMs: 1000 },
      subagents: { echo: ({ goal }: { readonly goal: string }) => goal },
    })
    onTestFinished(() => tasks.dispose())
    return { ...turns, clock, tasks }
  }

  it('H4: wait for a turn of the user, and hold up the next one', async () => {
    const { turns, tasks, clock, answers, texts } = setUpHost()
    const user = turns.take('hello')
    await settle()
    tasks.launch('echo', 'the result')
    await settle()
    clock.advance(1)
    await settle()
    expect(texts()).toEqual(['hello'])
    answers[0]?.resolve('')
    await user
    await settle()
    clock.advance(1)
    await settle()
    const next = turns.take('again')
    await settle()
    expect(texts()).toEqual(['hello', expect.stringContaining('the result')])
    answers[1]?.resolve('')
    await settle()
    expect(tasks.manager.getPendingNotifications()).toEqual([])
    expect(texts()[2]).toBe('again')
    answers[2]?.resolve('')
    await next
  })

  it('A5, H4: are not taken any more when their delivery has expired while they waited', async () => {
    const { turns, tasks, clock, answers, texts } = setUpHost()
    tasks.launch('echo', 'the result')
    await settle()
    // The user's turn begins in the moment between the look at the agent and the delivery.
    const user = turns.take('hello')
    const delivery = { deliveryId: 'd', taskIds: [], signal: AbortSignal.abort(new Error('expired')), acceptIn }
    await expect(turns.triggerAgentTurn('text', delivery)).rejects.toThrow('expired')
    const controller = new AbortController()
    const waiting = turns.triggerAgentTurn('text', { ...delivery, signal: controller.signal })
    await settle()
    controller.abort(new Error('expired'))
    await expect(waiting).rejects.toThrow('expired')
    answers[0]?.resolve('')
    await user
    await settle()
    clock.advance(1)
    await settle()
    expect(texts()).toEqual(['hello', expect.stringContaining('the result')])
    answers[1]?.resolve('')
    await settle()
  })
})
