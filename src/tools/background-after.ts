/** The time after which a call stops waiting for its task, which then continues in the background. */
import { z } from 'zod'
import { deprecateMaxBlocking } from '../deprecation.js'
import { InvalidSettingError } from '../errors.js'
import { lazily } from '../protocol/lazily.js'

export const backgroundAfterSchema = lazily(() =>
  z
    .number()
    .max(2 ** 31)
    .refine((seconds) => seconds > 0, 'a number of seconds > 0')
    .optional()
    .describe('Without async: after this many seconds the task continues in the background.'),
)

interface BackgroundAfterSettings {
  readonly backgroundAfterSeconds?: number
  readonly maxBlockingSeconds?: number
}

/**
 * The checked option, in seconds; undefined for no limit.
 * @throws InvalidSettingError for anything but -1 or a number of seconds > 0
 */
export function backgroundAfter(settings: BackgroundAfterSettings): number | undefined {
  const { maxBlockingSeconds, backgroundAfterSeconds = maxBlockingSeconds ?? -1 } = settings
  if (maxBlockingSeconds !== undefined) deprecateMaxBlocking()
  if (backgroundAfterSeconds === -1) return undefined
  if (Number.isFinite(backgroundAfterSeconds) && backgroundAfterSeconds > 0) return backgroundAfterSeconds
  const name = settings.backgroundAfterSeconds === undefined ? 'maxBlockingSeconds' : 'backgroundAfterSeconds'
  throw new InvalidSettingError(name, backgroundAfterSeconds, 'a number of seconds > 0, or -1 for no limit')
}

/** The time for one call: the smaller of the option and the requested time. */
export function earlierOf(option: number | undefined, asked: number | undefined): number | undefined {
  return option === undefined || asked === undefined ? (option ?? asked) : Math.min(option, asked)
}
