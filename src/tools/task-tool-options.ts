/** The options that the tools for async tasks share. */
import { DEFAULT_MESSAGE_CHARS, messageLength } from '../features/output/bounded-text.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { aFollowUpCall, CHECK_ANSWERS, CHECK_READS, type FollowUpCall } from '../features/output/follow-ups.js'
import { omitUndefined } from '../data/omit-undefined.js'
import type { LaunchTaskInput } from '../protocol/async-tasks.js'
import {
  aFunction,
  aName,
  aString,
  oneOf,
  optionsOf,
  required,
  withDefault,
  withDefaults,
  type OptionTypes,
} from '../protocol/option-checks.js'
import { aSecondsLimit, backgroundAfter } from './background-after.js'
import { timeoutOptionTypes, type EffectiveTimeout, type TimeoutSettings } from './task-timeout.js'

/** The tools that the text of a result suggests to call next. Set this if your host has them under other names. */
export interface FollowUps {
  /** The call that cancels a task, as text. */
  readonly cancel: string
  /** The tool that answers questions, and the parameters that make it do so. */
  readonly answer: FollowUpCall
  /** The tool that reads the output or the result of a task, and the parameters that make it do so. Default: check_async_tasks. */
  readonly read?: FollowUpCall
  /** How the result of a background task reaches the model, in one or more sentences. Default: that it is delivered when the task has ended. */
  readonly arrival?: string
}

/** The default: check_async_tasks cancels, answers and reads. */
export const CHECK_FOLLOW_UPS: Required<FollowUps> = {
  cancel: 'check_async_tasks with action "cancel"',
  answer: CHECK_ANSWERS,
  read: CHECK_READS,
  arrival: 'Its result will be delivered to you when it has ended: do not poll for it.',
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

export const foregroundOptionTypes = {
  onForegroundAbort: withDefault(oneOf(['keep', 'cancel']), 'cancel'),
  backgroundAfterSeconds: withDefault(aSecondsLimit, -1),
} satisfies OptionTypes<ForegroundOptions>

const followUpTypes: OptionTypes<FollowUps> = {
  cancel: aString,
  answer: aFollowUpCall,
  read: aFollowUpCall,
  arrival: aString,
}

const toolOptionTypes: OptionTypes<AsyncTaskToolOptions> = {
  getAsyncTaskManager: required(aFunction),
  maxMessageChars: messageLength,
  followUps: optionsOf(followUpTypes),
}

export function readToolOptions(options: AsyncTaskToolOptions) {
  return {
    maxChars: options.maxMessageChars ?? DEFAULT_MESSAGE_CHARS,
    followUps: { ...CHECK_FOLLOW_UPS, ...options.followUps },
  }
}

interface Owned {
  readonly owner?: string
}

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
 * @throws INVALID_SETTING for a number out of its range
 */
export function readLaunchOptions(options: LaunchOptions) {
  const { owner } = options
  const { onForegroundAbort } = withDefaults(options as ForegroundOptions, foregroundOptionTypes)
  return {
    ...readToolOptions(options),
    backgroundAfterSeconds: backgroundAfter(options),
    onForegroundAbort,
    inputOf: ({ seconds }: EffectiveTimeout): Pick<LaunchTaskInput, 'owner' | 'timeoutMs'> =>
      omitUndefined({ owner, timeoutMs: seconds === -1 ? undefined : seconds * 1000 }),
  }
}

export function eitherSignal(one: AbortSignal | undefined, other: AbortSignal | undefined): AbortSignal | undefined {
  return one !== undefined && other !== undefined ? AbortSignal.any([one, other]) : (one ?? other)
}
