/** The options that the tools for async tasks share. */
import { checkMaxMessageChars, messageLength } from '../async-tasks/output/bounded-text.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { aFollowUpCall, CHECK_ANSWERS, CHECK_READS, type FollowUpCall } from '../async-tasks/output/follow-ups.js'
import { defined } from '../defined.js'
import type { LaunchTaskInput } from '../protocol/async-tasks.js'
import {
  anything,
  aFunction,
  aName,
  aString,
  optionsOf,
  required,
  type OptionTypes,
} from '../protocol/option-checks.js'
import { backgroundAfter } from './background-after.js'
import { timeoutOptionTypes, type EffectiveTimeout, type TimeoutSettings } from './task-timeout.js'

/** The tools that the text of a result suggests to call next. Set this if your host has them under other names. */
export interface FollowUps {
  /** The call that cancels a task, as text. */
  readonly cancel: string
  /** The tool that answers questions, and the parameters that make it do so. */
  readonly answer: FollowUpCall
  /** The tool that reads the output or the result of a task, and the parameters that make it do so. Default: check_async_tasks. */
  readonly read?: FollowUpCall
}

/** The default: check_async_tasks cancels, answers and reads. */
export const CHECK_FOLLOW_UPS: Required<FollowUps> = {
  cancel: 'check_async_tasks with action "cancel"',
  answer: CHECK_ANSWERS,
  read: CHECK_READS,
}

/** Options that every tool for async tasks takes. */
export interface AsyncTaskToolOptions {
  /** Returns the manager. It is called at every call of the tool. */
  readonly getAsyncTaskManager: () => AsyncTaskManager
  /** The maximum length of the text about one task in a result, in characters. Default 20000. */
  readonly maxMessageChars?: number
  /** The tools that a result suggests to call next. Default: check_async_tasks. */
  readonly followUps?: FollowUps
}

/** What happens to a task that a call waits for when the call is aborted. */
export type ForegroundAbort = 'keep' | 'cancel'

/** Options of the tools that run tasks in place: the call waits for its task and returns the result. */
export interface ForegroundOptions {
  /**
   * What happens to a task that a call waits for when the call is aborted. `cancel` (default): the task is cancelled. `keep`: the task continues in the
   * background, and its result is delivered later.
   */
  readonly onForegroundAbort?: ForegroundAbort
  /**
   * The maximum time that a call waits for its task, in seconds; -1 for no limit. Then the task continues in the background, and the call returns a text
   * that says so. Set this if your host limits the time of calls. Default -1.
   */
  readonly backgroundAfterSeconds?: number
}

/** `backgroundAfter` checks the number later. */
export const foregroundOptionTypes: OptionTypes<ForegroundOptions> = {
  onForegroundAbort: { expected: "'keep' or 'cancel'", accepts: (value) => value === 'keep' || value === 'cancel' },
  backgroundAfterSeconds: anything,
}

const followUpTypes: OptionTypes<FollowUps> = { cancel: aString, answer: aFollowUpCall, read: aFollowUpCall }

export const toolOptionTypes: OptionTypes<AsyncTaskToolOptions> = {
  getAsyncTaskManager: required(aFunction),
  maxMessageChars: messageLength,
  followUps: optionsOf(followUpTypes),
}

/**
 * Returns the shared options with their defaults.
 * @throws InvalidSettingError for a `maxMessageChars` that is not an integer >= 200
 */
export function readToolOptions(options: AsyncTaskToolOptions) {
  return {
    maxChars: checkMaxMessageChars(options.maxMessageChars),
    followUps: { ...CHECK_FOLLOW_UPS, ...options.followUps },
  }
}

interface Owned {
  readonly owner?: string
}

/** The types of the options of tools that show tasks or wait for them. */
export const ownedOptionTypes: OptionTypes<AsyncTaskToolOptions & Owned> = { ...toolOptionTypes, owner: aName }

/** The options of all tools that launch tasks. */
type LaunchOptions = AsyncTaskToolOptions & Owned & TimeoutSettings & ForegroundOptions

export const launchOptionTypes: OptionTypes<LaunchOptions> = {
  ...ownedOptionTypes,
  ...timeoutOptionTypes,
  ...foregroundOptionTypes,
}

/**
 * Converts these options to functions and values that every call uses.
 * @throws InvalidSettingError for a number out of its range
 */
export function readLaunchOptions(options: LaunchOptions) {
  const { owner, onForegroundAbort } = options
  return {
    ...readToolOptions(options),
    backgroundAfterSeconds: backgroundAfter(options),
    onForegroundAbort,
    /** The owner and the deadline of the task that a call launches. */
    inputOf: ({ seconds }: EffectiveTimeout): Pick<LaunchTaskInput, 'owner' | 'timeoutMs'> =>
      defined({ owner, timeoutMs: seconds === -1 ? undefined : seconds * 1000 }),
  }
}

/** A signal that aborts when one of the two signals aborts. */
export function eitherSignal(one: AbortSignal | undefined, other: AbortSignal | undefined): AbortSignal | undefined {
  return one !== undefined && other !== undefined ? AbortSignal.any([one, other]) : (one ?? other)
}
