/** How long to wait before the next attempt to connect: exponential, bounded, and spread so that clients do not come all at once. */
import { InvalidSettingError } from '../errors.js'

/** How a lost connection is made again. */
export interface ReconnectOptions {
  /** The first wait, in ms. Default 250. */
  readonly initialMs?: number
  /** The longest wait, in ms. Default 15000. */
  readonly maxMs?: number
  /** The part of each wait that is left to chance, 0 to 1. Default 0.5. */
  readonly jitter?: number
  /** How many attempts in a row may fail before it is given up. Default: any number. */
  readonly maxAttempts?: number
}

/** @returns the wait before attempt `n` (from 1) in ms; undefined when it is to be given up */
export type Reconnection = (attempt: number) => number | undefined

/**
 * @param options false: a lost connection is not made again
 * @throws InvalidSettingError for a value out of its range
 */
export function createReconnection(options: ReconnectOptions | false = {}): Reconnection {
  if (options === false) return () => undefined
  const { initialMs = 250, jitter = 0.5, maxAttempts = Infinity } = options
  const { maxMs = Math.max(15_000, initialMs) } = options
  check('reconnect.initialMs', initialMs, initialMs >= 0 && initialMs < Infinity, 'a number of ms >= 0')
  check('reconnect.maxMs', maxMs, maxMs >= initialMs && maxMs < Infinity, 'a number of ms >= initialMs')
  check('reconnect.jitter', jitter, jitter >= 0 && jitter <= 1, 'a number from 0 to 1')
  check('reconnect.maxAttempts', maxAttempts, maxAttempts >= 0, 'a number >= 0')
  return (attempt) => {
    if (attempt > maxAttempts) return undefined
    const whole = Math.min(maxMs, initialMs * 2 ** (attempt - 1))
    return whole * (1 - jitter * Math.random())
  }
}

function check(setting: string, value: unknown, isValid: boolean, expected: string): void {
  if (!isValid) throw new InvalidSettingError(setting, value, expected)
}
