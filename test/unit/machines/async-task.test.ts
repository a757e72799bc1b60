/** The task's machine by itself: T1 to T8. */
import { describe, expect, it, vi } from 'vitest'
import { createActor, transition } from 'xstate'
import { asyncTaskMachine, type AsyncTaskEvent } from '../../../machines/async-task.js'
import type { TaskQuestion } from '../../../machines/records.js'

function start(timeoutMs?: number) {
  const requestAbort = vi.fn()
  const requestWrapUp = vi.fn()
  const published: string[][] = []
  const setQuestions = (_id: string, questions: readonly TaskQuestion[]) =>
    void published.push(questions.map(({ id }) => id))
  const actor = createActor(asyncTaskMachine, {
    input: {
      ...{ id: 'a', subagentName: 'helper', host: { requestAbort, requestWrapUp, setQuestions } },
      ...(timeoutMs !== undefined && { timeoutMs }),
    },
  })
  actor.start()
  const ask = (message: string) =>
    actor.send({ type: 'task.ask', question: { message, schema: { type: 'object' }, askedAt: 0 } })
  return { actor, requestAbort, requestWrapUp, ask, published }
}

const ends: AsyncTaskEvent[] = [
  { type: 'task.complete', output: { final_message: 'done' } },
  { type: 'task.fail', error: 'broken' },
  { type: 'task.cancel' },
]

