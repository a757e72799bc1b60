/** Questions of durable tasks: F20. */
import { describe, expect, it, vi } from 'vitest'
import { AsyncTaskReminderService, type AsyncTaskManager, type RunContext } from '../../../../src/index.js'
import { memoryStore, type MemoryStore, type StoreChange } from '../../../../src/store/index.js'
import { createCheckAsyncTasksTool } from '../../../../src/tools/index.js'
import { durableProcess, settle } from './durable-host.js'

const never = (): Promise<never> => new Promise(() => undefined)

const askTwice = async ({ ask }: RunContext): Promise<unknown> => {
  const first = await ask('Which branch?')
  const second = await ask({ message: 'Which colour?', choices: ['red', 'blue'] })
  return [first, second].map(({ content }) => content?.['answer'])
}

const idsOf = (manager: AsyncTaskManager): string[] | undefined =>
  manager.getTask('task')?.questions?.map(({ id }) => id)

const reminders = (manager: AsyncTaskManager): AsyncTaskReminderService => new AsyncTaskReminderService(manager)

describe('a question of a durable task', () => {
  it('F20: keeps its id over a crash, is answered while its task is queued, and starts the run that gets the answer', async () => {
    const runs: number[] = []
    const run = async (context: RunContext): Promise<unknown> => {
      runs.push(1)
      return askTwice(context)
    }
    const first = durableProcess(run)
    await first.launch()
    expect(idsOf(first.manager)).toEqual(['question-1'])
    const next = await first.next()
    expect(next.task()).toMatchObject({
      status: 'queued',
      questions: [{ id: 'question-1', message: 'Which branch?', askedAt: 1000 }],
    })
    expect(runs).toHaveLength(1)
    expect(next.manager.answerTask('task', 'question-1', 'main')).toBe(true)
    expect(next.manager.answerTask('task', 'question-1', 'dev')).toBe(false)
    await settle()
    expect(runs).toHaveLength(2)
    expect(next.task()).toMatchObject({ status: 'running', questions: [{ id: 'question-2' }] })
    const last = await next.next()
    expect(() => last.manager.answerTask('task', 'question-2', 'green')).toThrow('answer')
    expect(idsOf(last.manager)).toEqual(['question-2'])
    last.manager.answerTask('task', 'question-2', 'blue')
    await settle()
    expect(last.task()).toMatchObject({ status: 'completed', output: { final_message: '["main","blue"]' } })
    await settle()
    expect(last.rows()).toEqual([])
    expect(last.clock.pending).toBe(0)
  })

  it('F20: an answer is stored before the run gets it, and is not lost when the process dies then', async () => {
    const got: unknown[] = []
    const run = async ({ ask, step }: RunContext): Promise<unknown> => {
      got.push(await ask('Which branch?'))
      await step('b', never)
      return 0
    }
    const first = durableProcess(run)
    await first.launch()
    first.manager.answerTask('task', 'question-1', 'main')
    expect(got).toEqual([])
    await first.manager.stored()
    const crashed = first.store.copy()
    await settle()
    const next = durableProcess(run, {}, crashed)
    await next.manager.recovered
    await settle()
    const answer = { action: 'accept', content: { answer: 'main' } }
    expect(got).toEqual([answer, answer])
    expect(next.task()?.questions).toBeUndefined()
  })

  it('F20: an answer that came while its task was queued starts the run also when the process dies before there is a slot', async () => {
    const run = async ({ ask }: RunContext): Promise<unknown> => (await ask('Which branch?')).action
    const first = durableProcess(run, { maxAsyncTasks: 1, definition: { releasesSlot: true } })
    await first.launch()
    first.manager.launch(
      { id: 'other', subagentName: 'agent', goalPrompt: 'x' },
      { durable: true, run: ({ id }, { step }) => step(id, never) },
    )
    await settle()
    expect(first.manager.getTask('other')?.status).toBe('running')
    const blocked = await first.next(async ({ taskId, step, ask }) =>
      taskId === 'other' ? step('other', never) : (await ask('Which branch?')).action,
    )
    expect(blocked.task()).toMatchObject({ status: 'queued', questions: [{ id: 'question-1' }] })
    blocked.manager.answerTask('task', 'question-1', { action: 'decline' })
    await settle()
    expect(blocked.task()).toMatchObject({ status: 'queued' })
    expect(blocked.task()?.questions).toBeUndefined()
    const last = await blocked.next()
    last.manager.cancelTask('other')
    await settle()
    last.clock.advance(1)
    await settle()
    expect(last.task()).toMatchObject({ status: 'completed', output: { final_message: '"decline"' } })
  })

  it('F20: asking counts for neither the deadline nor the budget, and gives back the slot', async () => {
    const first = durableProcess(async ({ ask }) => (await ask('Which branch?')).action, {
      maxAsyncTasks: 1,
      definition: { releasesSlot: true, budget: { seconds: 1 } },
    })
    await first.launch({ timeoutMs: 1000 })
    first.clock.advance(1_000_000)
    await settle()
    expect(first.task()).toMatchObject({ status: 'running', questions: [{ id: 'question-1' }] })
    expect(first.manager.canLaunchAsync().allowed).toBe(true)
    const next = await first.next()
    next.clock.advance(1_000_000)
    next.manager.answerTask('task', 'question-1', { action: 'cancel' })
    await settle()
    expect(next.task()).toMatchObject({ status: 'completed', output: { final_message: '"cancel"' } })
  })

  it('F20: the deadline of a task that is not durable, or works besides, keeps counting, and withdraws the question', async () => {
    const run = async ({ ask, step }: RunContext): Promise<unknown> => {
      void step('work', never).catch(() => undefined)
      return (await ask('Which branch?')).action
    }
    for (const definition of [{ durable: false }, { durable: true }]) {
      const host = durableProcess(run, { definition })
      await host.launch({ timeoutMs: 1000 })
      expect(idsOf(host.manager)).toEqual(['question-1'])
      host.clock.advance(1000)
      await settle()
      host.clock.advance(1)
      await settle()
      expect(host.task()).toMatchObject({ status: 'failed', errorCode: 'TASK_TIMEOUT' })
      expect(host.manager.answerTask('task', 'question-1', 'main')).toBe(false)
    }
  })

  it('F20: an exceeded budget withdraws the question, and the run concludes', async () => {
    const first = durableProcess(
      async (context) => {
        const asked = context.ask('Which branch?').catch((error: unknown) => (error as { code: string }).code)
        context.spend({ steps: 2 })
        return asked
      },
      { definition: { budget: { steps: 1 } } },
    )
    await first.launch()
    expect(first.task()).toMatchObject({ status: 'completed', output: { final_message: '"QUESTION_WITHDRAWN"' } })
  })

  it('F20: a run that works besides starts at once after a crash, and its question is still the same', async () => {
    let works = 0
    const run = async ({ ask, step }: RunContext): Promise<unknown> => {
      const work = step('work', () => {
        works += 1
        return works === 1 ? never() : 'worked'
      })
      const asked = ask('Which branch?')
      return [await work, (await asked).action]
    }
    const first = durableProcess(run)
    await first.launch()
    const next = await first.next()
    expect(next.task()).toMatchObject({ status: 'running', questions: [{ id: 'question-1' }] })
    next.manager.answerTask('task', 'question-1', { action: 'decline' })
    await settle()
    expect(next.task()).toMatchObject({ status: 'completed', output: { final_message: '["worked","decline"]' } })
  })

  it('F20: an answer that comes before the run asks again is what it gets', async () => {
    let release = (): void => undefined
    let isSecond = false
    const run = async ({ ask, step }: RunContext): Promise<unknown> => {
      if (isSecond) await new Promise<void>((resolve) => (release = resolve))
      const work = step('work', () => (isSecond ? 1 : never()))
      return [(await ask('Which branch?')).action, await work]
    }
    const first = durableProcess(run)
    await first.launch()
    isSecond = true
    const next = await first.next()
    next.manager.answerTask('task', 'question-1', { action: 'decline' })
    await settle()
    expect(next.task()).toMatchObject({ status: 'running' })
    release()
    await settle()
    expect(next.task()).toMatchObject({ status: 'completed', output: { final_message: '["decline",1]' } })
  })

  it('F20: a question that was withdrawn by its signal fails again in the same way, and the next one has another id', async () => {
    const caught: unknown[] = []
    const controller = new AbortController()
    const run = async ({ ask }: RunContext): Promise<unknown> => {
      try {
        await ask('Which branch?', { signal: controller.signal })
      } catch (error) {
        const { name, message } = error as Error
        caught.push({ name, message, ...(error as object) })
      }
      return (await ask('And now?')).action
    }
    const first = durableProcess(run)
    await first.launch()
    controller.abort()
    await settle()
    expect(idsOf(first.manager)).toEqual(['question-2'])
    const next = await first.next(async (context) => {
      // In this process the signal has not aborted.
      await context.ask('Which branch?', { signal: new AbortController().signal }).catch((error: unknown) => {
        const { name, message } = error as Error
        caught.push({ name, message, ...(error as object) })
      })
      return (await context.ask('And now?')).action
    })
    next.manager.answerTask('task', 'question-2', { action: 'decline' })
    await settle()
    expect(next.task()).toMatchObject({ status: 'completed' })
    const withdrawn = {
      name: 'AgentTasksError',
      code: 'QUESTION_WITHDRAWN',
      message: expect.any(String) as unknown,
    }
    expect(caught).toEqual([withdrawn, withdrawn])
  })

  it('F20: a signal that has aborted before is a step that has failed, and asks nothing', async () => {
    const asked = vi.fn()
    const first = durableProcess(async ({ ask, step }) => {
      await ask('Which branch?', { signal: AbortSignal.abort() }).catch(() => undefined)
      await step('a', never)
      return 0
    })
    first.manager.questions$.subscribe(asked)
    await first.launch()
    expect(asked).not.toHaveBeenCalled()
    expect(first.rows().map(({ data }) => [data['key'], 'failure' in data])).toEqual([
      ['ask()', true],
      ['a', false],
    ])
  })

  it('F20: two questions at once need names, and survive both', async () => {
    const caught: unknown[] = []
    const run = async ({ ask }: RunContext): Promise<unknown> => {
      const one = ask('One?', { name: 'one' })
      const two = ask('Two?', { name: 'two' })
      if (caught.length === 0) {
        await ask('Two?', { name: 'two' }).catch((error: unknown) => caught.push((error as { code: string }).code))
      }
      return [(await one).action, (await two).action]
    }
    const first = durableProcess(run)
    await first.launch()
    expect(caught).toEqual(['INVALID_INPUT'])
    first.manager.answerTask('task', 'question-1', { action: 'accept', content: { answer: 'x' } })
    await settle()
    const next = await first.next()
    // It may have gone on after the first answer: it has started again, and asks.
    expect(next.task()).toMatchObject({ status: 'running', questions: [{ id: 'question-2' }] })
    next.manager.answerTask('task', 'question-2', { action: 'decline' })
    await settle()
    expect(next.task()).toMatchObject({ status: 'completed', output: { final_message: '["accept","decline"]' } })
  })

  it('F20: stays open while its task is repeated in the process, unless it was withdrawn', async () => {
    let runs = 0
    const run = async ({ ask, step }: RunContext): Promise<unknown> => {
      runs += 1
      const asked = ask('Which branch?')
      if (runs === 1) {
        await step('busy', () => Promise.reject(Object.assign(new Error('busy'), { code: 'RATE_LIMITED' })))
      }
      return (await asked).action
    }
    const retry = { attempts: 2, on: ['rate-limited' as const], backoff: { initialMs: 10, factor: 1 } }
    const first = durableProcess(run, { definition: { retry } })
    await first.launch()
    expect(first.task()).toMatchObject({ status: 'queued', questions: [{ id: 'question-1' }] })
    first.clock.advance(10)
    await settle()
    expect(first.task()).toMatchObject({ status: 'running', questions: [{ id: 'question-1' }] })
    first.manager.answerTask('task', 'question-1', { action: 'decline' })
    await settle()
    expect(first.task()).toMatchObject({ status: 'completed', output: { final_message: '"decline"' } })
  })

  it('F20: of a task that is not durable is withdrawn when it is repeated', async () => {
    let runs = 0
    const run = async ({ ask }: RunContext): Promise<unknown> => {
      runs += 1
      void ask('Which branch?')
      await settle()
      if (runs === 1) throw Object.assign(new Error('busy'), { code: 'RATE_LIMITED' })
      return never()
    }
    const retry = { attempts: 2, on: ['rate-limited' as const], backoff: { initialMs: 10, factor: 1 } }
    const first = durableProcess(run, { definition: { durable: false, retry } })
    await first.launch()
    await settle()
    expect(first.task()).toMatchObject({ status: 'queued' })
    expect(first.task()?.questions).toBeUndefined()
    first.clock.advance(10)
    await settle()
    await settle()
    expect(idsOf(first.manager)).toEqual(['question-2'])
  })

  it('F20: an answer that is too large for a step is refused, and the question stays open', async () => {
    const first = durableProcess(async ({ ask }) => (await ask('Which branch?')).action)
    await first.launch()
    expect(() => first.manager.answerTask('task', 'question-1', 'x'.repeat(1024 * 1024))).toThrow('answer.content')
    expect(idsOf(first.manager)).toEqual(['question-1'])
    first.manager.answerTask('task', 'question-1', 'main')
    await settle()
    expect(first.task()).toMatchObject({ status: 'completed' })
  })

  it('F20: a model learns that its answer is stored, or that it is not yet', async () => {
    const store = memoryStore()
    let write: MemoryStore['write'] = (changes) => store.write(changes)
    const slow = { ...store, write: (changes: readonly StoreChange[]) => write(changes) }
    const first = durableProcess(askTwice, {}, slow)
    await first.launch()
    const tool = createCheckAsyncTasksTool({ getAsyncTaskManager: () => first.manager })
    const answer = (given: string) => tool.execute({ task_id: 'task', action: 'answer', answer: given })
    write = async (changes) => {
      await settle()
      return store.write(changes)
    }
    const answered = answer('main')
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve()
    // The run has not gone on yet.
    expect(idsOf(first.manager)).toBeUndefined()
    expect((await answered).llmContent).toBe('Answered question-1 of task task.')
    expect(first.rows().map(({ data }) => typeof data['result'])).toEqual(['string'])
    await settle()
    write = () => Promise.reject(new Error('the disk is full'))
    expect((await answer('red')).llmContent).toContain('This could not be stored yet')
    expect(first.task()?.status).toBe('running')
    expect(first.errors).not.toEqual([])
    write = (changes) => store.write(changes)
    first.clock.advance(60_000)
    await settle()
    expect(first.task()).toMatchObject({ status: 'completed', output: { final_message: '["main","red"]' } })
  })

  it('F20: of a task that ends leaves nothing, also when the task is queued', async () => {
    const first = durableProcess(askTwice)
    await first.launch()
    const next = await first.next()
    const { ledger } = next.manager.registry
    expect(ledger.isOwing('main')).toBe(true)
    next.manager.cancelTask('task')
    await settle()
    expect(next.task()).toMatchObject({ status: 'cancelled' })
    expect(next.task()?.questions).toBeUndefined()
    expect(next.rows()).toEqual([])
    expect(ledger.isOwing('main')).toBe(false)
  })

  it('F20: a damaged question is asked again, under another id', async () => {
    const first = durableProcess(askTwice)
    await first.launch()
    const store = first.store.copy()
    const [task] = store.contents().tasks
    store.open()
    const record = { ...task!.record, questions: [{ id: 'question-1' }] }
    await store.write([{ table: 'tasks', put: { ...task!, record } }])
    store.close()
    const next = durableProcess(askTwice, {}, store)
    await next.manager.recovered
    await settle()
    expect(next.task()).toMatchObject({ status: 'running', questions: [{ id: 'question-2' }] })
  })
})

