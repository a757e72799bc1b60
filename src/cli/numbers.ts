/** Numbers on the command line. */
import { InvalidInputError } from '../errors.js'

/**
 * Reads an integer.
 * @throws INVALID_INPUT that names the option
 */
export function readInteger(option: string, value: string, least: number, most: number): number {
  const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
  if (!(number >= least && number <= most)) {
    throw new InvalidInputError(option, value, `an integer from ${least} to ${most}`)
  }
  return number
}
