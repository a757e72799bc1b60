/** The steps of a run, as its code writes them. */
import type { RetryBackoff } from '../protocol/retry-policy.js'

/** How a step is repeated when it fails. */
export interface StepOptions {
  /** How often its work is done at most: an integer >= 1. Default 1. */
  readonly attempts?: number | undefined
  /** How long to wait between two attempts. */
  readonly backoff?: RetryBackoff | undefined
}

/** Options of `RunContext.ask`. */
export interface AskOptions {
  /** In a durable task: tells it apart from other questions that are open at the same time. */
  readonly name?: string | undefined
  /** Withdraws the question when it aborts. */
  readonly signal?: AbortSignal | undefined
}

/** Options of `RunContext.sleep`. */
export interface SleepOptions {
  /** Tells it apart from others that are open at the same time. */
  readonly name?: string | undefined
}

/** Options of `RunContext.waitFor`. */
export interface WaitForOptions {
  /** Tells it apart from others for the same event that are open at the same time. Default: the event. */
  readonly name?: string | undefined
  /** How long to wait, in ms. Default: as long as it takes. */
  readonly timeoutMs?: number | undefined
}

/** What a run saves of its progress. */
export interface RunSteps {
  /**
   * Does a part of the work once. In a durable task (`durable: true`) its result is stored, and a run that starts again after a crash gets the stored
   * result instead of doing it again; a step that had not ended is done again. A failure is stored as well, and thrown again, unless the task is
   * repeated for another reason than an interruption. Otherwise results are kept in memory, for repeated runs within this process.
   *
   * All runs get JSON copies of results, and errors with the same name, message, `code`, `status`, `exitCode` and `retryAfterMs`.
   * @param name names it in the store; a name that is used again gets a number (`fetch#2`), in the order of the calls. Steps that are open at the same
   *   time need different names, and have no steps of their own
   * @param work does it; what it returns becomes JSON of at most 1 MiB. All steps of a task: 1000, of 64 MiB
   * @throws what `work` has thrown; AgentTasksError `STEPS_CHANGED` when an earlier run has gone on with another step, `STEP_NESTED`, `STEP_LIMIT`,
   *   `RUN_ENDED`; InvalidInputError; the reason of `signal`, when the run is to stop
   */
  readonly step: <T>(name: string, work: () => T | Promise<T>, options?: StepOptions) => Promise<T>
  /**
   * Waits for a time, in ms, or until a date: in a durable task also over restarts of the process. It counts for neither the deadline nor the budget of a
   * durable task.
   * @throws as `step`
   */
  readonly sleep: (time: number | Date, options?: SleepOptions) => Promise<void>
  /**
   * Waits for an event (`emit`), which may have come before. Time counts as for `sleep`. A run that works outside of steps while a wait is open is taken to
   * wait: put that work into a step.
   * @returns its value, as JSON has it; undefined when the time is up
   * @throws as `step`
   */
  readonly waitFor: <T = unknown>(event: string, options?: WaitForOptions) => Promise<T | undefined>
}
