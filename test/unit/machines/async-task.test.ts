/** The task's machine by itself: T1 to T9. */
import { describe, expect, it, vi } from 'vitest'
import { createActor, createMachine, transition } from 'xstate'
import {
  asyncTaskMachine,
  timeoutMessage,
  type AsyncTaskEvent,
  type AsyncTaskHost,
  type AsyncTaskMachine,
} from '../../../machines/async-task.js'
import type { TaskQuestion } from '../../../machines/records.js'
import { TERMINAL_STATUSES } from '../../../machines/task-status.js'
import { statesOf } from '../../../scripts/charts.js'

function start(timeoutMs?: number, machine = asyncTaskMachine) {
  const requestAbort = vi.fn<AsyncTaskHost['requestAbort']>()
  const requestWrapUp = vi.fn<AsyncTaskHost['requestWrapUp']>()
  const published: string[][] = []
  const setQuestions = (_id: string, questions: readonly TaskQuestion[]) =>
    void published.push(questions.map(({ id }) => id))
  const actor = createActor(machine, {
    input: {
      id: 'a',
      subagentName: 'helper',
      host: { requestAbort, requestWrapUp, setQuestions },
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
      expect(actor.getSnapshot().value).toEqual({ active: 'stopping' })
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
    expect(actor.getSnapshot().value).toEqual({ active: 'running' })
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
      expect(actor.getSnapshot().value).toEqual({ active: 'asking' })
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

  it('T7: a task that waits can only start, fail or be cancelled', () => {
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
    expect(actor.getSnapshot().value).toEqual({ active: 'queued' })
    actor.send({ type: 'task.start' })
    expect(actor.getSnapshot().value).toEqual({ active: 'running' })
    const failed = queued()
    failed.send({ type: 'task.fail', error: 'too late', errorCode: 'QUEUE_TIMEOUT' })
    expect(failed.getSnapshot().output).toEqual({ status: 'failed', error: 'too late', errorCode: 'QUEUE_TIMEOUT' })
    const cancelled = queued()
    cancelled.send({ type: 'task.cancel' })
    expect(cancelled.getSnapshot().output).toEqual({ status: 'cancelled' })
    const overdue = start(500)
    overdue.actor.send({ type: 'deadline.passed' })
    overdue.actor.send({ type: 'task.queue' })
    expect(overdue.actor.getSnapshot().value).toEqual({ active: 'queued' })
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
    expect(actor.getSnapshot().value).toEqual({ active: 'wrapping' })
    actor.send({ type: 'task.complete', output: {} })
    expect(actor.getSnapshot().output).toEqual({ status: 'completed', output: {} })
    const outputs = [...ends, { type: 'grace.passed' } as const].map((end) => {
      const { actor: stopped, requestAbort } = exceeded()
      stopped.send({ type: 'deadline.passed' })
      expect(requestAbort).toHaveBeenCalledExactlyOnceWith('a', 'Too many tokens.')
      stopped.send({ type: 'task.queue' })
      expect(stopped.getSnapshot().value).toEqual({ active: 'stopping' })
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

  it('T9: stopped by a limit, it completes with the last output that its run has offered before', () => {
    const offer = (text: string): AsyncTaskEvent => ({ type: 'task.offer', output: { final_message: text } })
    const limits: readonly (readonly [AsyncTaskEvent[], string])[] = [
      [[], 'TASK_TIMEOUT'],
      [[{ type: 'budget.exceeded', message: 'Too many tokens.' }], 'BUDGET_EXCEEDED'],
    ]
    for (const [before, terminate_reason] of limits) {
      for (const end of [...ends, { type: 'grace.passed' } as const]) {
        const { actor } = start(500)
        const events = [offer('first'), ...before, offer('second'), { type: 'deadline.passed' } as const, offer('late')]
        for (const event of events) actor.send(event)
        actor.send({ type: 'task.queue' })
        expect(actor.getSnapshot().value).toEqual({ active: 'stopping' })
        actor.send(end)
        expect(actor.getSnapshot().output).toEqual(
          end.type === 'task.cancel'
            ? { status: 'cancelled' }
            : { status: 'completed', output: { final_message: 'second', terminate_reason } },
        )
      }
    }
  })

  it('T9: an offered output belongs to its run, and changes no end but that by a limit', () => {
    for (const ask of [false, true]) {
      const { actor, ask: askQuestion } = start(500)
      actor.send({ type: 'task.offer', output: { final_message: 'of the first run' } })
      if (ask) askQuestion('May I?')
      actor.send({ type: 'task.queue' })
      actor.send({ type: 'task.offer', output: { final_message: 'of no run' } })
      actor.send({ type: 'task.start' })
      actor.send({ type: 'deadline.passed' })
      actor.send({ type: 'grace.passed' })
      expect(actor.getSnapshot().output).toMatchObject({ status: 'failed', errorCode: 'TASK_TIMEOUT' })
    }
    const outputs = ends.map((end) => {
      const { actor } = start()
      actor.send({ type: 'task.offer', output: { final_message: 'so far' } })
      actor.send(end)
      return actor.getSnapshot().output
    })
    expect(outputs).toMatchObject([
      { status: 'completed', output: { final_message: 'done' } },
      { status: 'failed', error: 'broken' },
      { status: 'cancelled' },
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
    expect(actor.getSnapshot().value).toEqual({ active: 'asking' })
    answer('question-2')
    expect(actor.getSnapshot().value).toEqual({ active: 'running' })
    ask('Third?')
    expect(published).toEqual([['question-1'], ['question-1', 'question-2'], ['question-2'], [], ['question-3']])
  })

  it('T6: an overdue task withdraws its questions and asks no more', () => {
    const { actor, ask, published } = start(500)
    ask('First?')
    actor.send({ type: 'deadline.passed' })
    ask('Second?')
    expect(published).toEqual([['question-1'], []])
    expect(actor.getSnapshot().value).toEqual({ active: 'stopping' })
  })
})

describe('the state active', () => {
  const exceeded: AsyncTaskEvent = { type: 'budget.exceeded', message: 'Too many tokens.' }
  const asked: AsyncTaskEvent = { type: 'task.ask', question: { message: 'Which one?', schema: {}, askedAt: 0 } }
  /** Events that lead to each state inside, from the start. */
  const waysTo: Readonly<Record<string, readonly AsyncTaskEvent[]>> = {
    queued: [{ type: 'task.queue' }],
    running: [],
    asking: [asked],
    wrapping: [exceeded],
    stopping: [{ type: 'deadline.passed' }],
  }

  it('T1: has a way to each state inside, so that the tests below are of all of them', () => {
    expect(Object.keys(waysTo)).toEqual(Object.keys(asyncTaskMachine.states['active']?.states ?? {}))
    for (const [state, way] of Object.entries(waysTo)) {
      const { actor } = start(500)
      for (const event of way) actor.send(event)
      expect(actor.getSnapshot().value).toEqual({ active: state })
    }
  })

  it.each(Object.entries(waysTo))(
    'T1: an end leaves %s first, then active, and enters the final state',
    (state, way) => {
      for (const end of ends) {
        if (state === 'queued' && end.type === 'task.complete') continue
        const { machine, moves } = noted()
        const { actor } = start(500, machine)
        for (const event of way) actor.send(event)
        moves.length = 0
        actor.send(end)
        const final = actor.getSnapshot().value as string
        // XState leaves all states of a machine that ends.
        expect(moves).toEqual([`exit active.${state}`, 'exit active', `entry ${final}`, `exit ${final}`])
      }
    },
  )

  it('is entered once, whatever happens inside', () => {
    const { machine, moves } = noted()
    const { actor } = start(500, machine)
    const inside: AsyncTaskEvent[] = [
      { type: 'task.queue' },
      { type: 'task.complete', output: {} },
      { type: 'task.start' },
      asked,
      asked,
      { type: 'task.answer', questionId: 'question-1' },
      { type: 'task.answer', questionId: 'question-2' },
      { type: 'deadline.passed' },
      { type: 'task.queue' },
      { type: 'task.start' },
      asked,
      exceeded,
      { type: 'deadline.passed' },
    ]
    for (const event of inside) actor.send(event)
    expect(actor.getSnapshot().value).toEqual({ active: 'stopping' })
    expect(moves.filter((move) => move.endsWith(' active'))).toEqual(['entry active'])
    const states = ['queued', 'running', 'asking', 'running', 'stopping', 'queued', 'running', 'asking', 'wrapping']
    expect(moves.filter((move) => move.startsWith('entry active.'))).toEqual(
      ['running', ...states, 'stopping'].map((state) => `entry active.${state}`),
    )
  })

  it('T7: a result that comes while the task is queued changes nothing, and enters no state again', () => {
    const { machine, moves } = noted()
    const { actor } = start(500, machine)
    actor.send({ type: 'task.queue' })
    const before = actor.getSnapshot()
    moves.length = 0
    actor.send({ type: 'task.complete', output: { final_message: 'done' } })
    expect(actor.getSnapshot()).toMatchObject({ value: before.value, status: 'active', output: undefined })
    expect(actor.getSnapshot().context).toEqual(before.context)
    expect(moves).toEqual([])
  })

  it('T4: what the host sends while it is asked to stop follows the transition, and ends the task as overdue', () => {
    const { actor, requestAbort } = start(500)
    requestAbort.mockImplementation(() => actor.send({ type: 'task.fail', error: 'stopped' }))
    actor.send({ type: 'deadline.passed' })
    expect(requestAbort).toHaveBeenCalledOnce()
    expect(actor.getSnapshot()).toMatchObject({
      value: 'failed',
      output: { errorCode: 'TASK_TIMEOUT', error: expect.stringMatching(/It then reported: stopped$/) as string },
    })
  })

  it('T8: what the host sends while it is asked to wrap up follows the transition, and may complete the task', () => {
    const { actor, requestAbort, requestWrapUp } = start(500)
    requestWrapUp.mockImplementation(() => actor.send({ type: 'task.complete', output: { final_message: 'short' } }))
    actor.send(exceeded)
    expect(requestWrapUp).toHaveBeenCalledOnce()
    expect(requestAbort).not.toHaveBeenCalled()
    expect(actor.getSnapshot().output).toEqual({ status: 'completed', output: { final_message: 'short' } })
  })

  it('T1: contains all states but the final ones, which are at the top', () => {
    const final = statesOf(asyncTaskMachine).filter(({ node }) => node.type === 'final')
    expect(final.map(({ path }) => path)).toEqual(TERMINAL_STATUSES)
    expect(Object.keys(asyncTaskMachine.states)).toEqual(['active', ...TERMINAL_STATUSES])
  })
})

interface StateConfig {
  readonly entry?: string
  readonly states?: Readonly<Record<string, StateConfig>>
}

/** The machine with an entry and an exit of each state that note it. */
function noted() {
  const moves: string[] = []
  const note = (move: string) => () => void moves.push(move)
  const noting = (states: Readonly<Record<string, StateConfig>>, parent: string): object =>
    Object.fromEntries(
      Object.entries(states).map(([name, { entry, states: inner, ...config }]) => {
        const path = `${parent}${name}`
        const entries = [note(`entry ${path}`), ...(entry === undefined ? [] : [entry])]
        const nested = inner && { states: noting(inner, `${path}.`) }
        return [name, { ...config, entry: entries, exit: note(`exit ${path}`), ...nested }]
      }),
    )
  const { states } = asyncTaskMachine.config as { readonly states: Readonly<Record<string, StateConfig>> }
  const config: object = { ...asyncTaskMachine.config, states: noting(states, '') }
  const machine = createMachine(config, asyncTaskMachine.implementations as object)
  return { machine: machine as unknown as AsyncTaskMachine, moves }
}

describe('the error of a task that was stopped', () => {
  it.each([
    [500, '500 ms'],
    [1_000, '1 s'],
    [1_500, '1500 ms'],
    [90_000, '90 s'],
  ])('T4: names a limit of %i ms as %s', (timeoutMs, limit) => {
    const message = `Task timed out: it did not end within its limit of ${limit}.`
    expect(timeoutMessage(timeoutMs)).toBe(message)
    expect(timeoutMessage(timeoutMs, message)).toBe(message)
    expect(timeoutMessage(timeoutMs, 'no')).toBe(`${message} It then reported: no`)
  })

  it('T4: has what its run threw, and no late output where it returned nothing', () => {
    const stop = (event: AsyncTaskEvent) => {
      const { actor } = start(1_000)
      actor.send({ type: 'deadline.passed' })
      actor.send(event)
      return actor.getSnapshot().output
    }
    const cause = new Error('broken')
    const failed = { status: 'failed', errorCode: 'TASK_TIMEOUT' }
    const message = timeoutMessage(1_000)
    expect(stop({ type: 'task.fail', error: 'broken', errorName: 'E', errorCode: 'C', cause })).toEqual({
      ...failed,
      error: `${message} It then reported: broken`,
      cause,
    })
    expect(stop({ type: 'task.fail', error: message })).toEqual({ ...failed, error: message })
    expect(stop({ type: 'task.complete', output: {} })).toEqual({ ...failed, error: message })
    expect(stop({ type: 'task.complete', output: { a: 1 } })).toEqual({
      ...failed,
      error: `${message} It then returned a result, too late.`,
      lateOutput: { a: 1 },
    })
    expect(stop({ type: 'grace.passed' })).toEqual({ ...failed, error: message })
  })
})
