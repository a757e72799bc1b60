/**
 * Validation of the options of public functions: names, types, functions and ranges. Each such function has a table of the types of its options.
 * The tables are plain objects, because creating schemas made the import of the core slower.
 */
import { InvalidInputError, InvalidSettingError } from '../errors.js'
import { expectedName } from '../text/nearest-name.js'

/** The check of one option. */
export interface OptionType {
  /** Describes the expected value, for errors. */
  readonly expected: string
  readonly accepts: (value: unknown) => boolean
  /** Whether the option must be given. */
  readonly isRequired?: boolean
  /** Whether a wrong value throws an InvalidSettingError. Otherwise it throws an InvalidInputError. */
  readonly isNumber?: boolean
  /** Whether the option is a secret, so that errors do not show its value. */
  readonly isSecret?: boolean
  /** Checks the content of an accepted value. `path` is the name of the value in errors. */
  readonly checkContent?: (value: unknown, path: readonly string[]) => void
}

type NameOf<Options> = Options extends unknown ? keyof Options : never

/** A table with a type for each option. The compiler reports an option that is missing in the table. */
export type OptionTypes<Options> = { readonly [Name in NameOf<Options>]-?: OptionType }

/**
 * Checks options. TypeScript checks them as well, but not for callers in JavaScript.
 * @param path the name of the options in errors
 * @throws InvalidInputError for an unknown name, and names the nearest known one
 * @throws InvalidInputError for a missing value and for a value of a wrong type
 * @throws InvalidSettingError for a number out of its range
 */
export function checkOptions<Options>(
  options: Options,
  types: OptionTypes<Options>,
  path: readonly string[] = ['options'],
): void {
  checkOptionNames(options, Object.keys(types), path)
  for (const [name, type] of Object.entries<OptionType>(types)) checkValue(options[name], type, [...path, name])
}

/**
 * Checks only the names of options.
 * @throws InvalidInputError for an unknown name, and names the nearest known one
 * @throws InvalidInputError for a value that is not an object
 */
export function checkOptionNames(
  options: unknown,
  known: readonly string[],
  path: readonly string[] = ['options'],
): asserts options is Readonly<Record<string, unknown>> {
  if (!isRecord(options)) throw new InvalidInputError(path.join('.'), options, 'an object')
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue
    throw new InvalidInputError([...path, name].join('.'), shown(options[name]), expectedName(name, known))
  }
}

function checkValue(value: unknown, type: OptionType, path: readonly string[]): void {
  if (value === undefined && type.isRequired !== true) return
  if (type.accepts(value)) {
    type.checkContent?.(value, path)
    return
  }
  const received = type.isSecret === true && value !== undefined ? HIDDEN : value
  // An error about a setting shows its name without `options.`.
  if (type.isNumber === true) throw new InvalidSettingError(path.slice(1).join('.'), received, type.expected)
  throw new InvalidInputError(path.join('.'), received, type.expected)
}

/** Returns the options that a table has, from an object that may have others. */
export function pickOptions<Options>(from: object, types: OptionTypes<Options>): Options {
  return Object.fromEntries(Object.entries(from).filter(([name]) => Object.hasOwn(types, name))) as Options
}

/** Shown in errors in place of a value that may be a secret. */
const HIDDEN = '(not shown)'

/** The value of an unknown option may be a secret whose name was misspelt. */
const shown = (value: unknown): unknown => (typeof value === 'string' || isRecord(value) ? HIDDEN : value)

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isFunction = (value: unknown): boolean => typeof value === 'function'

/** Accepts any value. The code that uses the value checks it. */
export const anything: OptionType = { expected: 'a value', accepts: () => true }
export const aFunction: OptionType = { expected: 'a function', accepts: isFunction }
export const aBoolean: OptionType = { expected: 'true or false', accepts: (value) => typeof value === 'boolean' }
export const aString: OptionType = { expected: 'a string', accepts: (value) => typeof value === 'string' }
/** A string that is not empty. */
export const aName: OptionType = {
  expected: 'a string of at least 1 character',
  accepts: (value) => typeof value === 'string' && value !== '',
}
export const aSecret: OptionType = { ...aString, isSecret: true }
/** An object whose content is not checked. */
export const anObject: OptionType = { expected: 'an object', accepts: isRecord }

/** The same type for an option that must be given. */
export const required = (type: OptionType): OptionType => ({ ...type, isRequired: true })

