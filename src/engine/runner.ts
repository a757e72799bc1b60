/**
 * What a task runs. Functions, programs and subagents have the same shape.
 *
 * A runner is a definition: an object with a function `run` and the properties of its runs. A function is short for `{ run }`. Users pass either. The
 * package itself uses definitions whose `run` is a function (`FlatRunner`, made by `flatRunner` of `definition.ts`), and wrappers spread them.
 */
import type {
  ActiveTaskInfo,
  OutputObject,
  ProgramFacts,
  StartRate,
  TaskAnswer,
  TaskBudget,
  TaskProgress,
  TaskSession,
} from '../../machines/records.js'
import type { TerminalStatus } from '../../machines/task-status.js'
import type { RetryPolicy } from '../protocol/retry-policy.js'
import type { TraceContext } from '../protocol/telemetry.js'
import type { TaskQuestionInput } from '../protocol/task-questions.js'
import type { ChildTaskInput, RunChildren } from './children.js'
import type { AskOptions, RunSteps } from './steps.js'
import type { SpentAmount } from '../protocol/budget.js'
import type { StartedProgram } from './reap.js'

/** What a run receives besides its input. */
export interface RunContext extends RunSteps {
  /** Aborts when the task is cancelled or its deadline passes. Exceptions of listeners are reported. */
  readonly signal: AbortSignal
  /** The id of the task. */
  readonly taskId: string
  /** The owner that receives the result. It may change while the task runs. */
  readonly owner: string
  /** The number of this attempt, from 1. It increases when an earlier run failed or died with its process. */
  readonly attempt: number
  /** Reports progress: a number, or MCP's `{ progress, total?, message? }`. Has no effect after the task has ended. */
  report(progress: number | TaskProgress): void
  /** Appends to the task's output. The last 64 KiB are kept. Has no effect after the task has ended. */
  append(text: string): void
  /**
   * Asks the task's owner a question and waits for the answer. The task stays `running`, and its deadline continues.
   *
   * In a durable task the question is a step. It stays open across restarts of the process, a repeated run receives the answer, and the time counts
   * as for `sleep`. A withdrawn question is a failed step.
   * @param question text, `{ message, schema? }` with the JSON Schema of the answer's content, or `{ message, choices }` with the accepted texts.
   *   Without a schema the content is `{ answer: string }`
   * @param options `signal`: withdraws the question when it aborts; `name`: distinguishes questions that a durable task asks at the same time
   * @returns the answer, whose content matches the schema, or the fact that there will be none
   * @throws QuestionWithdrawnError when the task ends or is overdue, or the signal aborts; InvalidInputError for a malformed question. In a durable
   *   task also the errors of `step`; a withdrawn question then throws an error with the name and code of QuestionWithdrawnError
   */
  readonly ask: (question: TaskQuestionInput, options?: AskOptions) => Promise<TaskAnswer>
  /**
   * The messages sent to the task (`sendToTask`), each once and in order. Ends with the task. Empty unless the runner declares `takesMessages`.
   * Leaving a loop over them refuses further messages.
   */
  readonly messages: AsyncIterable<string>
  /** The ended task that this one continues, if any. The goal of this task is the message that was sent. */
  readonly previous?: PreviousTask | undefined
  /**
   * Stores the session with which the task can be continued, and its working directory. The last call counts. Has no effect on a worker.
   * @param id at most 200 letters, digits, `_`, `.`, `:` and `-`; the first is a letter or digit
   * @throws InvalidInputError for any other id
   */
  setSession(id: string, options?: { readonly cwd?: string }): void
  /** The span of this run, to pass to other processes (`TRACEPARENT`). Only with telemetry. */
  readonly trace?: TraceContext | undefined
  /**
   * Launches a task that this run owns (`ownerOfRun(taskId)`): `children` waits for it, and its result goes to this run. When this task ends, its
   * owner receives the remaining results. When this task is cancelled or times out, the launched task is cancelled as well.
   *
   * In a durable task a launch is a step: a repeated run keeps the tasks it has launched and gets the same records.
   * @param runner default: what `findRunner` of the manager returns for the subagent's name
   * @throws FamilyError, TaskLimitError, TaskIdInUseError, InvalidInputError, DisposedError; no task was launched then
   */
  readonly launch: (input: ChildTaskInput, runner?: Runner) => ActiveTaskInfo
  /** The tasks that this run has launched. */
  readonly children: RunChildren
  /**
   * Adds to the usage of the task, for its budget and for its owner's totals. Has no effect after the task has ended.
   * @throws InvalidInputError for an amount that is not a finite number >= 0
   */
  spend(amount: SpentAmount): void
  /** Aborts when the task has exceeded its budget. Finish and return what you have before `signal` aborts as well. */
  readonly wrapUp: AbortSignal
  /** Records how a command's program has started or ended. Only for a command. */
  setProgram?(program: ProgramFacts): void
  /** The part of the run that outlives this process. Only if the task is in a store. */
  readonly durability?: RunDurability
}

/** The part of a run that survives the end of the process. */
export interface RunDurability {
  /**
   * A folder for the files of this attempt, which the run creates. It is removed after the end of the task was stored. Undefined for a store without
   * files.
   */
  readonly folder: string | undefined
  /** Whether an earlier process started this run, and it continues in this one. */
  readonly isResumed: boolean
  /** A globally unique id of the task; together with `attempt` it identifies this run. Undefined for a runner without `survivesHost`. */
  readonly key: string | undefined
  /** When this attempt started, in ms since the epoch. */
  readonly startedAt: number
  /**
   * Stores which program the run has started. If this process dies, the next one ends that program. Resolves when it is stored.
   * @throws StoreError if it cannot be stored now
   */
  saveProgram(program: StartedProgram): Promise<void>
  /** The program stored for this attempt, by this process or an earlier one. */
  readonly program?: StartedProgram | undefined
}

