/** The settings of the async tasks (seed 001 and its additions), as a person or a file writes them. */
import { InvalidSettingError } from '../errors.js'

/** What a setting means and what it may be. */
export interface SettingDefinition {
  /** What it means, for a person. */
  readonly description: string
  /** Its value when nobody sets it. */
  readonly default: number
  /** The least value. */
  readonly min: number
  /** The greatest value. */
  readonly max: number
}

/** Every setting by its name. -1 stands for "no limit". */
export const settingDefinitions = {
  'task-max-async': {
    description: 'How many background tasks may run at once; -1 for no limit.',
    default: 5,
    min: -1,
    max: 100,
  },
  'task-default-timeout-seconds': {
    description: 'The deadline of a task that asks for none, in seconds; -1 for none.',
    default: 900,
    min: -1,
    max: 2 ** 31,
  },
  'task-max-timeout-seconds': {
    description: 'The longest deadline a task may ask for, in seconds; -1 for no bound.',
    default: 1800,
    min: -1,
    max: 2 ** 31,
  },
} as const satisfies Record<string, SettingDefinition>

/** The name of a setting. */
export type SettingName = keyof typeof settingDefinitions

/**
 * Reads a setting from a number or its text.
 * @throws InvalidSettingError that names the setting, the value and the range
 */
export function parseSetting(name: SettingName, value: unknown): number {
  if (!Object.hasOwn(settingDefinitions, name)) {
    throw new InvalidSettingError(name, value, `one of the settings ${Object.keys(settingDefinitions).join(', ')}`)
  }
  const { min, max } = settingDefinitions[name]
  const number = typeof value === 'string' && /^\s*[+-]?\d+\s*$/.test(value) ? Number(value) : value
  // A timeout of no seconds would fail every task; no tasks at all is a sensible limit.
  const isZeroTimeout = number === 0 && name !== 'task-max-async'
  if (typeof number !== 'number' || !Number.isInteger(number) || number < min || number > max || isZeroTimeout) {
    const expected = `an integer from ${min} to ${max}${name === 'task-max-async' ? ' (-1: no limit)' : ' other than 0 (-1: none)'}`
    throw new InvalidSettingError(name, value, expected)
  }
  return number
}

/** The manager's own rule: any integer >= 0, or -1. Returns the value, or throws `InvalidSettingError`. */
export function checkMaxAsyncTasks(max: number, setting: string): number {
  if (!Number.isInteger(max) || max < -1) {
    throw new InvalidSettingError(setting, max, 'an integer >= 0, or -1 for no limit')
  }
  return max
}
