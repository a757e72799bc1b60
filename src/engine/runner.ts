/**
 * What a task runs: the shape that functions, programs and subagents have.
 *
 * A runner is a definition, an object with a function `run` and what is said of its runs; a function is short for `{ run }`. Users give either. The
 * package itself passes definitions whose `run` is a function (`FlatRunner`; `flatRunner` of `definition.ts` makes them), and what wraps one spreads it.
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
  /** Aborts when the task is cancelled or its deadline passes. A listener that throws is reported and otherwise ignored. */
  readonly signal: AbortSignal
  /** The task that this run belongs to. */
  readonly taskId: string
  /** The owner that receives the result; it may change while the task runs. */
  readonly owner: string
  /** Which run of the task this is: 1, or more when earlier ones have failed, or died with their processes, and the task is run again. */
  readonly attempt: number
  /** Reports progress: a number, or MCP's `{ progress, total?, message? }`. Ignored after the task has ended. */
  report(progress: number | TaskProgress): void
  /** Adds to the task's output, of which the last 64 KiB are kept. Ignored after the task has ended. */
  append(text: string): void
  /**
   * Asks the task's owner a question and waits for the answer. The task stays `running`, and its deadline keeps counting.
   *
   * In a durable task it is a step: the question stays open over restarts of the process, a run that starts again gets the answer, and the time counts as
   * for `sleep`. A question that was withdrawn is a step that has failed.
   * @param question text, `{ message, schema? }` with the JSON Schema of the answer's content, or `{ message, choices }` with the texts that may
   *   be answered; without a schema the content is `{ answer: string }`
   * @param options `signal`: withdraws the question when it aborts; `name`: tells questions apart that a durable task asks at the same time
   * @returns the answer, whose content fits the schema, or that there will be none
   * @throws QuestionWithdrawnError when the task ends or is overdue, or the signal aborts; InvalidInputError for a malformed question. In a durable task
   *   what `step` throws, and for a withdrawn question an error with the name and the code of QuestionWithdrawnError
   */
  readonly ask: (question: TaskQuestionInput, options?: AskOptions) => Promise<TaskAnswer>
  /**
   * The messages that are sent to the task (`sendToTask`), each once, in order; it ends with the task. Empty unless the runner declares
   * `takesMessages`. Leaving a loop over them refuses further ones.
   */
  readonly messages: AsyncIterable<string>
  /** The task that this one continues, as it ended; absent for every other task. The goal of this one is what it was sent. */
  readonly previous?: PreviousTask | undefined
  /**
   * Notes the session with which the task can be continued, and the working directory that it belongs to; the latest counts. Ignored on a worker.
   * @param id at most 200 letters, digits, `_`, `.`, `:` and `-`, a letter or digit first. @throws InvalidInputError for any other
   */
  setSession(id: string, options?: { readonly cwd?: string }): void
  /** The span of this run, for other processes (`TRACEPARENT`); only with telemetry. */
  readonly trace?: TraceContext | undefined
  /**
   * Launches a task that belongs to this run: `children` waits for it, and what is owed for it is owed to this run (`ownerOfRun(taskId)`). When
   * this task ends, its owner gets what is left. When this task is cancelled or times out, so is the other one.
   *
   * In a durable task it is a step: a run that starts again keeps the tasks that it has launched, and gets the same records.
   * @param runner default: what `findRunner` of the manager returns for the name of the subagent
   * @throws FamilyError, TaskLimitError, TaskIdInUseError, InvalidInputError, DisposedError; nothing has changed then
   */
  readonly launch: (input: ChildTaskInput, runner?: Runner) => ActiveTaskInfo
  /** The tasks that this run has launched. */
  readonly children: RunChildren
  /**
   * Adds to what the task has used, for its budget and for the sums of its owner. Ignored after the task has ended.
   * @throws InvalidInputError for an amount that is not a finite number >= 0
   */
  spend(amount: SpentAmount): void
  /** Aborts when the task has used more than its budget: conclude, and return what there is, before `signal` aborts as well. */
  readonly wrapUp: AbortSignal
  /** Notes in the record of a command how its program has started or ended; only for a command. */
  setProgram?(program: ProgramFacts): void
  /** What of the run outlives this process; only where the task is in a store. */
  readonly durability?: RunDurability
}

/** What survives the end of the process. */
export interface RunDurability {
  /**
   * A folder for the files of this attempt alone, to be created by the run. It is removed after the end of the task has been stored. Undefined for
   * a store without files.
   */
  readonly folder: string | undefined
  /** The run was started by an earlier process, and goes on in this one. */
  readonly isResumed: boolean
  /**
   * Names the task wherever else its run is known: no other task of any store has it, and with `attempt` it names this run. Undefined for a
   * runner without `survivesHost`.
   */
  readonly key: string | undefined
  /** When this attempt was started, in ms since the epoch. */
  readonly startedAt: number
  /**
   * Stores which program the run has started, before it goes on: if this process dies, the next one ends the program. Resolves when it is stored.
   * @throws StoreError: it rejects when that cannot be done now
   */
  saveProgram(program: StartedProgram): Promise<void>
  /** The program that was stored for this attempt, by this process or an earlier one. */
  readonly program?: StartedProgram | undefined
}

