/**
 * One background task: it runs until it ends, and it ends once.
 *
 * T1  A task ends in exactly one of completed, failed, cancelled; whatever arrives later changes nothing.
 * T2  The event that ends a task fixes its status, output and error.
 * T3  After its deadline a task can only fail, unless someone cancels it first.
 * T4  An overdue task fails, with a message that names the limit, when its run reports or its grace is over.
 * T5  A task that asks is running: whatever ends it, ends it, and its deadline goes on.
 * T6  A question is open until it is answered, once. Its number is never used again, and an overdue task has none.
 *
 * The chart is pure: the host provides `requestAbort` and `noteQuestions`, and the registry that owns the task stamps the
 * times.
 */
import { assign, not, setup, stateIn, type ActorRefFrom, type SnapshotFrom } from 'xstate'
import type { AskedQuestion, OutputObject, Settlement, TaskQuestion } from './records.js'

/** What a task actor starts with. */
export interface AsyncTaskActorInput {
  /** The id of the task. */
  readonly id: string
  /** Whose run it is. */
  readonly subagentName: string
  /** Deadline in ms; none when absent. */
  readonly timeoutMs?: number
  /** How long the task may wind down after its deadline, in ms. */
  readonly graceMs: number
}

/** What ends a task. The first that arrives wins (T1). */
export type AsyncTaskEvent =
  | { readonly type: 'task.complete'; readonly output: OutputObject }
  | { readonly type: 'task.fail'; readonly error: string }
  | { readonly type: 'task.cancel' }
  | { readonly type: 'task.ask'; readonly question: AskedQuestion }
  | { readonly type: 'task.answer'; readonly questionId: string }

/** What the actor of a task knows. */
export interface AsyncTaskContext extends AsyncTaskActorInput {
  /** How it ended, once it has. */
  readonly settlement: Settlement | undefined
  /** What the run waits to be told, in the order in which it asked. */
  readonly questions: readonly TaskQuestion[]
  /** How many questions it has asked so far. */
  readonly asked: number
}

const CANCELLED: Settlement = { status: 'cancelled' }

const NO_QUESTIONS: readonly TaskQuestion[] = Object.freeze([])

/** The message a task fails with when its deadline has passed; `reported` is what its run said afterwards. */
export function timeoutMessage(timeoutMs: number, reported?: string): string {
  const limit = timeoutMs % 1000 === 0 ? `${timeoutMs / 1000} s` : `${timeoutMs} ms`
  return `Task timed out: it did not end within its limit of ${limit}.${reported === undefined ? '' : ` It then reported: ${reported}`}`
}