describe('the message that asks a question of a durable task', () => {
  it('F20: is stored before it is sent, and is owed again, marked, when nobody knows whether it arrived', async () => {
    const first = durableProcess(askTwice)
    await first.launch()
    const sent = reminders(first.manager).leaseReminder()
    expect(first.store.contents().deliveries).toEqual([])
    await sent?.stored
    expect(first.store.contents().deliveries).toMatchObject([
      { id: sent?.deliveryId, state: 'sent', taskIds: [], questions: [{ taskId: 'task', questionId: 'question-1' }] },
    ])
    const next = await first.next()
    await expect(next.manager.recovered).resolves.toMatchObject({ uncertain: ['task'] })
    const again = reminders(next.manager).leaseReminder()
    expect(again).toMatchObject({ isRepeat: true, questions: [{ questionId: 'question-1' }] })
    expect(again?.text).toContain('possible repeat')
    // The mark is stored.
    again?.release()
    await settle()
    const last = await next.next()
    expect(reminders(last.manager).leaseReminder()).toMatchObject({ isRepeat: true })
  })

  it('F20: that was accepted is uncertain until it is confirmed, as one with results is', async () => {
    const first = durableProcess(askTwice)
    await first.launch()
    const sent = reminders(first.manager).leaseReminder()
    await sent?.stored
    sent?.acknowledge()
    await settle()
    expect(first.store.contents().deliveries).toMatchObject([{ state: 'accepted' }])
    const next = await first.next()
    expect(next.manager.registry.ledger.isOwing('main')).toBe(true)

    first.manager.confirm(sent!.deliveryId)
    await settle()
    expect(first.store.contents().deliveries).toEqual([])
    const last = await first.next()
    await expect(last.manager.recovered).resolves.toMatchObject({ uncertain: [] })
    expect(last.manager.registry.ledger.isOwing('main')).toBe(false)
    expect(idsOf(last.manager)).toEqual(['question-1'])
    // The message is still known by its id.
    expect(last.manager.redeliver(sent!.deliveryId)).toBe(true)
    expect(reminders(last.manager).leaseReminder()).toMatchObject({ isRepeat: true })
  })

  it.each([
    [true, false],
    [false, true],
  ])('F20: that the host says was delivered (%s) is owed again: %s', async (wasDelivered, isOwing) => {
    const first = durableProcess(askTwice)
    await first.launch()
    await reminders(first.manager).leaseReminder()?.stored
    const next = await first.next(askTwice, { wasDelivered: () => wasDelivered })
    expect(next.manager.registry.ledger.isOwing('main')).toBe(isOwing)
    await settle()
    expect(next.store.contents().deliveries).toEqual([])
    const last = await next.next()
    expect(last.manager.registry.ledger.isOwing('main')).toBe(isOwing)
    const again = reminders(last.manager).leaseReminder()
    expect(again?.isRepeat).toBeUndefined()
  })

  it('F20: of a repeat is confirmed when it is accepted', async () => {
    const first = durableProcess(askTwice)
    await first.launch()
    await reminders(first.manager).leaseReminder()?.stored
    const next = await first.next()
    const again = reminders(next.manager).leaseReminder()
    await again?.stored
    again?.acknowledge()
    await settle()
    expect(next.store.contents().deliveries).toEqual([])
    const last = await next.next()
    expect(last.manager.registry.ledger.isOwing('main')).toBe(false)
  })

  it('F20: that was accepted late delivers its questions for the next process, too', async () => {
    const first = durableProcess(askTwice)
    await first.launch()
    const sent = reminders(first.manager).leaseReminder()
    await sent?.stored
    sent?.release()
    await settle()
    expect(first.store.contents().deliveries).toEqual([])
    sent?.acknowledge()
    await settle()
    expect(first.store.contents().deliveries).toMatchObject([{ state: 'accepted', questions: [{ taskId: 'task' }] }])
    first.manager.confirm(sent!.deliveryId)
    await settle()
    const next = await first.next()
    expect(next.manager.registry.ledger.isOwing('main')).toBe(false)
  })

  it('F20: is not stored for a task whose questions end with its process', async () => {
    const first = durableProcess(askTwice, { definition: { durable: false } })
    await first.launch()
    const sent = reminders(first.manager).leaseReminder()
    await sent?.stored
    sent?.acknowledge()
    await settle()
    expect(first.store.contents().deliveries).toEqual([])
  })

  it('F20: goes to the owner of the parent after a restart, also when the parent is restored later', async () => {
    const run = async ({ taskId, ask, launch }: RunContext): Promise<unknown> => {
      if (taskId === 'task') launch({ subagentName: 'agent', goalPrompt: 'child', id: 'a-child', priority: 9 })
      return (await ask('Which branch?')).action
    }
    const definition = {
      durable: true,
      run: async (_input: unknown, context: RunContext) => String(await run(context)),
    }
    const first = durableProcess(run, { findRunner: () => definition })
    await first.launch()
    const next = await (await first.next()).next()
    expect(next.manager.getTask('a-child')).toMatchObject({ status: 'queued', owner: 'run:task' })
    const asked = reminders(next.manager).leaseReminder()?.questions ?? []
    expect(asked.map(({ taskId }) => taskId).sort()).toEqual(['a-child', 'task'])
  })
})
