/**
 * What a task runs. Functions, programs and agents all have the same form: a runner.
 *
 * A runner is a definition: an object with a function `run` and the properties of its runs. A function alone is short for `{ run }`. Users may pass
 * either. The package itself uses definitions whose `run` is a function (`ResolvedRunner`, made by `resolveRunner` of `definition.ts`), so that wrappers can
 * spread them.
 */
import type {
  ActiveTaskInfo,
  OutputObject,
  ProgramFacts,
  TaskAnswer,
  TaskProgress,
  TaskSession,
} from '../../machines/records.js'
import type { StartRate } from '../../machines/task-admission.js'
import type { TerminalStatus } from '../../machines/task-status.js'
import type { SubagentTerms } from '../protocol/async-tasks.js'
import type { RetryPolicy } from '../protocol/retry-policy.js'
import type { TraceContext } from '../protocol/telemetry.js'
import type { TaskQuestionInput } from '../protocol/task-questions.js'
import type { ChildTaskInput, RunChildren } from './children.js'
import type { AskOptions, RunSteps } from './steps.js'
import type { SpentAmount } from '../protocol/budget.js'
import type { StartedProgram } from './reap.js'

/** What a run receives in addition to its input. */
export interface RunContext extends RunSteps {
  /** Aborts when the task is cancelled or its deadline passes. An exception of a listener goes to `onError` of the manager. */
  readonly signal: AbortSignal
  /** The id of the task. */
  readonly taskId: string
  /** The owner, to whom the result is delivered. May change while the task runs. */
  readonly owner: string
  /** The number of this attempt, from 1. It increases when a run has failed or has died with its process. */
  readonly attempt: number
  /** Reports progress: a number, or the `{ progress, total?, message? }` of MCP. Has no effect after the task has ended. */
  report(progress: number | TaskProgress): void
  /** Appends to the output of the task. The last 64 KiB are kept (`outputBytes`). Has no effect after the task has ended. */
  append(text: string): void
  /**
   * Asks the owner of the task a question and waits for the answer. The task stays `running`, and its deadline continues.
   *
   * In a durable task the question is a step. It stays open if the process restarts, and a later run receives the answer. As with `sleep`, the time
   * of the wait does not count toward the deadline and budget. If the question is withdrawn, the step has failed.
   * @param question text, `{ message, schema? }` with the JSON Schema of the answer's content, or `{ message, choices }` with the accepted texts.
   *   Without a schema the content is `{ answer: string }`
   * @param options `signal`: withdraws the question when it aborts; `name`: distinguishes questions that a durable task asks at the same time
   * @returns the answer. If `action` is `accept`, `content` matches the schema. Otherwise there is no content
   * @throws QUESTION_WITHDRAWN when the task ends or is overdue, or the signal aborts. A durable task receives an error with the same name and
   *   code
   * @throws INVALID_INPUT for a malformed question
   * @throws in a durable task also the errors of `step`
   */
  readonly ask: (question: TaskQuestionInput, options?: AskOptions) => Promise<TaskAnswer>
  /**
   * The messages sent to the task (`sendToTask`). Each message is received once, in the order of sending. The iteration ends with the task. It is
   * empty unless the runner has `takesMessages`. When you leave a loop over the messages, further messages are refused.
   */
  readonly messages: AsyncIterable<string>
  /** The ended task that this task continues, if any. The goal of this task is then the message to continue with. */
  readonly previous?: PreviousTask | undefined
  /**
   * Stores the session of the program or agent, and its working directory. Another task can later continue the task in this session. If called several
   * times, the last call counts. Has no effect on a worker.
   * @param id at most 200 letters, digits, `_`, `.`, `:` and `-`; the first is a letter or digit
   * @throws INVALID_INPUT for any other id
   */
  setSession(id: string, options?: { readonly cwd?: string }): void
  /** The telemetry span of this run, to pass to other processes (`TRACEPARENT`). Absent without telemetry. */
  readonly trace?: TraceContext | undefined
  /**
   * Launches a task that this run owns (`ownerOfRun(taskId)`). Wait for its result with `children`. When the task of this run ends, remaining results
   * go to its owner. When the task of this run is cancelled or times out, the launched task is cancelled as well. If this method throws, no task was
   * launched.
   *
   * In a durable task a launch is a step: a later run launches nothing again and receives the records of the same tasks.
   * @param runner default: what `findRunner` of the manager returns for the subagent's name
   * @throws AgentTasksError if this run may not launch the task
   * @throws TASK_LIMIT if no slot is free
   * @throws TASK_ID_IN_USE, INVALID_INPUT, DISPOSED, as the `launch` of the manager
   */
  readonly launch: (input: ChildTaskInput, runner?: Runner) => ActiveTaskInfo
  /** The tasks that this run has launched. */
  readonly children: RunChildren
  /**
   * Adds to the usage of the task. The usage counts toward the budget of the task and the totals of its owner. Has no effect after the task has ended.
   * @throws INVALID_INPUT for an amount that is not a finite number >= 0
   */
  spend(amount: SpentAmount): void
  /**
   * Offers an output before the run ends, in the place of an earlier one. If a limit then stops the run, the task completes with this output, whose
   * `terminate_reason` is TASK_TIMEOUT, BUDGET_EXCEEDED, TASK_IDLE or TASK_CONCLUDED. Otherwise it has no effect. A retry begins without an offered output.
   */
  readonly offer: (output: RunResult) => void
  /** Aborts when the task has exceeded its budget or is asked to conclude. Return what you have so far, because `signal` aborts when the time to conclude is over. */
  readonly wrapUp: AbortSignal
  /** Records how the program of a command has started or ended. Present only for a command. */
  setProgram?(program: ProgramFacts): void
  /** What a run needs to outlive this process. Present only if the task is in a store. */
  readonly durability?: RunDurability
}

