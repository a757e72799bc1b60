/** The option that limits how long a call waits for its task. After this time, the task continues in the background. */
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
 * Checks the option and returns it in seconds; undefined for no limit.
 * @throws InvalidSettingError for a value that is neither -1 nor a number of seconds > 0
 */
export function backgroundAfter(settings: BackgroundAfterSettings): number | undefined {
  const { maxBlockingSeconds, backgroundAfterSeconds = maxBlockingSeconds ?? -1 } = settings
  if (maxBlockingSeconds !== undefined) deprecateMaxBlocking()
  if (backgroundAfterSeconds === -1) return undefined
  if (Number.isFinite(backgroundAfterSeconds) && backgroundAfterSeconds > 0) return backgroundAfterSeconds
  const name = settings.backgroundAfterSeconds === undefined ? 'maxBlockingSeconds' : 'backgroundAfterSeconds'
  throw new InvalidSettingError(name, backgroundAfterSeconds, 'a number of seconds > 0, or -1 for no limit')
}

/** The time limit of one call, in seconds: the smaller of the option of the tool and the parameter of the call. */
export function earlierOf(option: number | undefined, asked: number | undefined): number | undefined {
  return option === undefined || asked === undefined ? (option ?? asked) : Math.min(option, asked)
}
