/**
 * One background task. It may wait, runs one or more times, and ends once.
 *
 * T1  A task ends in exactly one of completed, failed, cancelled. Later events have no effect.
 * T2  The event that ends a task determines its status, output and error.
 * T3  After its deadline a task can only fail or be retried, unless it is cancelled first, or its run has offered an output before (T9).
 * T4  An overdue task fails when its run reports its end, or when its grace period has passed. The error names the limit. A returned output is kept
 *     as late output.
 * T5  A task that waits for an answer is still running. It can end in any way, and its deadline continues.
 * T6  A question stays open until it is answered once or withdrawn. Question ids are never reused. Only a run within its limits can ask. The
 *     questions of a durable task stay open while the task waits for its next run.
 * T7  A task that waits for a slot or for other tasks can start, fail or be cancelled. Reports of an earlier run have no effect.
 * T8  A task that exceeds a budget may still complete until it is stopped, and is not retried. Once stopped, it fails like an overdue task, with an
 *     error that names the budget.
 * T9  If a run has offered an output before it was stopped by a limit, the task completes with the last such output, and is not retried. The field
 *     `terminate_reason` names the limit. An output that is offered later has no effect.
 *
 * The registry keeps the time and the queue. It sends `task.start`, `deadline.passed` and `grace.passed`. A task starts in the state `running`. If
 * there is no slot, it moves to `queued` at once. Most tasks never wait, so that is cheaper than starting in `queued`.
 *
 * The state `active` handles the events that end a task. A nested state whose reaction differs has its own transition for the event, which XState
 * prefers: `queued` ignores `task.complete` (T7), and `stopping` fails with the limit (T4).
 */
import { assign, setup, type ActorRefFrom, type SnapshotFrom } from 'xstate'
import type { AskedQuestion, OutputObject, Settlement, TaskFailure, TaskQuestion } from './records.js'

/** The effects of a task, provided by the host. They are called inside a transition, so they must not throw. */
export interface AsyncTaskHost {
  /**
   * Asks the run to stop, because its deadline has passed, or because it has not concluded in time after exceeding a budget. `excess` is the exceeded
   * budget in words.
   */
  requestAbort(taskId: string, excess?: string): void
  /** Asks the run to conclude, because a budget is exceeded. `excess` is that budget in words. */
  requestWrapUp(taskId: string, excess: string): void
  /** Called with the open questions after they have changed. */
  setQuestions(taskId: string, questions: readonly TaskQuestion[]): void
}

/** The input of a task actor. */
export interface AsyncTaskInput {
  /** The id of the task. */
  readonly id: string
  /** The name of the subagent that runs the task. */
  readonly subagentName: string
  /** The time limit of a run, in ms. It is used only for the text of the error. Absent without a limit. */
  readonly timeoutMs?: number | undefined
  /** The effects of the task. */
  readonly host: AsyncTaskHost
  /** Whether open questions stay open for the next run. Default false. */
  readonly isDurable?: boolean
  /** Questions that an earlier process left open. Default: none. */
  readonly questions?: readonly TaskQuestion[]
  /** How many questions the runs of the task have asked in earlier processes. Default 0. */
  readonly asked?: number
}

/** The events of a task. The first event that ends the task wins (T1). */
export type AsyncTaskEvent =
  | { readonly type: 'task.complete'; readonly output: OutputObject }
  | ({ readonly type: 'task.fail' } & TaskFailure)
  | { readonly type: 'task.cancel'; readonly reason?: string }
  | { readonly type: 'task.offer'; readonly output: OutputObject }
  | { readonly type: 'task.queue' }
  | { readonly type: 'task.start' }
  | { readonly type: 'budget.exceeded'; readonly message: string; readonly errorCode?: string }
  | { readonly type: 'task.ask'; readonly question: AskedQuestion }
  | { readonly type: 'task.answer'; readonly questionId: string }
  /** `timeoutMs` is the limit that was exceeded, if it differs from the one of the launch. */
  | { readonly type: 'deadline.passed'; readonly timeoutMs?: number | undefined }
  | { readonly type: 'grace.passed' }

