/** Finds the lines that a monitor reports. A model may have written the pattern, so `re2js` matches it in linear time. */
import { InvalidInputError } from '../../errors.js'
import { loadPackage } from '../../system/optional-package.js'
import type { StoredMonitor } from '../../protocol/monitors.js'
import { describeFailure } from '../../protocol/outcomes.js'

/** The maximum size of a compiled pattern, in instructions. The time per line grows with it. */
const MAX_PROGRAM = 1000

/**
 * Creates the test for lines.
 * @throws INVALID_INPUT for an unusable pattern
 * @throws AgentTasksError `PACKAGES_MISSING` for a regular expression without the package `re2js`
 */
export function matcherOf(match: StoredMonitor['input']['match']): (line: string) => boolean {
  if (typeof match === 'string') return (line) => line.includes(match)
  if (!('regex' in match)) return (line) => match.some((text) => line.includes(text))
  const { regex, flags = '' } = match
  const refuse = (expected: string): never => {
    throw new InvalidInputError('input.match.regex', regex, expected)
  }
  const { RE2JS } = loadPackage('re2js', 2, 'Monitors with a regular expression') as typeof import('re2js')
  const options = flags.replace('u', '')
  try {
    const pattern = RE2JS.compile((options === '' ? '' : `(?${options})`) + RE2JS.translateRegExp(regex))
    if (pattern.programSize() <= MAX_PROGRAM) return (line) => pattern.test(line)
  } catch (error) {
    return refuse(
      `a regular expression without look-arounds and back-references (RE2 syntax): ${describeFailure(error)}`,
    )
  }
  return refuse(`a regular expression of at most ${MAX_PROGRAM} instructions (use fewer or smaller repetitions)`)
}
