/** The checks of options: names, types, contents and ranges. */
import { describe, expect, it } from 'vitest'
import { InvalidInputError, InvalidSettingError } from '../../../src/errors.js'
import {
  aClock,
  aFunction,
  aName,
  anInspector,
  aSecret,
  aTool,
  checkOptions,
  integerFrom,
  limitFrom,
  listOf,
  numberFrom,
  optionsOf,
  pickOptions,
  recordOf,
  required,
  type OptionType,
} from '../../../src/protocol/option-checks.js'

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