/** What a run may return: an output, a text that becomes `final_message`, or nothing, which becomes an empty output. */
export type RunResult = OutputObject | string | undefined

/** A function that a task runs. The task completes with the function's result and fails when it throws or rejects. */
export type RunFunction<Input = RunInput, Result extends RunResult = RunResult> = (
  input: Input,
  context: RunContext,
) => Result | Promise<Result>

/** What a task runs: a definition or a function. */
export type Runner<Input = RunInput, Result extends RunResult = RunResult> =
  RunFunction<Input, Result> | RunnerDefinition<Input, Result>

/** What a task runs, and the properties of its runs. */
export interface RunnerDefinition<Input = RunInput, Result extends RunResult = RunResult> {
  /** Runs the task: a function, or another definition whose fields apply where this one has none, as in `{ run: processRunner(…), retry }`. */
  readonly run: Runner<Input, Result>
  /** When to repeat a failed run. Default: never. */
  readonly retry?: RetryPolicy | undefined
  /** The limits of a task's usage. If a launch has a limit too, the smaller one counts. Default: no limit. */
  readonly budget?: TaskBudget | undefined
  /** How many tasks of this subagent may run at once: an integer >= 1. Others wait. Default: no limit. */
  readonly maxConcurrent?: number | undefined
  /** How often runs of this subagent may start, including retries. Others wait. Default: no limit. */
  readonly rate?: StartRate | undefined
  /**
   * Whether its runs save their progress (`context.step`). A run that ended with its process starts again, without limit while it makes progress, and
   * at most five times in a row without progress. Needs a store and a run in this process. Default false.
   */
  readonly durable?: boolean | undefined
  /**
   * Whether a durable run that only waits gives back its slot and its place in `maxConcurrent`, but not its concurrency key. To continue it waits for
   * a slot, even if the queue is full. Default false.
   */
  readonly releasesSlot?: boolean | undefined
  /** Whether its runs are in another process and have no steps. Default false. */
  readonly runsElsewhere?: boolean | undefined
  /** Whether its runs continue after their host has died. The next host calls it again with `durability.isResumed`. */
  readonly survivesHost?: boolean | undefined
  /**
   * Whether a run of an earlier process can be followed to its end. Called before the run is resumed, with the folder of its files and its stored
   * program. Default: it can.
   */
  readonly canResume?: ((folder: string | undefined, program?: StartedProgram) => boolean) | undefined
  /** Whether it depends on more than its input, so that a later process cannot repeat or continue its task. Default false. */
  readonly isBound?: boolean | undefined
  /** The name that a later process passes to `findRunner`. Default: the name of the task's subagent. */
  readonly foundAs?: string | undefined
  /** Whether it runs one task only, such as one that follows work started elsewhere, and can never be repeated. Default false. */
  readonly isUnique?: boolean | undefined
  /** Returns why an ended task cannot be continued, or undefined if it can. Default: it can. */
  readonly whyNotContinue?: ((previous: PreviousTask) => string | undefined) | undefined
  /** Whether its runs read `context.messages`. Default false: messages to its tasks are refused. */
  readonly takesMessages?: boolean | undefined
}

export interface FlatRunner<Input = RunInput, Result extends RunResult = RunResult> extends RunnerDefinition<
  Input,
  Result
> {
  readonly run: RunFunction<Input, Result>
}

/** The runners of `processRunner` and `functionRunner`. Their runs return complete outputs. */
export interface OutputRunner extends RunnerDefinition<RunInput, OutputObject> {
  readonly run: RunFunction<RunInput, OutputObject>
}

/** The input of a launched task's runner. */
export interface RunInput {
  /** The task's id. */
  readonly id: string
  /** The name of the subagent. */
  readonly subagentName: string
  /** What to achieve. */
  readonly goalPrompt: string
  /** Further input of the launch, if any. */
  readonly params?: Readonly<Record<string, unknown>>
  /** The results of the tasks in `after`, by id. Absent if there were none. */
  readonly results?: Readonly<Record<string, DependencyResult>>
}

/** How a task in `after` ended. The texts are shortened so that all results together fit into about one message. */
export interface DependencyResult {
  /** How it ended. */
  readonly status: TerminalStatus
  /** Its output, if it completed. A long output is a preview in `final_message`. */
  readonly output?: OutputObject
  /** Why it failed. */
  readonly error?: string
  /** The code of its failure. */
  readonly errorCode?: string
  /** Why it was cancelled. */
  readonly cancelReason?: string
  /** Whether its output or error was shortened. */
  readonly isCut?: boolean
}

/** The ended task that is continued. Its goal and its result are each shortened to about the length of a message. */
export interface PreviousTask extends DependencyResult {
  /** Its id. */
  readonly id: string
  /** Its goal. */
  readonly goal: string
  /** Its session, if its run stored one. */
  readonly session?: TaskSession
}

/** Finds the runner for a subagent, or the one whose `foundAs` is this name. Undefined if there is none. */
export type FindRunner = (subagentName: string) => Runner | undefined
