/** The task chart by itself: T1 to T6. */
import { describe, expect, it, vi } from 'vitest'
import { createActor, transition } from 'xstate'
import { asyncTaskMachine, type AsyncTaskEvent } from '../../../machines/async-task.js'
import type { TaskQuestion } from '../../../machines/records.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

function start(input: { timeoutMs?: number; graceMs?: number } = {}) {
  const clock = createManualClock()
  const requestAbort = vi.fn()
  const noted: (readonly TaskQuestion[])[] = []
  const noteQuestions = ({ context }: { context: { questions: readonly TaskQuestion[] } }) =>
    void noted.push(context.questions)
  const actor = createActor(asyncTaskMachine.provide({ actions: { requestAbort, noteQuestions } }), {
    clock: { setTimeout: (run, ms) => clock.setTimeout(run, ms), clearTimeout: (timer) => clock.clearTimeout(timer) },
    input: { id: 'a', subagentName: 'helper', graceMs: 100, ...input },
  })
  actor.start()
  const ask = (message: string) =>
    actor.send({ type: 'task.ask', question: { message, schema: { type: 'object' }, askedAt: clock.now() } })
  /** The ids of the open questions, whenever they changed. */
  const open = () => noted.map((questions) => questions.map(({ id }) => id))
  return { actor, clock, requestAbort, ask, open }
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
        // The actor has stopped and hears nothing more; the chart itself has no way out of its ends either.
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

  it('T3: after its deadline it can only fail, unless someone cancels it first', () => {
    const outputs = ends.map((end) => {
      const { actor, clock, requestAbort } = start({ timeoutMs: 500 })
      clock.advance(500)
      expect(requestAbort).toHaveBeenCalledOnce()
      expect(actor.getSnapshot().value).toEqual({ running: { deadline: 'overdue', attention: 'working' } })
      actor.send(end)
      expect(clock.pending).toBe(0)
      return actor.getSnapshot().output
    })
    expect(outputs).toEqual([
      { status: 'failed', error: 'Task timed out: it did not end within its limit of 500 ms.' },
      {
        status: 'failed',
        error: 'Task timed out: it did not end within its limit of 500 ms. It then reported: broken',
      },
      { status: 'cancelled' },
    ])
  })

  it('T4: it fails when its grace is over, with a message that names the limit', () => {
    const { actor, clock } = start({ timeoutMs: 3_000, graceMs: 100 })
    clock.advance(3_099)
    expect(actor.getSnapshot().status).toBe('active')
    clock.advance(1)
    expect(actor.getSnapshot().output).toEqual({
      status: 'failed',
      error: 'Task timed out: it did not end within its limit of 3 s.',
    })
  })

  it('T5: a task that asks ends like any other, and its deadline goes on', () => {
    for (const end of ends) {
      const { actor, clock, ask } = start({ timeoutMs: 500 })
      ask('Which one?')
      expect(actor.getSnapshot().value).toEqual({ running: { deadline: 'timed', attention: 'asking' } })
      actor.send(end)
      expect(actor.getSnapshot().status).toBe('done')
      expect(clock.pending).toBe(0)
    }
    const { actor, clock, ask, requestAbort } = start({ timeoutMs: 500, graceMs: 100 })
    ask('Which one?')
    clock.advance(500)
    expect(requestAbort).toHaveBeenCalledOnce()
    clock.advance(100)
    expect(actor.getSnapshot().value).toBe('failed')
  })

  it('T6: a question is open until it is answered, once, and its number is never used again', () => {
    const { actor, ask, open } = start()
    const answer = (questionId: string) => actor.send({ type: 'task.answer', questionId })
    answer('question-1')
    ask('First?')
    ask('Second?')
    answer('question-1')
    answer('question-1')
    answer('question-9')
    expect(actor.getSnapshot().matches({ running: { attention: 'asking' } })).toBe(true)
    answer('question-2')
    expect(actor.getSnapshot().matches({ running: { attention: 'working' } })).toBe(true)
    ask('Third?')
    expect(open()).toEqual([['question-1'], ['question-1', 'question-2'], ['question-2'], [], ['question-3']])
  })

  it('T6: an overdue task drops its questions and takes no more', () => {
    const { actor, clock, ask, open } = start({ timeoutMs: 500 })
    ask('First?')
    clock.advance(500)
    ask('Second?')
    expect(open()).toEqual([['question-1'], []])
    expect(actor.getSnapshot().matches({ running: { attention: 'working' } })).toBe(true)
  })

  it('waits for no deadline when it has none, and drops the one it has when it ends', () => {
    expect(start().clock.pending).toBe(0)
    const { actor, clock } = start({ timeoutMs: 500 })
    expect(clock.pending).toBe(1)
    actor.send({ type: 'task.cancel' })
    expect(clock.pending).toBe(0)
  })

  it('refuses to run into its deadline without the host’s effect', () => {
    const errors: unknown[] = []
    const clock = createManualClock()
    const timed = createActor(asyncTaskMachine, {
      clock: { setTimeout: (run, ms) => clock.setTimeout(run, ms), clearTimeout: (timer) => clock.clearTimeout(timer) },
      input: { id: 'a', subagentName: 's', graceMs: 0, timeoutMs: 1 },
    })
    timed.subscribe({ error: (error) => errors.push(error) })
    timed.start()
    clock.advance(1)
    expect(String(errors[0])).toContain('requestAbort')
  })

  it('refuses to ask without the host’s effect', () => {
    const errors: unknown[] = []
    const asking = createActor(asyncTaskMachine, { input: { id: 'a', subagentName: 's', graceMs: 0 } })
    asking.subscribe({ error: (error) => errors.push(error) })
    asking.start()
    asking.send({ type: 'task.ask', question: { message: 'Sure?', schema: { type: 'object' }, askedAt: 0 } })
    expect(errors).toEqual([new Error('async-task: the host must provide the action noteQuestions')])
    expect(asking.getSnapshot().status).toBe('error')
  })
})