/** A finite number >= `least`. */
export const numberFrom = (least: number): OptionType => ({
  expected: `a number >= ${least}`,
  accepts: (value) => Number.isFinite(value) && (value as number) >= least,
  isNumber: true,
})

/** A number >= `least`, or Infinity. */
export const limitFrom = (least: number): OptionType => ({
  expected: `a number >= ${least}`,
  accepts: (value) => typeof value === 'number' && value >= least,
  isNumber: true,
})

/** An integer >= `least`. */
export const integerFrom = (least: number): OptionType => ({
  expected: `an integer >= ${least}`,
  accepts: (value) => Number.isInteger(value) && (value as number) >= least,
  isNumber: true,
})

/** A port of this machine. With 0 the system picks a free one. */
export const aPort: OptionType = {
  expected: 'an integer from 0 to 65535',
  accepts: (value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 65_535,
  isNumber: true,
}

/** An object, or an instance of a class, that has these methods. */
export const objectWith = (expected: string, ...methods: readonly string[]): OptionType => ({
  expected: `${expected} with ${methods.join(', ')}`,
  accepts: (value) =>
    typeof value === 'object' &&
    value !== null &&
    methods.every((method) => isFunction((value as Record<string, unknown>)[method])),
})

export const aClock = objectWith('a clock', 'now', 'setTimeout', 'clearTimeout')
/** A store that a manager can use: it has the methods `open`, `write` and `close`. */
export const aStore: OptionType = {
  ...objectWith('a store', 'open', 'write', 'close'),
  expected: 'a store with open, write and close; one on a server is opened with `await openStore(store)`',
}
export const anEngine = objectWith('an engine', 'start')
/** A state machine of XState. */
export const aMachine = objectWith('a machine', 'provide')
export const anInspector: OptionType = {
  expected: 'a function, or an observer with a method next',
  accepts: (value) => isFunction(value) || objectWith('', 'next').accepts(value),
}

/** An object that is checked by a table of its own. */
export const optionsOf = <Options>(types: OptionTypes<Options>): OptionType => ({
  ...anObject,
  checkContent: (value, path) => checkOptions(value as Options, types, path),
})

/** A list of values of one type. */
export const listOf = (type: OptionType): OptionType => ({
  expected: 'an array',
  accepts: Array.isArray,
  checkContent: (value, path) =>
    (value as unknown[]).forEach((item, index) =>
      checkValue(item, required(type), [...path.slice(0, -1), `${path.at(-1) ?? ''}[${index}]`]),
    ),
})

/** A list of at least one value of one type. */
export const someOf = (type: OptionType): OptionType => ({
  ...listOf(type),
  expected: 'an array of at least one value',
  accepts: (value) => Array.isArray(value) && value.length > 0,
})

/** An object whose values have one type. */
export const recordOf = (type: OptionType): OptionType => ({
  ...anObject,
  checkContent: (value, path) => {
    for (const [name, item] of Object.entries(value as object)) checkValue(item, required(type), [...path, name])
  },
})

const aZodSchema = objectWith('a zod schema', 'safeParseAsync')

/** Checks the fields of an object that may also have fields that the table does not name, such as an instance of a class. */
export function checkEntry<Options>(value: object, types: OptionTypes<Options>, path: readonly string[]): void {
  const isPlain = [Object.prototype, null].includes(Object.getPrototypeOf(value) as object | null)
  if (isPlain) checkOptionNames(value, Object.keys(types), path)
  for (const [name, type] of Object.entries<OptionType>(types)) {
    checkValue((value as Readonly<Record<string, unknown>>)[name], type, [...path, name])
  }
}

const toolTypes = {
  name: required(aName),
  execute: required(aFunction),
  description: anything,
  inputSchema: anything,
  // Tools of `agent-tasks/tools` have this function, too. It describes a call in words.
  describe: anything,
}

/** A tool with a name, and a function that runs it. */
export const aTool: OptionType = {
  expected: 'a tool: { name, execute, inputSchema?: a zod schema }',
  accepts: (value) =>
    isRecord(value) &&
    aName.accepts(value['name']) &&
    isFunction(value['execute']) &&
    (value['inputSchema'] === undefined || aZodSchema.accepts(value['inputSchema'])),
  checkContent: (value, path) => checkEntry(value as object, toolTypes, path),
}