/** What a run needs to outlive the process. */
export interface RunDurability {
  /**
   * A folder for the files of this attempt. The run creates it when it needs it. It is removed when the end of the task is stored. Undefined if the
   * store has no folder.
   */
  readonly folder: string | undefined
  /** Whether an earlier process has started this run, so that this process only continues it. */
  readonly isResumed: boolean
  /** Whether an earlier process has run the same attempt and stopped it, because that process was closed. */
  readonly isRepeated?: boolean
  /**
   * Aborts when this process is closed and the next one is to follow the run. Only for runners with `survivesHost`, instead of an abort of
   * `context.signal`. The run then frees what it holds in this process, and never settles.
   */
  readonly left?: AbortSignal | undefined
  /** An id of the task that is unique in all stores. With `attempt` it identifies this run. Undefined for a runner without `survivesHost`. */
  readonly key: string | undefined
  /** When this attempt started, in ms since the epoch. */
  readonly startedAt: number
  /** The time limit of this attempt, in ms. Absent if there is none. A program that survives its host keeps it even if no host does. */
  readonly timeoutMs?: number
  /**
   * Stores which program the run has started. If this process dies, the next process follows or ends that program. Resolves when it is stored.
   * @throws StoreError if the program cannot be stored now
   */
  saveProgram(program: StartedProgram): Promise<void>
  /** The program that this process or an earlier one has stored for this attempt. */
  readonly program?: StartedProgram | undefined
}

/** What a run may return: an output, a text that becomes `final_message`, or undefined, which becomes an empty output. */
export type RunResult = OutputObject | string | undefined

/** A function that a task runs. The task completes with the result of the function. It fails if the function throws or rejects. */
export type RunFunction<Input = RunInput, Result extends RunResult = RunResult> = (
  input: Input,
  context: RunContext,
) => Result | Promise<Result>

/** What a task runs: a definition, or a function, which is short for `{ run }`. */
export type Runner<Input = RunInput, Result extends RunResult = RunResult> =
  RunFunction<Input, Result> | RunnerDefinition<Input, Result>

