/** The checks of options: names, types, contents and ranges. */
import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { InvalidInputError, InvalidSettingError } from '../../../src/errors.js'
import {
  aBoolean,
  aClock,
  aFunction,
  aName,
  anInspector,
  aSecret,
  aText,
  checkOptions,
  integerFrom,
  limitFrom,
  listOf,
  numberAbove0,
  numberFrom,
  oneOf,
  optionsOf,
  optionType,
  orMinusOne,
  pickOptions,
  recordOf,
  required,
  someOf,
  withDefault,
  withDefaults,
  type OptionType,
} from '../../../src/protocol/option-checks.js'
import { aTool } from '../../../src/protocol/tool-option.js'

const check = (type: OptionType, value: unknown) => () => checkOptions({ it: value }, { it: type })

describe('a number', () => {
  it.each([
    [numberFrom(1), [1, 1.5]],
    [integerFrom(1), [1, 2]],
    [limitFrom(1), [1, 1.5, Infinity]],
  ])('may be its minimum or more: %j', (type, values) => {
    for (const value of values) expect(check(type, value)).not.toThrow()
  })

  it.each([0.5, -1, NaN, Infinity, '5', null])('may not be %j', (value) => {
    expect(check(numberFrom(1), value)).toThrow(InvalidSettingError)
    expect(check(numberFrom(1), value)).toThrow(/^Setting it: got .*, expected a number >= 1\.$/)
  })

  it('is named by its path among the options', () => {
    const types = { retry: optionsOf({ initialMs: numberFrom(1) }) }
    expect(() => checkOptions({ retry: { initialMs: 0 } }, types)).toThrow('Setting retry.initialMs: got 0')
  })
})

describe('a value of another type', () => {
  it.each<[OptionType, unknown, string]>([
    [aFunction, 5, 'options.it: got 5, expected a function.'],
    [aFunction, null, 'options.it: got null, expected a function.'],
    [required(aFunction), undefined, 'options.it: got undefined, expected a function.'],
    [aName, '', 'options.it: got "", expected a string of at least 1 character.'],
    [aSecret, 42, 'options.it: got "(not shown)", expected a string.'],
    [aClock, { now: () => 0 }, 'options.it: got {}, expected a clock with now, setTimeout, clearTimeout.'],
    [anInspector, {}, 'options.it: got {}, expected a function, or an observer with a method next.'],
    [
      listOf(aTool),
      [{ name: 'a' }],
      'options.it[0]: got {"name":"a"}, expected a tool: { name, execute, inputSchema?: a zod schema }.',
    ],
    [
      aTool,
      { name: 'a', execute: () => undefined, inputSchema: { type: 'object' } },
      'expected a tool: { name, execute, inputSchema?: a zod schema }.',
    ],
    [
      listOf(aTool),
      [{ name: 'a', execute: () => undefined, timeout: 5 }],
      'options.it[0].timeout: got 5, expected one of the names name, execute, description, inputSchema, describe.',
    ],
    [listOf(aName), ['a', undefined], 'options.it[1]: got undefined, expected a string'],
    [listOf(aName), 'a', 'options.it: got "a", expected an array.'],
    [recordOf(aFunction), { run: 1 }, 'options.it.run: got 1, expected a function.'],
    [recordOf(aFunction), [], 'options.it: got an empty array, expected an object.'],
    [optionsOf({ ms: aName }), { m: 1 }, 'options.it.m: got 1, expected a known name; the nearest is ms.'],
  ])('is refused with its field, value and what was expected: %#', (type, value, message) => {
    expect(check(type, value)).toThrow(InvalidInputError)
    expect(check(type, value)).toThrow(message)
  })
})

it.each<[OptionType, unknown, string]>([
  [numberFrom(1, 'a number from 1 to 9', 9), 10, 'Setting it: got 10, expected a number from 1 to 9.'],
  [integerFrom(1, 'an integer from 1 to 9', 9), 10, 'Setting it: got 10, expected an integer from 1 to 9.'],
  [numberAbove0('a number > 0'), 0, 'Setting it: got 0, expected a number > 0.'],
  [orMinusOne(numberFrom(1), 'a number >= 1, or -1'), 0, 'Setting it: got 0, expected a number >= 1, or -1.'],
  [oneOf(['a', 'b', 'c']), 'd', `options.it: got "d", expected 'a', 'b' or 'c'.`],
  [aText('a letter', /^[a-z]$/), 'ab', 'options.it: got "ab", expected a letter.'],
  [someOf(aName), [], 'options.it: got an empty array, expected an array of at least one value.'],
  [recordOf(aSecret), { key: 5 }, 'options.it.key: got "(not shown)", expected a string.'],
])('the error about a value names what was expected: %#', (type, value, message) => {
  expect(check(type, value)).toThrow(message)
})

describe('an object in options', () => {
  const type = optionsOf({ inner: optionsOf({ ms: required(numberFrom(1)) }), name: aName })

  it('has an error about an unknown name first, as far outside as possible', () => {
    expect(check(type, { inner: { m: 1 }, nam: 1 })).toThrow('options.it.nam: got 1, expected a known name')
    expect(check(type, { inner: { m: 1 }, name: '' })).toThrow('options.it.inner.m: got 1, expected a known name')
    expect(check(type, { inner: {}, name: '' })).toThrow('Setting it.inner.ms: got undefined, expected a number >= 1.')
  })

  it('may have undefined for an absent value', () => {
    expect(check(type, { inner: undefined })).not.toThrow()
  })
})

it('defaults replace absent values only, also of fields that a class inherits', () => {
  class Given {
    get name() {
      return 'given'
    }
  }
  const types = { name: withDefault(aName, 'default'), isOn: withDefault(aBoolean, true), other: aName }
  const absent: { name?: string; isOn?: boolean; other?: string } = {}
  expect(withDefaults(absent, types)).toEqual({ name: 'default', isOn: true })
  expect(withDefaults({ ...absent, isOn: false, other: 'x' }, types)).toEqual({
    name: 'default',
    isOn: false,
    other: 'x',
  })
  expect(withDefaults(new Given() as typeof absent, types)).toEqual({ name: 'given', isOn: true })
})

it('the schema of an option is built when a value is given', () => {
  const build = vi.fn(() => z.string())
  const types = { it: optionType('a string', build) }
  checkOptions({}, types)
  expect(build).not.toHaveBeenCalled()
  checkOptions({ it: 'a' }, types)
  checkOptions({ it: 'b' }, types)
  expect(build).toHaveBeenCalledOnce()
})

it('undefined counts as absent', () => {
  expect(check(aFunction, undefined)).not.toThrow()
})

type Given = Readonly<Record<string, unknown>>

describe('an unknown name', () => {
  const types = { token: aSecret, onError: aFunction }

  it('is refused with the nearest known one, also when its value is undefined', () => {
    const message = 'options.onEror: got undefined, expected a known name; the nearest is onError.'
    expect(() => checkOptions<Given>({ onEror: undefined }, types)).toThrow(message)
  })

  it('is refused without its text, which may be a secret', () => {
    const message = 'options.tokne: got "(not shown)", expected a known name; the nearest is token.'
    expect(() => checkOptions<Given>({ tokne: 'geheim' }, types)).toThrow(message)
  })

  it.each([null, undefined, 5, 'x', []])('%j is no object', (options) => {
    expect(() => checkOptions(options as never, types)).toThrow(/^options: got .*, expected an object\.$/)
  })
})

it('options can be picked from an object that has more', () => {
  expect(pickOptions({ token: 'a', other: 1 }, { token: aSecret, onError: aFunction })).toEqual({ token: 'a' })
})
