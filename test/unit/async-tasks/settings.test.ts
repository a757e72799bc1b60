/** Settings are parsed from numbers or text; an error has the name, the value and the range. */
import { describe, expect, it } from 'vitest'
import { parseSetting, settingDefinitions, taskLimit, type SettingName } from '../../../src/async-tasks/settings.js'
import { InvalidSettingError } from '../../../src/errors.js'
import { checkOption } from '../../../src/protocol/option-checks.js'

const messageOf = (run: () => unknown): string => {
  try {
    run()
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidSettingError)
    return (error as InvalidSettingError).message
  }
  throw new Error('nothing was thrown')
}

describe('a setting', () => {
  it('has the documented default', () => {
    const defaults = Object.entries(settingDefinitions).map(([name, definition]) => [name, definition.default])
    expect(Object.fromEntries(defaults)).toEqual({
      'task-max-async': 5,
      'task-default-timeout-seconds': 900,
      'task-max-timeout-seconds': 1800,
    })
  })

  it.each<[SettingName, unknown, number]>([
    ['task-max-async', '7', 7],
    ['task-max-async', ' -1 ', -1],
    ['task-max-async', '+100', 100],
    ['task-max-async', 0, 0],
    ['task-default-timeout-seconds', '-1', -1],
    ['task-max-timeout-seconds', 3600, 3600],
  ])('%s reads %j as %i', (name, value, expected) => {
    expect(parseSetting(name, value)).toBe(expected)
  })

  it.each<[SettingName, unknown]>([
    ['task-max-async', 101],
    ['task-max-async', -2],
    ['task-max-async', '1.5'],
    ['task-max-async', ''],
    ['task-max-async', '0x10'],
    ['task-max-async', 'many'],
    ['task-max-async', NaN],
    ['task-max-async', Infinity],
    ['task-max-async', null],
    ['task-max-async', undefined],
    ['task-max-async', ['5']],
    ['task-default-timeout-seconds', 0],
    ['task-max-timeout-seconds', '0'],
  ])('%s refuses %j', (name, value) => {
    expect(() => parseSetting(name, value)).toThrow(InvalidSettingError)
  })

  it('is refused with its name, the given value and its range', () => {
    const range = 'an integer from -1 to 100 (-1: no limit)'
    expect(messageOf(() => parseSetting('task-max-async', 101))).toBe(
      `Setting task-max-async: got 101, expected ${range}.`,
    )
    expect(messageOf(() => parseSetting('task-max-timeout-seconds', '0'))).toContain('other than 0 (-1: none)')
  })

  it('that does not exist is refused with the names of those that do', () => {
    const message = messageOf(() => parseSetting('task-max' as SettingName, 5))
    for (const name of Object.keys(settingDefinitions)) expect(message).toContain(name)
  })
})

describe("the manager's own limit", () => {
  it.each([-1, 0, 1, 100_000])('may be %i', (max) => {
    expect(() => checkOption(max, taskLimit, ['options', 'maxAsyncTasks'])).not.toThrow()
  })

  it.each([-2, 1.5, NaN, Infinity])('may not be %d', (max) => {
    expect(messageOf(() => checkOption(max, taskLimit, ['options', 'maxAsyncTasks']))).toContain(
      'Setting maxAsyncTasks',
    )
  })
})
