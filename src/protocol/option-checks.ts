/** Checks of numeric options that several classes share. */
import { InvalidSettingError } from '../errors.js'

/** A number option with a least value. Returns the value, or throws `InvalidSettingError`. */
export function checkLeast(setting: string, value: number, least: number): number {
  if (!Number.isFinite(value) || value < least) throw new InvalidSettingError(setting, value, `a number >= ${least}`)
  return value
}
