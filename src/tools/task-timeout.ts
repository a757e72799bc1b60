/** The deadline of a task that a tool launches. It depends on the requested deadline, the default and the maximum. */
import { z } from 'zod'
import { omitUndefined } from '../data/omit-undefined.js'
import { lazily } from '../protocol/lazily.js'
import { parseSetting, settingDefinitions } from '../async-tasks/settings.js'
import { anything, type OptionTypes } from '../protocol/option-checks.js'

/** The parameter `timeout_seconds` of every tool that launches a task. */
export const timeoutSecondsSchema = lazily(() =>
  z
    .number()
    .max(2 ** 31)
    .refine((seconds) => seconds > 0 || seconds === -1, 'a number of seconds > 0, or -1 for no deadline')
    .optional()
    .describe('The task is stopped after this many seconds.'),
)

/** Adds the current default and maximum to the description of the parameter `timeout_seconds` in a schema. */
export function withTimeoutText<Shape extends z.core.$ZodLooseShape>(
  schema: z.ZodObject<Shape, z.core.$strict>,
  settings: TimeoutSettings,
  more = '',
): z.ZodObject<Shape, z.core.$strict> {
  const timeout_seconds = timeoutSecondsSchema().describe(timeoutText(settings) + more)
  return schema.extend({ timeout_seconds }) as unknown as z.ZodObject<Shape, z.core.$strict>
}

/** The description of the parameter `timeout_seconds` for the model. */
const timeoutText = (settings: TimeoutSettings): string =>
  `The task is stopped after this many seconds. ${limitsText(settings)}`

/** The default and the maximum, as text for the model. */
export function limitsText(settings: TimeoutSettings): string {
  const { standard, limit } = readSettings(settings)
  const without = `Default ${effectiveTimeout(undefined, standard, limit).seconds}`.replace(
    'Default -1',
    'Default: no deadline',
  )
  const most = limit === -1 ? '-1 for no deadline.' : `At most ${limit}.`
  return `${without}. ${most}`
}

/** A number, or a function that returns it. The function is called at every call of the tool. */
export type TimeoutSetting = number | (() => number)

/** The deadlines of tasks, in seconds; -1 for no deadline. */
export interface TimeoutSettings {
  /** The deadline of a task whose call has no `timeout_seconds`, in seconds; -1 for no deadline. Default 900. */
  readonly defaultTimeoutSeconds?: TimeoutSetting
  /** The maximum deadline, in seconds; -1 for no maximum. Longer deadlines are reduced to it. Default 1800. */
  readonly maxTimeoutSeconds?: TimeoutSetting
}

/** `timeoutPolicy` checks the values. */
export const timeoutOptionTypes: OptionTypes<TimeoutSettings> = {
  defaultTimeoutSeconds: anything,
  maxTimeoutSeconds: anything,
}

export interface EffectiveTimeout {
  /** The deadline in seconds; -1 for none. */
  readonly seconds: number
  /** The deadline that the call requested, in seconds, if it was longer than the maximum. */
  readonly requested?: number
  /** A note for the model, if the deadline is not the requested one. */
  readonly note?: string
}

/**
 * Checks the settings. Returns a function that takes the requested deadline (in seconds; -1 for none, undefined for the default) and returns the
 * deadline that applies.
 * @throws INVALID_SETTING for a number out of its range; if a setting is a function, when the returned function is called
 */
export function timeoutPolicy(settings: TimeoutSettings): (asked: number | undefined) => EffectiveTimeout {
  for (const [name, setting] of settingsOf(settings)) if (typeof setting !== 'function') parseSetting(name, setting)
  return (asked) => {
    const { standard, limit } = readSettings(settings)
    return effectiveTimeout(asked, standard, limit)
  }
}

function effectiveTimeout(asked: number | undefined, standard: number, limit: number): EffectiveTimeout {
  const wanted = asked ?? standard
  if (limit === -1 || (wanted !== -1 && wanted <= limit)) return { seconds: wanted }
  const wish = `${asked === undefined ? 'default' : 'asked'}: ${wanted === -1 ? 'none' : wanted}`
  const note = `The timeout was cut to the limit of ${limit} seconds (${wish}).`
  return { seconds: limit, note, ...omitUndefined({ requested: asked }) }
}

function settingsOf({ defaultTimeoutSeconds, maxTimeoutSeconds }: TimeoutSettings) {
  const standard = 'task-default-timeout-seconds'
  const limit = 'task-max-timeout-seconds'
  return [
    [standard, defaultTimeoutSeconds ?? settingDefinitions[standard].default],
    [limit, maxTimeoutSeconds ?? settingDefinitions[limit].default],
  ] as const
}

/** @throws INVALID_SETTING for a number out of its range */
function readSettings(settings: TimeoutSettings): { readonly standard: number; readonly limit: number } {
  const [standard, limit] = settingsOf(settings).map(([name, setting]) =>
    parseSetting(name, typeof setting === 'function' ? setting() : setting),
  )
  return { standard: standard ?? -1, limit: limit ?? -1 }
}