/** What a task runs, and the properties of its runs. */
export interface RunnerDefinition<Input = RunInput, Result extends RunResult = RunResult> extends SubagentTerms {
  /**
   * Runs the task: a function, or another definition. Fields that are missing here are taken from that definition, as in `{ run: processRunner(…),
   * retry }`.
   */
  readonly run: Runner<Input, Result>
  /**
   * The longest time that a run takes to stop after an abort, in ms. Its task waits at least this long for it, even if the launch or the manager has a
   * shorter `graceMs`. `processRunner` and `acpRunner` set it. Default 0.
   */
  readonly graceMs?: number | undefined
  /** When a failed run is repeated. Default: never. */
  readonly retry?: RetryPolicy | undefined
  /** How many tasks of this subagent may run at once: an integer >= 1. Further tasks wait. Default: no limit. */
  readonly maxConcurrent?: number | undefined
  /** How often runs of this subagent may start, including repeated runs. Further runs wait. Default: no limit. */
  readonly rate?: StartRate | undefined
  /**
   * Whether the runs save their progress with `context.step`. If a run ends with its process, the task is run again: without limit while its runs make
   * progress, otherwise at most five times in a row. Needs a store, and runs in this process. Default false.
   */
  readonly durable?: boolean | undefined
  /**
   * Whether a durable run that only waits gives back its slot and its place in `maxConcurrent`. The task keeps the slot of its concurrency key. To
   * continue, it waits for a slot, even if the queue is full. Default false.
   */
  readonly releasesSlot?: boolean | undefined
  /** Whether the runs are in another process, so that they cannot have steps. Default false. */
  readonly runsElsewhere?: boolean | undefined
  /** Whether the runs continue when their host dies. The next host then calls `run` again, with `durability.isResumed`. Default false. */
  readonly survivesHost?: boolean | undefined
  /**
   * Returns whether a run of an earlier process can be followed to its end. Called before that run is resumed, with the folder of its files and the
   * program that it has stored. Default: it can.
   */
  readonly canResume?: ((folder: string | undefined, program?: StartedProgram) => boolean) | undefined
  /**
   * Whether the runner depends on more than its input, such as a connection of this process. A later process then cannot repeat or continue the task.
   * Default false.
   */
  readonly isBound?: boolean | undefined
  /** The name with which a later process calls `findRunner` for this runner. Default: the name of the task's subagent. */
  readonly foundAs?: string | undefined
  /**
   * Whether the runner is for one task only, for example because it follows work that was started elsewhere. Such a run can never be repeated. Default
   * false.
   */
  readonly isUnique?: boolean | undefined
  /** Returns why this ended task cannot be continued, or undefined if it can be. Default: it can be. */
  readonly whyNotContinue?: ((previous: PreviousTask) => string | undefined) | undefined
  /** Whether the runs read `context.messages`. Default false: messages to these tasks are refused. */
  readonly takesMessages?: boolean | undefined
}

export interface ResolvedRunner<Input = RunInput, Result extends RunResult = RunResult> extends RunnerDefinition<
  Input,
  Result
> {
  readonly run: RunFunction<Input, Result>
}

/** The runners of `processRunner` and `functionRunner`. Their runs return complete outputs. */
export interface OutputRunner extends RunnerDefinition<RunInput, OutputObject> {
  readonly run: RunFunction<RunInput, OutputObject>
}

/** The input of a run. */
export interface RunInput {
  /** The id of the task. */
  readonly id: string
  /** The name of the subagent. */
  readonly subagent: string
  /** What the task must achieve. */
  readonly goal: string
  /** Data for the run, by name. Absent if the launch has none. */
  readonly context?: Readonly<Record<string, unknown>> | undefined
  /** The results of the tasks in `after`, by their ids. Absent without `after`. */
  readonly results?: Readonly<Record<string, DependencyResult>>
}

/** How a task in `after` has ended. Long texts are shortened: all results together are about as long as one message. */
export interface DependencyResult {
  /** The status with which the task has ended. */
  readonly status: TerminalStatus
  /** The output, if the task has completed. A long output is replaced by a preview in `final_message`. */
  readonly output?: OutputObject
  /** The error, if the task has failed. */
  readonly error?: string
  /** The code of the error, if it has one. */
  readonly errorCode?: string
  /** The reason, if the task was cancelled with one. */
  readonly cancelReason?: string
  /** Whether the output or the error was shortened. */
  readonly isCut?: boolean
}

/** The ended task that this task continues. Its goal and its result are each shortened to about the length of a message. */
export interface PreviousTask extends DependencyResult {
  /** The id of the ended task. */
  readonly id: string
  /** The goal of the ended task. */
  readonly goal: string
  /** The id of the task that the ended one has continued. Absent if its run has started a session of its own. */
  readonly continues?: string
  /** When the ended task has ended, in ms since the epoch. Absent in continuations that an earlier version has stored. */
  readonly endedAt?: number
  /** The session of the ended task, if its run has stored one. */
  readonly session?: TaskSession
}

/** Returns the runner of the subagent with this name, or the runner whose `foundAs` is this name. Returns undefined if there is none. */
export type FindRunner = (subagentName: string) => Runner | undefined