/** The context of a task actor. */
export interface AsyncTaskContext extends AsyncTaskInput {
  /** How the task ended. Undefined before that. */
  readonly settlement: Settlement | undefined
  /** The open questions, in the order in which they were asked. */
  readonly questions: readonly TaskQuestion[]
  /** How many questions the task has asked so far. */
  readonly asked: number
  /** The output with which the task completes if a limit stops its run. */
  readonly offered?: OutputObject | undefined
  /** The exceeded budget, in words, and the code of the error about it. Absent if no budget is exceeded. */
  readonly excess?: string
  readonly excessCode?: string
}

const CANCELLED: Settlement = { status: 'cancelled' }

const NO_QUESTIONS: readonly TaskQuestion[] = Object.freeze([])

/** Returns the error of a task whose deadline has passed. `reported` is the error with which its run has ended after that. */
export function timeoutMessage(timeoutMs: number, reported?: string): string {
  const limit = timeoutMs % 1000 === 0 ? `${timeoutMs / 1000} s` : `${timeoutMs} ms`
  return withReport(`Task timed out: it did not end within its limit of ${limit}.`, reported)
}

/** Adds the error of a stopped run to the message. Usually the run has just rejected with that message, which is then not repeated. */
function withReport(message: string, reported: string | undefined): string {
  return reported === undefined || reported === message ? message : `${message} It then reported: ${reported}`
}

export const TASK_TIMEOUT = 'TASK_TIMEOUT'

export const BUDGET_EXCEEDED = 'BUDGET_EXCEEDED'

/** Returns the end of a task that was being stopped. `event` is the report of its run, or says that the grace period has passed. */
function stopOf({ timeoutMs = 0, excess, excessCode }: AsyncTaskContext, event: AsyncTaskEvent): Settlement {
  const messageOf = (reported?: string): string =>
    excess === undefined ? timeoutMessage(timeoutMs, reported) : withReport(excess, reported)
  const errorCode = excessCode ?? TASK_TIMEOUT
  if (event.type === 'task.fail') {
    const { cause } = event
    return { status: 'failed', error: messageOf(event.error), errorCode, ...(cause !== undefined && { cause }) }
  }
  const error = messageOf()
  // The output is empty for most runs, because they return nothing after they were asked to stop.
  if (event.type !== 'task.complete' || Object.keys(event.output).length === 0) {
    return { status: 'failed', error, errorCode }
  }
  const late = `${error} It then returned a result, too late.`
  return { status: 'failed', error: late, errorCode, lateOutput: event.output }
}

