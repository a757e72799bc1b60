/** The step functions of a run's context. */
import type { RetryBackoff } from '../protocol/retry-policy.js'

/** How a failed step is repeated. */
export interface StepOptions {
  /** The maximum number of attempts, an integer >= 1. Default 1. */
  readonly attempts?: number | undefined
  /** The wait between two attempts. */
  readonly backoff?: RetryBackoff | undefined
}

/** Options of `RunContext.ask`. */
export interface AskOptions {
  /** In a durable task: distinguishes this question from others that are open at the same time. */
  readonly name?: string | undefined
  /** Withdraws the question when it aborts. */
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

/** Saves the progress of a run. */
export interface RunSteps {
  /**
   * Does a part of the work once. In a durable task (`durable: true`) the result is stored, and a run that starts again after a crash receives the
   * stored result. A step that had not ended is done again. A failure is also stored and thrown again, except when the task is retried for a reason
   * other than an interruption. In other tasks results are kept in memory, for retries within this process.
   *
   * All runs receive JSON copies of results, and errors with the same name, message, `code`, `status`, `exitCode` and `retryAfterMs`.
   * @param name the step's name in the store. A repeated name gets a number (`fetch#2`), in the order of the calls. Steps that are open at the same
   *   time need different names, and steps cannot be nested
   * @param work does the work. Its result becomes JSON of at most 1 MiB. A task has at most 1000 steps and 64 MiB
   * @throws the exception of `work`; AgentTasksError `STEPS_CHANGED` when an earlier run continued with a different step, `STEP_NESTED`,
   *   `STEP_LIMIT`, `RUN_ENDED`; InvalidInputError; the reason of `signal` when the run must stop
   */
  readonly step: <T>(name: string, work: () => T | Promise<T>, options?: StepOptions) => Promise<T>
  /**
   * Waits for a number of ms, or until a date, in a durable task also across restarts of the process. The time does not count toward the deadline or
   * budget of a durable task.
   * @throws as `step`
   */
  readonly sleep: (time: number | Date, options?: SleepOptions) => Promise<void>
  /**
   * Waits for an event (`emit`), which may have arrived earlier. The time counts as for `sleep`. While a wait is open the run is assumed to be idle,
   * so put other work into a step.
   * @returns the event's value as JSON, or undefined when the time is up
   * @throws as `step`
   */
  readonly waitFor: <T = unknown>(event: string, options?: WaitForOptions) => Promise<T | undefined>
}