describe('a task', () => {
  it('T1: ends in exactly one way, and whatever arrives later changes nothing', () => {
    for (const first of ends) {
      for (const second of ends) {
        const { actor } = start()
        actor.send(first)
        const ended = actor.getSnapshot()
        expect(ended.status).toBe('done')
        // The actor has stopped; the machine itself has no transition out of its final states either.
        const [next] = transition(asyncTaskMachine, ended, second)
        expect(next).toMatchObject({ value: ended.value, status: 'done', output: ended.output })
      }
    }
  })

  it('T2: the event that ends it fixes status, output and error', () => {
    const outputs = ends.map((end) => {
      const { actor } = start()
      actor.send(end)
      return actor.getSnapshot().output
    })
    expect(outputs).toEqual([
      { status: 'completed', output: { final_message: 'done' } },
      { status: 'failed', error: 'broken' },
      { status: 'cancelled' },
    ])
  })

  it('T3: after its deadline it can only fail, unless it is cancelled first', () => {
    const outputs = ends.map((end) => {
      const { actor, requestAbort } = start(500)
      actor.send({ type: 'deadline.passed' })
      expect(requestAbort).toHaveBeenCalledExactlyOnceWith('a', undefined)
      expect(actor.getSnapshot().value).toBe('stopping')
      actor.send(end)
      return actor.getSnapshot().output
    })
    expect(outputs).toEqual([
      {
        status: 'failed',
        error: 'Task timed out: it did not end within its limit of 500 ms. It then returned a result, too late.',
        errorCode: 'TASK_TIMEOUT',
        lateOutput: { final_message: 'done' },
      },
      {
        status: 'failed',
        error: 'Task timed out: it did not end within its limit of 500 ms. It then reported: broken',
        errorCode: 'TASK_TIMEOUT',
      },
      { status: 'cancelled' },
    ])
  })

  it('T3: its message is said once when its run reports the reason that it was stopped with', () => {
    const message = 'Task timed out: it did not end within its limit of 500 ms.'
    const { actor } = start(500)
    actor.send({ type: 'deadline.passed' })
    actor.send({ type: 'task.fail', error: message })
    expect(actor.getSnapshot().output).toMatchObject({ status: 'failed', error: message })
  })

  it('T4: it fails when its grace has passed, with a message that names the limit', () => {
    const { actor } = start(3_000)
    actor.send({ type: 'grace.passed' })
    expect(actor.getSnapshot().value).toBe('running')
    actor.send({ type: 'deadline.passed' })
    actor.send({ type: 'grace.passed' })
    expect(actor.getSnapshot().output).toEqual({
      status: 'failed',
      error: 'Task timed out: it did not end within its limit of 3 s.',
      errorCode: 'TASK_TIMEOUT',
    })
  })

  it('T5: a task that asks ends like any other, and its deadline applies', () => {
    for (const end of ends) {
      const { actor, ask } = start(500)
      ask('Which one?')
      expect(actor.getSnapshot().value).toBe('asking')
      actor.send(end)
      expect(actor.getSnapshot().status).toBe('done')
    }
    const { actor, ask, requestAbort } = start(500)
    ask('Which one?')
    actor.send({ type: 'deadline.passed' })
    expect(requestAbort).toHaveBeenCalledOnce()
    actor.send({ type: 'grace.passed' })
    expect(actor.getSnapshot().value).toBe('failed')
  })

  it('T7: a task that waits starts, fails or is cancelled, and nothing else', () => {
    const queued = () => {
      const { actor, ask } = start(500)
      ask('Which one?')
      actor.send({ type: 'task.queue' })
      return actor
    }
    const actor = queued()
    expect(actor.getSnapshot().context.questions).toEqual([])
    const ignored: AsyncTaskEvent[] = [
      { type: 'task.complete', output: {} },
      { type: 'task.ask', question: { message: 'Which one?', schema: {}, askedAt: 0 } },
      { type: 'task.queue' },
      { type: 'budget.exceeded', message: 'too much' },
      { type: 'deadline.passed' },
      { type: 'grace.passed' },
    ]
    for (const event of ignored) actor.send(event)
    expect(actor.getSnapshot().value).toBe('queued')
    actor.send({ type: 'task.start' })
    expect(actor.getSnapshot().value).toBe('running')
    const failed = queued()
    failed.send({ type: 'task.fail', error: 'too late', errorCode: 'QUEUE_TIMEOUT' })
    expect(failed.getSnapshot().output).toEqual({ status: 'failed', error: 'too late', errorCode: 'QUEUE_TIMEOUT' })
    const cancelled = queued()
    cancelled.send({ type: 'task.cancel' })
    expect(cancelled.getSnapshot().output).toEqual({ status: 'cancelled' })
    const overdue = start(500)
    overdue.actor.send({ type: 'deadline.passed' })
    overdue.actor.send({ type: 'task.queue' })
    expect(overdue.actor.getSnapshot().value).toBe('queued')
  })

  it('T8: over its budget it may complete, and fails with the budget when it is stopped', () => {
    const exceeded = () => {
      const started = start(500)
      started.actor.send({ type: 'budget.exceeded', message: 'Too many tokens.' })
      return started
    }
    const { actor, requestWrapUp, ask } = exceeded()
    expect(requestWrapUp).toHaveBeenCalledExactlyOnceWith('a', 'Too many tokens.')
    ask('May I?')
    actor.send({ type: 'task.queue' })
    expect(actor.getSnapshot().value).toBe('wrapping')
    actor.send({ type: 'task.complete', output: {} })
    expect(actor.getSnapshot().output).toEqual({ status: 'completed', output: {} })
    const outputs = [...ends, { type: 'grace.passed' } as const].map((end) => {
      const { actor: stopped, requestAbort } = exceeded()
      stopped.send({ type: 'deadline.passed' })
      expect(requestAbort).toHaveBeenCalledExactlyOnceWith('a', 'Too many tokens.')
      stopped.send({ type: 'task.queue' })
      expect(stopped.getSnapshot().value).toBe('stopping')
      stopped.send(end)
      return stopped.getSnapshot().output
    })
    const failed = { status: 'failed', errorCode: 'BUDGET_EXCEEDED' }
    expect(outputs).toEqual([
      {
        ...failed,
        error: 'Too many tokens. It then returned a result, too late.',
        lateOutput: { final_message: 'done' },
      },
      { ...failed, error: 'Too many tokens. It then reported: broken' },
      { status: 'cancelled' },
      { ...failed, error: 'Too many tokens.' },
    ])
  })

  it('T6: a question is open until it is answered, once, and its number is never used again', () => {
    const { actor, ask, published } = start()
    const answer = (questionId: string) => actor.send({ type: 'task.answer', questionId })
    answer('question-1')
    ask('First?')
    ask('Second?')
    answer('question-1')
    answer('question-1')
    answer('question-9')
    expect(actor.getSnapshot().value).toBe('asking')
    answer('question-2')
    expect(actor.getSnapshot().value).toBe('running')
    ask('Third?')
    expect(published).toEqual([['question-1'], ['question-1', 'question-2'], ['question-2'], [], ['question-3']])
  })

  it('T6: an overdue task withdraws its questions and asks no more', () => {
    const { actor, ask, published } = start(500)
    ask('First?')
    actor.send({ type: 'deadline.passed' })
    ask('Second?')
    expect(published).toEqual([['question-1'], []])
    expect(actor.getSnapshot().value).toBe('stopping')
  })
})