export const asyncTaskMachine = setup({
  types: {
    context: {} as AsyncTaskContext,
    events: {} as AsyncTaskEvent,
    input: {} as AsyncTaskInput,
    output: {} as Settlement,
  },
  guards: {
    isOneOfSeveral: ({ context: { questions }, event }) =>
      event.type === 'task.answer' && questions.length > 1 && questions.some(({ id }) => id === event.questionId),
    isOpen: ({ context, event }) =>
      event.type === 'task.answer' && context.questions.some(({ id }) => id === event.questionId),
    isAsking: ({ context }) => context.questions.length > 0,
    hasOffered: ({ context }) => context.offered !== undefined,
    mayRepeat: ({ context: { excess, offered } }) => excess === undefined && offered === undefined,
  },
  actions: {
    keepOutput: assign({
      settlement: ({ event }): Settlement => ({
        status: 'completed',
        output: event.type === 'task.complete' ? event.output : {},
      }),
    }),
    setOffered: assign({ offered: ({ event }) => (event.type === 'task.offer' ? event.output : undefined) }),
    dropOffered: assign({ offered: undefined }),
    keepOffered: assign({
      settlement: ({ context: { offered, excessCode = TASK_TIMEOUT } }): Settlement => ({
        status: 'completed',
        output: { ...offered, terminate_reason: excessCode },
      }),
    }),
    keepError: assign({
      settlement: ({ event }): Settlement => {
        if (event.type !== 'task.fail') return { status: 'failed', error: 'The task failed.' }
        const { type: _, ...failure } = event
        return { status: 'failed', ...failure }
      },
    }),
    keepCancellation: assign({
      settlement: ({ event }): Settlement =>
        event.type === 'task.cancel' && event.reason !== undefined
          ? { status: 'cancelled', cancelReason: event.reason }
          : CANCELLED,
    }),
    keepStop: assign({ settlement: ({ context, event }) => stopOf(context, event) }),
    keepExcess: assign(({ event }) => {
      if (event.type !== 'budget.exceeded') return {}
      const { message: excess, errorCode: excessCode = BUDGET_EXCEEDED } = event
      return { excess, excessCode }
    }),
    addQuestion: assign(({ context: { questions, asked }, event }) => {
      if (event.type !== 'task.ask') return {}
      const question = Object.freeze({ ...event.question, id: `question-${asked + 1}` })
      return { questions: Object.freeze([...questions, question]), asked: asked + 1 }
    }),
    removeQuestion: assign(({ context: { questions }, event }) => {
      if (event.type !== 'task.answer') return {}
      return { questions: Object.freeze(questions.filter(({ id }) => id !== event.questionId)) }
    }),
    removeQuestions: assign({ questions: NO_QUESTIONS }),
    leaveQuestions: assign(({ context }) => (context.isDurable === true ? {} : { questions: NO_QUESTIONS })),
    publishQuestions: ({ context: { host, id, questions } }) => host.setQuestions(id, questions),
    keepLimit: assign(({ event }) =>
      event.type === 'deadline.passed' && event.timeoutMs !== undefined ? { timeoutMs: event.timeoutMs } : {},
    ),
    requestAbort: ({ context: { host, id, excess } }) => host.requestAbort(id, excess),
    requestWrapUp: ({ context: { host, id, excess = '' } }) => host.requestWrapUp(id, excess),
  },
}).createMachine({
  id: 'asyncTask',
  description: 'One background task, from registration to end.',
  context: ({ input }) => ({ settlement: undefined, questions: NO_QUESTIONS, asked: 0, ...input }),
  initial: 'active',
  states: {
    active: {
      description: 'The task has not ended.',
      initial: 'running',
      on: {
        'task.complete': { target: 'completed', actions: 'keepOutput', description: 'The run returned.' },
        'task.fail': {
          target: 'failed',
          actions: 'keepError',
          description: 'The run threw or could not start, or the task has waited too long.',
        },
        'task.cancel': { target: 'cancelled', actions: 'keepCancellation', description: 'The task was cancelled.' },
        'task.offer': { actions: 'setOffered', description: 'The run has an output, and goes on.' },
      },
      states: {
        queued: {
          description:
            'The task waits for a slot, for other tasks, or for the back-off before its next run. It holds no slot, and results of an earlier run are ignored.',
          on: {
            'task.start': {
              target: 'running',
              actions: 'dropOffered',
              description:
                'A slot is free, and the task is next. An output that an earlier run has offered is dropped.',
            },
            'task.answer': {
              guard: 'isOpen',
              actions: ['removeQuestion', 'publishQuestions'],
              description: 'A question of a durable task was answered. The next run receives the answer.',
            },
            'task.complete': { description: 'An earlier run returned. Its result is ignored.' },
          },
        },
        running: {
          description: 'The run is working.',
          always: {
            guard: 'isAsking',
            target: 'asking',
            description: 'The last run of a durable task left a question open.',
          },
          on: {
            'task.queue': {
              target: 'queued',
              description: 'No slot is free, or the run has failed and will be retried.',
            },
            'budget.exceeded': {
              target: 'wrapping',
              actions: 'keepExcess',
              description: 'The task has exceeded a budget.',
            },
            'task.ask': {
              target: 'asking',
              actions: ['addQuestion', 'publishQuestions'],
              description: 'The run asks the owner of its task a question.',
            },
            'deadline.passed': { target: 'stopping', description: 'The deadline has passed.' },
          },
        },
        asking: {
          description: 'The run has asked a question and waits for the answer.',
          on: {
            'task.ask': { actions: ['addQuestion', 'publishQuestions'], description: 'The run asks another question.' },
            'task.answer': [
              {
                guard: 'isOneOfSeveral',
                actions: ['removeQuestion', 'publishQuestions'],
                description: 'One of several questions was answered.',
              },
              {
                guard: 'isOpen',
                target: 'running',
                actions: ['removeQuestion', 'publishQuestions'],
                description: 'The last open question was answered.',
              },
            ],
            'task.queue': {
              target: 'queued',
              actions: ['leaveQuestions', 'publishQuestions'],
              description:
                'The run has failed and will be retried. Its questions are withdrawn; those of a durable task stay open.',
            },
            'budget.exceeded': {
              target: 'wrapping',
              actions: ['keepExcess', 'removeQuestions', 'publishQuestions'],
              description: 'The task has exceeded a budget. The open questions are withdrawn.',
            },
            'deadline.passed': {
              target: 'stopping',
              actions: ['removeQuestions', 'publishQuestions'],
              description: 'The deadline has passed. The open questions are withdrawn.',
            },
          },
        },
        wrapping: {
          description: 'A budget is exceeded. The run is asked to conclude and may still complete.',
          entry: 'requestWrapUp',
          on: {
            'deadline.passed': { target: 'stopping', description: 'The time to wrap up, or the deadline, has passed.' },
          },
        },
        stopping: {
          description:
            'A limit has passed. The run is asked to stop. The task can only complete with what the run has offered.',
          entry: ['keepLimit', 'requestAbort'],
          on: {
            'task.queue': {
              guard: 'mayRepeat',
              target: 'queued',
              description: 'The run stopped within its grace period and will be retried.',
            },
            'task.offer': { description: 'The run offers an output too late. It is ignored.' },
            'task.complete': [
              {
                guard: 'hasOffered',
                target: '#asyncTask.completed',
                actions: 'keepOffered',
                description: 'The run had offered an output before it was stopped.',
              },
              {
                target: '#asyncTask.failed',
                actions: 'keepStop',
                description: 'The run returned too late. Its output is kept as late output.',
              },
            ],
            'task.fail': [
              {
                guard: 'hasOffered',
                target: '#asyncTask.completed',
                actions: 'keepOffered',
                description: 'The run had offered an output before it was stopped.',
              },
              {
                target: '#asyncTask.failed',
                actions: 'keepStop',
                description: 'The run stopped. The error includes its report.',
              },
            ],
            'grace.passed': [
              {
                guard: 'hasOffered',
                target: '#asyncTask.completed',
                actions: 'keepOffered',
                description: 'The run had offered an output before it was stopped.',
              },
              {
                target: '#asyncTask.failed',
                actions: 'keepStop',
                description: 'The run did not stop within its grace period.',
              },
            ],
          },
        },
      },
    },
    completed: {
      type: 'final',
      description: 'The run returned an output, or has offered one before a limit stopped it.',
    },
    failed: { type: 'final', description: 'The run threw, could not start, or exceeded a limit.' },
    cancelled: { type: 'final', description: 'The task was cancelled. Later results of its run are dropped.' },
  },
  output: ({ context }) => context.settlement ?? CANCELLED,
})

/** The type of `asyncTaskMachine`. */
export type AsyncTaskMachine = typeof asyncTaskMachine
/** An actor that runs `asyncTaskMachine`. */
export type AsyncTaskRef = ActorRefFrom<AsyncTaskMachine>
/** A snapshot of such an actor. */
export type AsyncTaskSnapshot = SnapshotFrom<AsyncTaskMachine>
