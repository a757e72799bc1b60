/** The options that the tools for async tasks share. */
import { checkMaxMessageChars, messageLength } from '../async-tasks/bounded-text.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { aFollowUpCall, CHECK_ANSWERS, CHECK_READS, type FollowUpCall } from '../async-tasks/follow-ups.js'
import { aFunction, aString, optionsOf, required, type OptionTypes } from '../protocol/option-checks.js'

/** Which tools a result tells the model to call next. Needed by hosts that offer them under other names. */
export interface FollowUps {
  /** How to cancel a task, in words. */
  readonly cancel: string
  /** The tool that takes answers, and the parameters that select its answer mode. */
  readonly answer: FollowUpCall
  /** The tool that reads what a task has written, or its result, and the parameters that select its reading mode. Default: check_async_tasks. */
  readonly read?: FollowUpCall
}

/** By default check_async_tasks does all of it. */
export const CHECK_FOLLOW_UPS: Required<FollowUps> = {
  cancel: 'check_async_tasks with action "cancel"',
  answer: CHECK_ANSWERS,
  read: CHECK_READS,
}

/** Options that every tool for async tasks takes. */
export interface AsyncTaskToolOptions {
  /** Returns the manager; called at every call of the tool. */
  readonly getAsyncTaskManager: () => AsyncTaskManager
  /** The maximum length of a result's text about one task, in characters. Default 20000. */
  readonly maxMessageChars?: number
  /** Which tools a result tells the model to call next. Default: check_async_tasks. */
  readonly followUps?: FollowUps
}

/** What becomes of a task that runs in place when its call is aborted. */
export type ForegroundAbort = 'keep' | 'cancel'

/** Options of the tools that run tasks in place. */
export interface ForegroundOptions {
  /**
   * What becomes of a task that a call runs in place when the call is aborted. `cancel` (default): it is cancelled. `keep`: it goes on in the
   * background, and its end is owed.
   */
  readonly onForegroundAbort?: ForegroundAbort
}

export const foregroundOptionTypes: OptionTypes<ForegroundOptions> = {
  onForegroundAbort: { expected: "'keep' or 'cancel'", accepts: (value) => value === 'keep' || value === 'cancel' },
}

const followUpTypes: OptionTypes<FollowUps> = { cancel: aString, answer: aFollowUpCall, read: aFollowUpCall }

export const toolOptionTypes: OptionTypes<AsyncTaskToolOptions> = {
  getAsyncTaskManager: required(aFunction),
  maxMessageChars: messageLength,
  followUps: optionsOf(followUpTypes),
}

/** The shared options with their defaults. Throws `InvalidSettingError` for a `maxMessageChars` that is not an integer >= 200. */
export function readToolOptions(options: AsyncTaskToolOptions) {
  return {
    maxChars: checkMaxMessageChars(options.maxMessageChars),
    followUps: { ...CHECK_FOLLOW_UPS, ...options.followUps },
  }
}

/** A signal that aborts when one of them does. */
export function eitherSignal(one: AbortSignal | undefined, other: AbortSignal | undefined): AbortSignal | undefined {
  return one !== undefined && other !== undefined ? AbortSignal.any([one, other]) : (one ?? other)
}
