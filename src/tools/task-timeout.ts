/** The deadline of a task that a tool starts: the requested one, the default, and the limit. */
import { z } from 'zod'
import { defined } from '../defined.js'
import { lazily } from '../protocol/lazily.js'
import { parseSetting, settingDefinitions } from '../async-tasks/settings.js'
import { anything, type OptionTypes } from '../protocol/option-checks.js'

/** The parameter of every tool that starts a task. */
export const timeoutSecondsSchema = lazily(() =>
  z
    .number()
    .max(2 ** 31)
    .refine((seconds) => seconds > 0 || seconds === -1, 'a number of seconds > 0, or -1 for no deadline')
    .optional()
    .describe('The task is stopped after this many seconds.'),
)

/** The schema of an object with the parameter, with the default and the limit that apply now in its description. */
export function withTimeoutText<Shape extends z.core.$ZodLooseShape>(
  schema: z.ZodObject<Shape, z.core.$strict>,
  settings: TimeoutSettings,
  more = '',
): z.ZodObject<Shape, z.core.$strict> {
  const timeout_seconds = timeoutSecondsSchema().describe(timeoutText(settings) + more)
  return schema.extend({ timeout_seconds }) as unknown as z.ZodObject<Shape, z.core.$strict>
}

/** The description of the parameter for the model. */
export const timeoutText = (settings: TimeoutSettings): string =>
  `The task is stopped after this many seconds. ${limitsText(settings)}`

/** The default and the limit, in words. */
export function limitsText(settings: TimeoutSettings): string {
  const { standard, limit } = readSettings(settings)
  const without = `Default ${effectiveTimeout(undefined, standard, limit).seconds}`.replace(
    'Default -1',
    'Default: no deadline',
  )
  const most = limit === -1 ? '-1 for no deadline.' : `At most ${limit}.`
  return `${without}. ${most}`
}

/** A number, or a function that returns it and is called at every call of the tool. */
export type TimeoutSetting = number | (() => number)

/** Deadlines in seconds; -1 for none. */
export interface TimeoutSettings {
  /** The deadline of a task whose call has no `timeout_seconds`. Default 900. */
  readonly defaultTimeoutSeconds?: TimeoutSetting
  /** The longest deadline; longer ones are reduced to it. Default 1800. */
  readonly maxTimeoutSeconds?: TimeoutSetting
  /** @deprecated The former name of `backgroundAfterSeconds`, which takes precedence. */
  readonly maxBlockingSeconds?: number
}

/** `timeoutPolicy` checks the values. */
export const timeoutOptionTypes: OptionTypes<TimeoutSettings> = {
  defaultTimeoutSeconds: anything,
  maxTimeoutSeconds: anything,
  maxBlockingSeconds: anything,
}

/** A deadline, with a note about it. */
export interface EffectiveTimeout {
  /** In seconds; -1 for none. */
  readonly seconds: number
  /** The requested deadline, if it exceeds the limit. */
  readonly requested?: number
  /** A note for the model, if the deadline differs from the requested one. */
  readonly note?: string
}

/**
 * Checks the settings, and returns a function from the requested deadline (in seconds, -1 for none, undefined for the default)
 * to the effective one.
 * @throws InvalidSettingError for a number out of its range; for a function's number when the returned function is called
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
  return { seconds: limit, note, ...defined({ requested: asked }) }
}

function settingsOf({ defaultTimeoutSeconds, maxTimeoutSeconds }: TimeoutSettings) {
  const standard = 'task-default-timeout-seconds'
  const limit = 'task-max-timeout-seconds'
  return [
    [standard, defaultTimeoutSeconds ?? settingDefinitions[standard].default],
    [limit, maxTimeoutSeconds ?? settingDefinitions[limit].default],
  ] as const
}

/** @throws InvalidSettingError for a number out of its range */
function readSettings(settings: TimeoutSettings): { readonly standard: number; readonly limit: number } {
  const [standard, limit] = settingsOf(settings).map(([name, setting]) =>
    parseSetting(name, typeof setting === 'function' ? setting() : setting),
  )
  return { standard: standard ?? -1, limit: limit ?? -1 }
}
