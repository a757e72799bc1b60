/** Validation of numeric options. */
import { InvalidSettingError } from '../errors.js'

/**
 * Returns a numeric option.
 * @throws InvalidSettingError for a value below the minimum, or not finite
 */
export function checkLeast(setting: string, value: number, min: number): number {
  if (!Number.isFinite(value) || value < min) throw new InvalidSettingError(setting, value, `a number >= ${min}`)
  return value
}
