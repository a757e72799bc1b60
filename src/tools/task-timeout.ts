/** The deadline of a task that a model asked for: its wish, the default, and the limit. */
import { z } from 'zod'
import { lazily } from '../protocol/lazily.js'
import { parseSetting, settingDefinitions } from '../async-tasks/settings.js'

/** The parameter of every tool that starts a task. */
export const timeoutSecondsSchema = lazily(() =>
  z
    .number()
    .max(2 ** 31)
    .refine((seconds) => seconds > 0 || seconds === -1, 'a number of seconds > 0, or -1 for no deadline')
    .optional()
    .describe('After how many seconds it is stopped; -1 for no deadline.'),
)

/** A setting that stands, or one that is asked for at every call. */
export type TimeoutSetting = number | (() => number)

/** In seconds; -1 for none. */
export interface TimeoutSettings {
  /** The deadline of a task that asks for none. Setting `task-default-timeout-seconds`, default 900. */
  readonly defaultTimeoutSeconds?: TimeoutSetting
  /** The longest deadline. Setting `task-max-timeout-seconds`, default 1800. */
  readonly maxTimeoutSeconds?: TimeoutSetting
}

/** A deadline, and what the model is told if it is not the one that was asked for. */
export interface EffectiveTimeout {
  /** In seconds; -1 for none. */
  readonly seconds: number
  readonly note?: string
}

/**
 * Checks the settings that stand, and gives the deadline of a task by what it asked for (seconds, -1 for none, undefined
 * for the default).
 * @throws InvalidSettingError, now for a setting that stands and at the call for one that is asked for
 */
export function timeoutPolicy(settings: TimeoutSettings): (asked: number | undefined) => EffectiveTimeout {
  const standard = reader('task-default-timeout-seconds', settings.defaultTimeoutSeconds)
  const limit = reader('task-max-timeout-seconds', settings.maxTimeoutSeconds)
  return (asked) => effectiveTimeout(asked, standard(), limit())
}

function effectiveTimeout(asked: number | undefined, standard: number, limit: number): EffectiveTimeout {
  const wanted = asked ?? standard
  if (limit === -1 || (wanted !== -1 && wanted <= limit)) return { seconds: wanted }
  const wish = `${asked === undefined ? 'default' : 'asked'}: ${wanted === -1 ? 'none' : wanted}`
  return { seconds: limit, note: `The timeout was cut to the limit of ${limit} seconds (${wish}).` }
}

function reader(
  name: 'task-default-timeout-seconds' | 'task-max-timeout-seconds',
  setting?: TimeoutSetting,
): () => number {
  if (typeof setting === 'function') return () => parseSetting(name, setting())
  const value = parseSetting(name, setting ?? settingDefinitions[name].default)
  return () => value
}
