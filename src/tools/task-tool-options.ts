/** The options that the tools for async tasks share. */
import { checkMaxMessageChars, messageLength } from '../async-tasks/bounded-text.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { CHECK_ANSWERS, type AnswerCall } from '../async-tasks/question-texts.js'
import { aFunction, anObject, required, type OptionTypes } from '../protocol/option-checks.js'

/** Which tools a result tells the model to call next. Needed by hosts that offer them under other names. */
export interface FollowUps {
  /** How to cancel a task, in words. */
  readonly cancel: string
  /** The tool that takes answers, and the parameters that select its answer mode. */
  readonly answer: AnswerCall
}

/** By default check_async_tasks does both. */
export const CHECK_FOLLOW_UPS: FollowUps = {
  cancel: 'check_async_tasks with action "cancel"',
  answer: CHECK_ANSWERS,
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

export const toolOptionTypes: OptionTypes<AsyncTaskToolOptions> = {
  getAsyncTaskManager: required(aFunction),
  maxMessageChars: messageLength,
  followUps: anObject,
}

/** The shared options with their defaults. Throws `InvalidSettingError` for a `maxMessageChars` that is not an integer >= 200. */
export function readToolOptions(options: AsyncTaskToolOptions) {
  return {
    maxChars: checkMaxMessageChars(options.maxMessageChars),
    followUps: options.followUps ?? CHECK_FOLLOW_UPS,
  }
}
