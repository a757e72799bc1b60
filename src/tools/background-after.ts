/** The option that limits how long a call waits for its task. After this time, the task continues in the background. */
import { z } from 'zod'
import { lazily } from '../protocol/lazily.js'
import { numberAbove0, orMinusOne } from '../protocol/option-checks.js'

export const backgroundAfterSchema = lazily(() =>
  z
    .number()
    .max(2 ** 31)
    .refine((seconds) => seconds > 0, 'a number of seconds > 0')
    .optional()
    .describe('Without async: after this many seconds the task continues in the background.'),
)

/** The type of an option with a number of seconds. */
export const aSecondsLimit = orMinusOne(numberAbove0('a number > 0'), 'a number of seconds > 0, or -1 for no limit')

interface BackgroundAfter {
  readonly backgroundAfterSeconds?: number
}

/** Returns the option in seconds; undefined for no limit. */
export function backgroundAfter({ backgroundAfterSeconds }: BackgroundAfter): number | undefined {
  return backgroundAfterSeconds === -1 ? undefined : backgroundAfterSeconds
}

/** The time limit of one call, in seconds: the smaller of the option of the tool and the parameter of the call. */
export function earlierOf(option: number | undefined, asked: number | undefined): number | undefined {
  return option === undefined || asked === undefined ? (option ?? asked) : Math.min(option, asked)
}