/** What a run may return: an output, a text that becomes the `final_message`, or nothing, which becomes an empty output. */
export type RunResult = OutputObject | string | undefined

/** A function that a task runs. The task completes with what it returns or resolves with, and fails when it throws or rejects. */
export type RunFunction<Input = RunInput, Result extends RunResult = RunResult> = (
  input: Input,
  context: RunContext,
) => Result | Promise<Result>

/** What a task runs: a definition, or only its function. */
export type Runner<Input = RunInput, Result extends RunResult = RunResult> =
  RunFunction<Input, Result> | RunnerDefinition<Input, Result>

/** What a task runs, and what is said of its runs. */
export interface RunnerDefinition<Input = RunInput, Result extends RunResult = RunResult> {
  /** Runs the task: a function, or a definition whose fields hold where this one does not have them, as in `{ run: processRunner(…), retry }`. */
  readonly run: Runner<Input, Result>
  /** When the task is run again. Default: never, it fails. */
  readonly retry?: RetryPolicy | undefined
  /** What the runs of a task may use; the smaller limit counts where a launch has one too. Default: no limit. */
  readonly budget?: TaskBudget | undefined
  /** How many tasks of a subagent with this name may run at once: an integer >= 1. Others wait for their turn. Default: no limit. */
  readonly maxConcurrent?: number | undefined
  /** How often runs of a subagent with this name may start, retries included: others wait. Default: no limit. */
  readonly rate?: StartRate | undefined
  /**
   * Whether its runs save their progress (`context.step`): a run that its process has interrupted starts again, as often as it gets on, and five times in
   * a row when it does not. Needs a store, and a run in this process. Default false.
   */
  readonly durable?: boolean | undefined
  /**
   * Whether a durable run that only waits gives back its slot, and that of `maxConcurrent`; never its concurrency key. It waits for a slot when it goes
   * on, however long the queue is. Default false.
   */
  readonly releasesSlot?: boolean | undefined
  /** Whether its runs are in another process, and have no steps. Default false. */
  readonly runsElsewhere?: boolean | undefined
  /** Whether its runs go on when their host has died: the next host calls it again, with `durability.isResumed`. */
  readonly survivesHost?: boolean | undefined
  /**
   * Whether a run that an earlier process started can be followed to its end; called before the run is resumed, with the folder of its files
   * and the program that it has stored. Default: it can.
   */
  readonly canResume?: ((folder: string | undefined, program?: StartedProgram) => boolean) | undefined
  /** Whether it knows more than its input: no later process can run the task again, or go on with it. Default false. */
  readonly isBound?: boolean | undefined
  /** The name by which `findRunner` finds it for a task of an earlier process. Default: the name of the task's subagent. */
  readonly foundAs?: string | undefined
  /** Whether it is the run of one task alone, as of one that follows work which was started elsewhere: nobody can run it again. Default false. */
  readonly isUnique?: boolean | undefined
  /** Why a task that has ended cannot be continued, in words; undefined when it can. Default: it can. */
  readonly whyNotContinue?: ((previous: PreviousTask) => string | undefined) | undefined
  /** Whether its runs read `context.messages`. Default false: messages to its tasks are refused. */
  readonly takesMessages?: boolean | undefined
}

/** A definition whose `run` is a function. */
export interface FlatRunner<Input = RunInput, Result extends RunResult = RunResult> extends RunnerDefinition<
  Input,
  Result
> {
  readonly run: RunFunction<Input, Result>
}

/** What `processRunner` and `functionRunner` make: its runs return whole outputs. */
export interface OutputRunner extends RunnerDefinition<RunInput, OutputObject> {
  readonly run: RunFunction<RunInput, OutputObject>
}

/** Input of a launched task's runner. */
export interface RunInput {
  /** The task's id. */
  readonly id: string
  /** The name of the subagent. */
  readonly subagentName: string
  /** What to achieve. */
  readonly goalPrompt: string
  /** Further input, if the launch had some. */
  readonly params?: Readonly<Record<string, unknown>>
  /** How the tasks ended that it has waited for (`after`), by their ids; absent when there were none. */
  readonly results?: Readonly<Record<string, DependencyResult>>
}

/** How a task ended that another one has waited for. All of them together are about as long as a message may be. */
export interface DependencyResult {
  /** How it ended. */
  readonly status: TerminalStatus
  /** What it returned, if it completed. Of a long output there is a preview, as `final_message`. */
  readonly output?: OutputObject
  /** Why it failed. */
  readonly error?: string
  /** The code of its failure. */
  readonly errorCode?: string
  /** Why it was cancelled. */
  readonly cancelReason?: string
  /** Its output or its error was cut. */
  readonly isCut?: boolean
}

/** A task that is continued, as it ended. Its goal and its result are each about as long as a message may be; the rest was cut. */
export interface PreviousTask extends DependencyResult {
  /** Its id. */
  readonly id: string
  /** Its goal. */
  readonly goal: string
  /** Its session, if its run had noted one. */
  readonly session?: TaskSession
}

/** Finds what runs the tasks of a subagent, or what has this name as `foundAs`; undefined when there is none. */
export type FindRunner = (subagentName: string) => Runner | undefined