/** The chart of one background task. `requestAbort` must be provided. */
export const asyncTaskMachine = setup({
  types: {
    context: {} as AsyncTaskContext,
    events: {} as AsyncTaskEvent,
    input: {} as AsyncTaskActorInput,
    output: {} as Settlement,
  },
  delays: {
    deadline: ({ context }) => context.timeoutMs ?? 0,
    grace: ({ context }) => context.graceMs,
  },
  guards: {
    hasDeadline: ({ context }) => context.timeoutMs !== undefined,
    isOverdue: stateIn({ running: { deadline: 'overdue' } }),
    hasTime: not(stateIn({ running: { deadline: 'overdue' } })),
    isOneOfSeveral: ({ context: { questions }, event }) =>
      event.type === 'task.answer' && questions.length > 1 && questions.some(({ id }) => id === event.questionId),
    isOpen: ({ context, event }) =>
      event.type === 'task.answer' && context.questions.some(({ id }) => id === event.questionId),
  },
  actions: {
    keepOutput: assign({
      settlement: ({ event }): Settlement => ({
        status: 'completed',
        output: event.type === 'task.complete' ? event.output : {},
      }),
    }),
    keepError: assign({
      settlement: ({ event }): Settlement => ({
        status: 'failed',
        error: event.type === 'task.fail' ? event.error : 'The task failed.',
      }),
    }),
    keepCancellation: assign({ settlement: CANCELLED }),
    keepTimeout: assign({
      settlement: ({ context, event }): Settlement => ({
        status: 'failed',
        error: timeoutMessage(context.timeoutMs ?? 0, event.type === 'task.fail' ? event.error : undefined),
      }),
    }),
    keepQuestion: assign(({ context: { questions, asked }, event }) => {
      if (event.type !== 'task.ask') return {}
      const question = Object.freeze({ ...event.question, id: `question-${asked + 1}` })
      return { questions: Object.freeze([...questions, question]), asked: asked + 1 }
    }),
    dropQuestion: assign(({ context: { questions }, event }) => {
      if (event.type !== 'task.answer') return {}
      return { questions: Object.freeze(questions.filter(({ id }) => id !== event.questionId)) }
    }),
    dropQuestions: assign({ questions: NO_QUESTIONS }),
    requestAbort: () => {
      throw new Error('async-task: the host must provide the action requestAbort')
    },
    noteQuestions: () => {
      throw new Error('async-task: the host must provide the action noteQuestions')
    },
  },
}).createMachine({
  id: 'asyncTask',
  description: 'One background run, from its registration to its only end.',
  // New fields come first: a copy that is given more fields afterwards takes ten times as long.
  context: ({ input }) => ({ settlement: undefined, questions: NO_QUESTIONS, asked: 0, ...input }),
  initial: 'running',
  states: {
    running: {
      description: 'The run has not ended. Whatever ends it first decides how.',
      type: 'parallel',
      on: {
        'task.complete': { target: 'completed', actions: 'keepOutput', description: 'The run returned.' },
        'task.fail': { target: 'failed', actions: 'keepError', description: 'The run threw, or could not start.' },
        'task.cancel': { target: 'cancelled', actions: 'keepCancellation', description: 'Someone called it off.' },
      },
      states: {
        deadline: {
          description: 'How much time it has.',
          initial: 'unlimited',
          states: {
            unlimited: {
              description: 'No deadline was set.',
              always: { guard: 'hasDeadline', target: 'timed', description: 'A deadline was set: it counts from now.' },
            },
            timed: {
              description: 'The deadline is being waited for.',
              after: { deadline: { target: 'overdue', description: 'The deadline has passed.' } },
            },
            overdue: {
              description:
                'The deadline has passed: the run is asked to stop, and whatever it says now, the task fails.',
              entry: 'requestAbort',
              on: {
                'task.complete': {
                  target: '#asyncTask.failed',
                  actions: 'keepTimeout',
                  description: 'The run returned too late: its output is dropped.',
                },
                'task.fail': {
                  target: '#asyncTask.failed',
                  actions: 'keepTimeout',
                  description: 'The run stopped; what it says is told along with the limit.',
                },
              },
              after: {
                grace: {
                  target: '#asyncTask.failed',
                  actions: 'keepTimeout',
                  description: 'The run did not stop within its grace: it is waited for no longer.',
                },
              },
            },
          },
        },
        attention: {
          description: 'Whether it waits for somebody.',
          initial: 'working',
          states: {
            working: {
              description: 'The run needs nobody.',
              on: {
                'task.ask': {
                  guard: 'hasTime',
                  target: 'asking',
                  actions: ['keepQuestion', 'noteQuestions'],
                  description: 'The run asks whoever its task is for.',
                },
              },
            },
            asking: {
              description: 'The run has asked, and goes on when it is answered.',
              always: {
                guard: 'isOverdue',
                target: 'working',
                actions: ['dropQuestions', 'noteQuestions'],
                description: 'The deadline has passed: nobody need answer any more.',
              },
              on: {
                'task.ask': { actions: ['keepQuestion', 'noteQuestions'], description: 'The run asks one thing more.' },
                'task.answer': [
                  {
                    guard: 'isOneOfSeveral',
                    actions: ['dropQuestion', 'noteQuestions'],
                    description: 'One of several questions was answered.',
                  },
                  {
                    guard: 'isOpen',
                    target: 'working',
                    actions: ['dropQuestion', 'noteQuestions'],
                    description: 'The last question was answered.',
                  },
                ],
              },
            },
          },
        },
      },
    },
    completed: { type: 'final', description: 'The run returned an output.' },
    failed: { type: 'final', description: 'The run threw, could not start, or outlived its deadline.' },
    cancelled: { type: 'final', description: 'Someone called it off; what its run does later is dropped.' },
  },
  output: ({ context }) => context.settlement ?? CANCELLED,
})

/** The type of `asyncTaskMachine`. */
export type AsyncTaskMachine = typeof asyncTaskMachine
/** An actor that runs `asyncTaskMachine`. */
export type AsyncTaskRef = ActorRefFrom<AsyncTaskMachine>
/** A snapshot of such an actor. */
export type AsyncTaskSnapshot = SnapshotFrom<AsyncTaskMachine>
