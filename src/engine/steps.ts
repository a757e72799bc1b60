/** The functions of a run's context that save progress or wait. */
import type { RetryBackoff } from '../protocol/retry-policy.js'

/** How a failed step is repeated. */
export interface StepOptions {
  /** The maximum number of attempts, an integer >= 1. Default 1. */
  readonly attempts?: number | undefined
  /** How long to wait between two attempts. Default: as for `retry`. */
  readonly backoff?: RetryBackoff | undefined
}

/** Options of `RunContext.ask`. */
export interface AskOptions {
  /** Distinguishes this question from others that a durable task has open at the same time. */
  readonly name?: string | undefined
  /** Withdraws the question when the signal aborts. */
  readonly signal?: AbortSignal | undefined
}

/** Options of `RunContext.sleep`. */
export interface SleepOptions {
  /** Distinguishes this sleep from others that are open at the same time. */
  readonly name?: string | undefined
}

/** Options of `RunContext.waitFor`. */
export interface WaitForOptions {
  /** Distinguishes this wait from others for the same event that are open at the same time. Default: the event. */
  readonly name?: string | undefined
  /** The maximum wait in ms. Default: no limit. */
  readonly timeoutMs?: number | undefined
}

/** The functions with which a run saves its progress. */
export interface RunSteps {
  /**
   * Does a part of the work once. In a durable task (`durable: true`) the result is stored, and a run that starts again after a crash receives the
   * stored result. A step that had not ended is done again. A failure is stored too and thrown again, except when the task is retried for a reason
   * other than an interruption. In other tasks the results are kept in memory, for retries within this process.
   *
   * All runs receive JSON copies of results. Errors are recreated with the same name, message, `code`, `status`, `exitCode` and `retryAfterMs`.
   * @param name the step's name in the store. A repeated name gets a number (`fetch#2`), in the order of the calls. Steps that are open at the same
   *   time need different names, and steps cannot be nested
   * @param work does the work. Its result becomes JSON of at most 1 MiB. A task has at most 1000 steps and 64 MiB of results
   * @throws the exception of `work`
   * @throws AgentTasksError `STEPS_CHANGED` if an earlier run has requested a different step here
   * @throws AgentTasksError `STEP_NESTED` inside the work of another step
   * @throws AgentTasksError `STEP_LIMIT` for a result that is too large, or too many steps
   * @throws AgentTasksError `RUN_ENDED` when this run is over
   * @throws INVALID_INPUT for an invalid argument
   * @throws the reason of `signal` when the run must stop
   */
  readonly step: <T>(name: string, work: () => T | Promise<T>, options?: StepOptions) => Promise<T>
  /**
   * Waits for a number of ms, or until a date. In a durable task the wait continues if the process restarts, and its time does not count toward the
   * deadline or budget.
   * @throws the errors of `step`
   */
  readonly sleep: (time: number | Date, options?: SleepOptions) => Promise<void>
  /**
   * Waits for an event (`emit`), which may have arrived earlier. The time counts as for `sleep`. During the wait, the run counts as idle, so put
   * other work into a step.
   * @returns the value of the event, or undefined when the time is up
   * @throws the errors of `step`
   */
  readonly waitFor: <T = unknown>(event: string, options?: WaitForOptions) => Promise<T | undefined>
}
