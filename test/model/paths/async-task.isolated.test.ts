/** Every way through the chart of an async task, taken by the manager that owns it: T1 to T4, T7, T8, A1 to A3. */
import { describe, expect, it, vi } from 'vitest'
import type { StateValue } from 'xstate'
import { asyncTaskMachine, type AsyncTaskEvent } from '../../../machines/async-task.js'
import type { AsyncTaskInfo, Settlement } from '../../../machines/records.js'
import { AsyncTaskManager } from '../../../src/async-tasks/manager.js'
import type { RunContext } from '../../../src/engine/runner.js'
import { createControllableEngine } from '../../support/controllable-engine.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'
import { watchState } from '../../support/watched-xstate.js'
import { everyWay, takeEach, type Way } from './ways.js'

vi.mock('xstate', () => import('../../support/watched-xstate.js').then(({ watchedXState }) => watchedXState()))

const TIMEOUT_MS = 500
const GRACE_MS = 100
const BACKOFF_MS = 50

const events: readonly AsyncTaskEvent[] = [
  { type: 'task.complete', output: { final_message: 'done' } },
  { type: 'task.fail', error: 'broken' },
  { type: 'task.cancel' },
  { type: 'task.offer', output: { final_message: 'so far' } },
  { type: 'deadline.passed' },
  { type: 'grace.passed' },
  { type: 'task.queue' },
  { type: 'task.start' },
  { type: 'budget.exceeded', message: 'Budget exceeded: its limit is 1 steps. Spent: 2 steps.' },
  { type: 'task.ask', question: { message: 'Which one?', schema: {}, askedAt: 0 } },
  { type: 'task.answer', questionId: 'question-1' },
  { type: 'task.answer', questionId: 'question-2' },
]

const NO_EFFECTS = { requestAbort: () => undefined, requestWrapUp: () => undefined, setQuestions: () => undefined }

/** The most questions a way asks: the chart counts them, and this is what bounds its context. */
const MAX_ASKED = 2

interface Setting {
  readonly timeoutMs?: number
  /** It was launched: only then can a run ask, have a budget, and be repeated. */
  readonly isLaunched: boolean
  /** A run that stops after its deadline is repeated. */
  readonly repeatsLate?: boolean
}

/** The name of its state: that inside `active`, or the final one. */
const nameOf = ({ value }: { readonly value: StateValue }): StateValue | undefined =>
  typeof value === 'string' ? value : value['active']

const waysOf = ({ timeoutMs, isLaunched: canAsk, repeatsLate = false }: Setting): readonly Way<AsyncTaskEvent>[] =>
  everyWay(asyncTaskMachine, {
    input: { id: 'a', subagentName: 'helper', host: NO_EFFECTS, ...(timeoutMs !== undefined && { timeoutMs }) },
    events,
    canHappen: (snapshot, { type }) => {
      const { status } = snapshot
      const context: unknown = snapshot.context
      const value = nameOf(snapshot)
      if (type === 'task.ask') return canAsk && (context as { asked: number }).asked < MAX_ASKED
      if (type === 'task.answer') return canAsk
      const { offered } = context as { offered?: object }
      if (type === 'task.offer') return canAsk && offered === undefined && (context as { asked: number }).asked === 0
      if (type === 'budget.exceeded') return canAsk
      const isRepeatedLate =
        repeatsLate &&
        value === 'stopping' &&
        (context as { excess?: string }).excess === undefined &&
        offered === undefined
      if (type === 'task.queue') return isRepeatedLate || (canAsk && (value === 'running' || value === 'asking'))
      if (isRepeatedLate && (type === 'task.complete' || type === 'task.fail')) return false
      if (type === 'task.start') return value === 'queued'
      if (type === 'deadline.passed') {
        if (status !== 'active' || value === 'stopping' || value === 'queued') return false
        return timeoutMs !== undefined || value === 'wrapping'
      }
      return type !== 'grace.passed' || value === 'stopping'
    },
  })

/** What a method asks for; after the deadline, completing a task fails it. */
const statusBy: Readonly<Record<string, string>> = {
  'task.complete': 'completed',
  'task.fail': 'failed',
  'task.cancel': 'cancelled',
}

/** What brings the events about: the caller's methods, or a run that was launched. */
type Host = ReturnType<typeof createHost>

function createHost({ timeoutMs, repeatsLate = false }: Setting) {
  const clock = createManualClock(1_000)
  const engine = createControllableEngine()
  const told: AsyncTaskInfo[] = []
  const manager = new AsyncTaskManager({ maxAsyncTasks: 1, graceMs: GRACE_MS, clock, engine, onError: () => undefined })
  manager.onTaskCompleted((task) => told.push(task))
  manager.onTaskFailed((task) => told.push(task))
  manager.onTaskCancelled((task) => told.push(task))
  const input = { id: 'a', subagentName: 'helper', goalPrompt: 'do it', ...(timeoutMs !== undefined && { timeoutMs }) }
  const limits = {
    retry: {
      attempts: 100,
      on: ['rate-limited' as const, ...(repeatsLate ? ['timeout' as const] : [])],
      backoff: { initialMs: BACKOFF_MS, factor: 1, jitter: false },
    },
    budget: { steps: 1, wrapUpMs: TIMEOUT_MS },
  }
  const contexts: RunContext[] = []
  return { clock, engine, told, manager, input, limits, contexts }
}

