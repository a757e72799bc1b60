/** The delays between attempts to connect. They grow exponentially up to a limit, with jitter, so that clients do not reconnect at the same time. */
import { z } from 'zod'
import { InvalidSettingError } from '../errors.js'
import { limitFrom, numberFrom, optionsOf, optionType } from '../protocol/option-checks.js'

/** The back-off of reconnections. */
export interface ReconnectOptions {
  /** The first delay, in ms. Default 250. */
  readonly initialMs?: number
  /** The longest delay, in ms. Default 15000. */
  readonly maxMs?: number
  /** The random part of each delay, 0 to 1. Default 0.5. */
  readonly jitter?: number
  /** After this many failed attempts in a row the client gives up. Default: no limit. */
  readonly maxAttempts?: number
  /**
   * How long to try to restore a lost connection, in ms; Infinity for no limit. After that the requests and watches that need the connection
   * fail. Default: 60000 for `createTaskClient`, Infinity for `connectInstance`.
   */
  readonly giveUpMs?: number
}

const backOff = optionsOf<ReconnectOptions>({
  initialMs: numberFrom(0, 'a number of ms >= 0'),
  maxMs: numberFrom(0, 'a number of ms >= initialMs'),
  jitter: numberFrom(0, 'a number from 0 to 1', 1),
  maxAttempts: limitFrom(0),
  giveUpMs: limitFrom(0, 'a number of ms >= 0, or Infinity'),
})

export const reconnectOption = optionType('an object, or false', (error) =>
  z.union([z.literal(false), backOff.schema()], error),
)

/**
 * @param attempt the number of the attempt, from 1
 * @param downMs how long there has been no connection, in ms
 * @returns the delay before the attempt in ms; undefined when no attempt is left
 */
export type Reconnection = (attempt: number, downMs: number) => number | undefined

/**
 * @param options `false` turns reconnection off
 * @param defaultGiveUpMs the default of `giveUpMs`
 * @throws INVALID_SETTING when `maxMs` is less than `initialMs`; `reconnectOption` checks the rest
 */
export function createReconnection(
  options: ReconnectOptions | false = {},
  defaultGiveUpMs: number = Infinity,
): Reconnection {
  if (options === false) return () => undefined
  const { initialMs = 250, jitter = 0.5, maxAttempts = Infinity, giveUpMs = defaultGiveUpMs } = options
  const { maxMs = Math.max(15_000, initialMs) } = options
  if (maxMs < initialMs) throw new InvalidSettingError('reconnect.maxMs', maxMs, 'a number of ms >= initialMs')
  return (attempt, downMs) => {
    if (attempt > maxAttempts || downMs >= giveUpMs) return undefined
    const whole = Math.min(maxMs, initialMs * 2 ** (attempt - 1))
    // The delay is cut so that the last attempt happens exactly when `giveUpMs` ends.
    return Math.min(whole * (1 - jitter * Math.random()), giveUpMs - downMs)
  }
}
