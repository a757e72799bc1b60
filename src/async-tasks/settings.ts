/** The settings of async tasks, as people and configuration files write them. */
import { InvalidSettingError } from '../errors.js'
import { integerFrom } from '../protocol/option-checks.js'

/** The description and range of a setting. */
export interface SettingDefinition {
  /** What the setting means, in words. */
  readonly description: string
  /** The default value. */
  readonly default: number
  /** The smallest value. */
  readonly min: number
  /** The largest value. */
  readonly max: number
}

/** All settings by name. */
export const settingDefinitions = {
  'task-max-async': {
    description: 'How many background tasks may run at once; -1 for no limit.',
    default: 5,
    min: -1,
    max: 100,
  },
  'task-default-timeout-seconds': {
    description: 'The deadline of a task that does not set one, in seconds; -1 for no deadline.',
    default: 900,
    min: -1,
    max: 2 ** 31,
  },
  'task-max-timeout-seconds': {
    description: 'The longest deadline that a task may set, in seconds; -1 for no limit.',
    default: 1800,
    min: -1,
    max: 2 ** 31,
  },
} as const satisfies Record<string, SettingDefinition>

/** The name of a setting. */
export type SettingName = keyof typeof settingDefinitions

/**
 * Parses the value of a setting: a number, or text with an integer.
 * @returns the number; -1 means no limit
 * @throws INVALID_SETTING for an unknown setting, a value that is not an integer, or a number outside of the setting's range. 0 is in the range of
 * `task-max-async` only.
 */
export function parseSetting(name: SettingName, value: unknown): number {
  if (!Object.hasOwn(settingDefinitions, name)) {
    throw new InvalidSettingError(name, value, `one of the settings ${Object.keys(settingDefinitions).join(', ')}`)
  }
  const { min, max } = settingDefinitions[name]
  const number = typeof value === 'string' && /^\s*[+-]?\d+\s*$/.test(value) ? Number(value) : value
  // A limit of 0 tasks is useful, but a timeout of 0 seconds would fail every task.
  const isZeroTimeout = number === 0 && name !== 'task-max-async'
  if (typeof number !== 'number' || !Number.isInteger(number) || number < min || number > max || isZeroTimeout) {
    const expected = `an integer from ${min} to ${max}${name === 'task-max-async' ? ' (-1: no limit)' : ' other than 0 (-1: none)'}`
    throw new InvalidSettingError(name, value, expected)
  }
  return number
}

/** The type of the manager's option `maxAsyncTasks`. Unlike the setting, it has no upper limit. */
export const taskLimit = integerFrom(-1, 'an integer >= 0, or -1 for no limit')