/** Takes a step. Answers what the caller was told, if there is an answer. */
type Perform = (host: Host, event: AsyncTaskEvent) => boolean | undefined

const byMethods: Perform = ({ clock, manager }, event) => {
  if (event.type === 'deadline.passed') clock.advance(TIMEOUT_MS)
  else if (event.type === 'grace.passed') clock.advance(GRACE_MS)
  else if (event.type === 'task.complete') return manager.completeTask('a', event.output)
  else if (event.type === 'task.fail') return manager.failTask('a', event.error)
  else if (event.type === 'task.cancel') return manager.cancelTask('a')
  else throw new Error(`no method does ${event.type}`)
  return undefined
}

const byRun: Perform = (host, event) => {
  const run = host.engine.runs.at(-1)
  const context = host.contexts.at(-1)
  if (event.type === 'task.cancel') return byMethods(host, event)
  const isQueued = host.manager.getTask('a')?.status === 'queued'
  if (isQueued && (event.type === 'task.complete' || event.type === 'task.fail')) return byMethods(host, event)
  if (event.type === 'deadline.passed' || event.type === 'grace.passed') return byMethods(host, event)
  // A question after the end or the deadline is refused, which the record shows.
  if (event.type === 'task.ask') void context?.ask('Which one?').catch(() => undefined)
  else if (event.type === 'task.answer') host.manager.answerTask('a', event.questionId, { action: 'decline' })
  else if (event.type === 'task.offer') context?.offer(event.output)
  else if (event.type === 'budget.exceeded') context?.spend({ steps: 2 })
  else if (event.type === 'task.queue') {
    run?.finish({ type: 'threw', reason: Object.assign(new Error('later'), { code: 'RATE_LIMITED' }) })
  } else if (event.type === 'task.start') host.clock.advance(BACKOFF_MS)
  else if (event.type === 'task.complete') run?.finish({ type: 'returned', value: event.output })
  else run?.finish({ type: 'threw', reason: new Error(event.error) })
  return undefined
}

async function take(way: Way<AsyncTaskEvent>, setting: Setting): Promise<void> {
  const { isLaunched } = setting
  const host = createHost(setting)
  const { clock, engine, manager, told, input } = host
  if (isLaunched) {
    manager.launch({ ...input, ...host.limits }, (_input, context) => {
      host.contexts.push(context)
      return new Promise(() => undefined)
    })
  } else manager.registerTask(input)
  const state = watchState('task.a')
  expect(state()).toEqual(way.start.value)
  engine.runs[0]?.begin()
  let end: AsyncTaskInfo | undefined
  for (const { event, before, after } of way.steps) {
    const answer = (isLaunched ? byRun : byMethods)(host, event)
    for (let turn = 0; turn < 5; turn += 1) await Promise.resolve()
    if (event.type === 'task.start') engine.runs.at(-1)?.begin()
    const task = manager.getTask('a')
    if (after.status !== 'active') end ??= task
    const settlement = after.output as Settlement | undefined
    expect(task).toMatchObject(settlement ?? { status: nameOf(after) === 'queued' ? 'queued' : 'running' })
    const { questions } = after.context as { questions: readonly { id: string }[] }
    // One comparison, because there are many ways, and each `expect` takes its time.
    expect({
      state: state(),
      questions: task?.questions?.map(({ id }) => id) ?? [],
      answer,
      recordAfterEnd: before.status === 'active' ? undefined : task,
      told,
      timersAfterEnd: end === undefined ? 0 : clock.pending,
      hasFreeSlot: manager.canLaunchAsync().allowed,
    }).toEqual({
      state: after.value as StateValue,
      questions: settlement === undefined ? questions.map(({ id }) => id) : [],
      // A1: the first end wins, and its record stays as it is.
      answer:
        answer === undefined ? undefined : before.status === 'active' && settlement?.status === statusBy[event.type],
      recordAfterEnd: before.status === 'active' ? undefined : end,
      told: end === undefined ? [] : [end],
      timersAfterEnd: 0,
      // A3: the slot of a launch is free when its run has settled or was given up, not before.
      hasFreeSlot: isLaunched ? engine.runs.at(-1)?.outcome !== undefined : end !== undefined,
    })
  }
  const disposed = manager.dispose()
  engine.runs.at(-1)?.abandon()
  await disposed
}

const takeAll = (setting: Setting): Promise<void> =>
  takeEach(asyncTaskMachine, waysOf(setting), (way) => take(way, setting))

describe('every way through the chart of an async task', () => {
  for (const [title, limits] of [
    ['without a deadline', {}],
    ['with a deadline', { timeoutMs: TIMEOUT_MS }],
  ] as const) {
    it(`A1, T1 to T4: ${title}, by the methods of the manager`, () => takeAll({ ...limits, isLaunched: false }))

    it(`A1, A3, T1 to T4, T7, T8: ${title}, by a run that was launched`, () => takeAll({ ...limits, isLaunched: true }))
  }

  it('A1, A3, T8, F9: with a deadline after which the run is repeated', () =>
    takeAll({ timeoutMs: TIMEOUT_MS, isLaunched: true, repeatsLate: true }))
})
