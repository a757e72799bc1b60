/** The delays between attempts to connect: exponential, bounded, with jitter so that clients do not reconnect at the same time. */
import { InvalidSettingError } from '../errors.js'
import { limitFrom, numberFrom, optionsOf, type OptionType } from '../protocol/option-checks.js'

/** The back-off of reconnections. */
export interface ReconnectOptions {
  /** The first delay, in ms. Default 250. */
  readonly initialMs?: number
  /** The longest delay, in ms. Default 15000. */
  readonly maxMs?: number
  /** The random part of each delay, 0 to 1. Default 0.5. */
  readonly jitter?: number
  /** The most failed attempts in a row. Default: no limit. */
  readonly maxAttempts?: number
}

const backOff = optionsOf<ReconnectOptions>({
  initialMs: { ...numberFrom(0), expected: 'a number of ms >= 0' },
  maxMs: { ...numberFrom(0), expected: 'a number of ms >= initialMs' },
  jitter: {
    expected: 'a number from 0 to 1',
    accepts: (value) => typeof value === 'number' && value >= 0 && value <= 1,
    isNumber: true,
  },
  maxAttempts: limitFrom(0),
})

/** The option `reconnect`. */
export const reconnectOption: OptionType = {
  expected: 'an object, or false',
  accepts: (value) => value === false || backOff.accepts(value),
  checkContent: (value, path) => value !== false && backOff.checkContent?.(value, path),
}

/** @returns the delay before an attempt (from 1) in ms; undefined after the last */
export type Reconnection = (attempt: number) => number | undefined

/**
 * @param options `false` turns reconnection off
 * @throws InvalidSettingError when `maxMs` is less than `initialMs`; `reconnectOption` checks the rest
 */
export function createReconnection(options: ReconnectOptions | false = {}): Reconnection {
  if (options === false) return () => undefined
  const { initialMs = 250, jitter = 0.5, maxAttempts = Infinity } = options
  const { maxMs = Math.max(15_000, initialMs) } = options
  if (maxMs < initialMs) throw new InvalidSettingError('reconnect.maxMs', maxMs, 'a number of ms >= initialMs')
  return (attempt) => {
    if (attempt > maxAttempts) return undefined
    const whole = Math.min(maxMs, initialMs * 2 ** (attempt - 1))
    return whole * (1 - jitter * Math.random())
  }
}
