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

/** The tools that a result suggests to call next. Set it if your host offers them under other names. */
export interface FollowUps {
  /** How to cancel a task, as text. */
  readonly cancel: string
  /** The tool that takes answers, and the parameters that select its answer mode. */
  readonly answer: FollowUpCall
  /** The tool that reads a task's output or result, and the parameters that select this mode. Default: check_async_tasks. */
  readonly read?: FollowUpCall
}

/** By default, check_async_tasks does all three. */
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
  /** The tools that a result suggests to call next. Default: check_async_tasks. */
  readonly followUps?: FollowUps
}

/** What happens to a task that runs in place when its call is aborted. */
export type ForegroundAbort = 'keep' | 'cancel'

/** Options of the tools that run tasks in place. */
export interface ForegroundOptions {
  /**
   * What happens to a task that runs in place when its call is aborted. `cancel` (default): it is cancelled. `keep`: it continues in the
   * background, and its end is owed.
   */
  readonly onForegroundAbort?: ForegroundAbort
  /**
   * The maximum time that a call waits for a task that it runs in place, in seconds. Then the task continues in the background, and the call returns
   * a text that explains it. Use it for hosts with a time limit for calls. -1 (default) for no limit.
   */
  readonly backgroundAfterSeconds?: number
}

/** `backgroundAfter` checks the number. */
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

/** The shared options with their defaults. Throws `InvalidSettingError` for a `maxMessageChars` that is not an integer >= 200. */
export function readToolOptions(options: AsyncTaskToolOptions) {
  return {
    maxChars: checkMaxMessageChars(options.maxMessageChars),
    followUps: { ...CHECK_FOLLOW_UPS, ...options.followUps },
  }
}

interface Owned {
  readonly owner?: string
}

/** For tools that show tasks, or wait for them. */
export const ownedOptionTypes: OptionTypes<AsyncTaskToolOptions & Owned> = { ...toolOptionTypes, owner: aName }

/** The options of all tools that launch tasks. */
type LaunchOptions = AsyncTaskToolOptions & Owned & TimeoutSettings & ForegroundOptions

export const launchOptionTypes: OptionTypes<LaunchOptions> = {
  ...ownedOptionTypes,
  ...timeoutOptionTypes,
  ...foregroundOptionTypes,
}

/** Reads these options into functions for each call. @throws InvalidSettingError for a number out of its range */
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

/** A signal that aborts when one of the two does. */
export function eitherSignal(one: AbortSignal | undefined, other: AbortSignal | undefined): AbortSignal | undefined {
  return one !== undefined && other !== undefined ? AbortSignal.any([one, other]) : (one ?? other)
}
