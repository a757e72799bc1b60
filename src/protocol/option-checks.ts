/**
 * Validation of options when they are given: names, types, functions and ranges. Every public function that takes options has a table
 * of their types. Tables and plain functions, because building schemas made importing the core slower.
 */
import { InvalidInputError, InvalidSettingError } from '../errors.js'
import { expectedName } from '../text/nearest-name.js'

/** A check of an option's value. */
export interface OptionType {
  /** The expected value, for errors. */
  readonly expected: string
  readonly accepts: (value: unknown) => boolean
  /** Whether the option must be given. */
  readonly isRequired?: boolean
  /** Whether a wrong value is an InvalidSettingError; otherwise it is an InvalidInputError. */
  readonly isNumber?: boolean
  /** Whether errors do not show the value. */
  readonly isSecret?: boolean
  /** Checks the content of an accepted value. `path` names the value in errors. */
  readonly checkContent?: (value: unknown, path: readonly string[]) => void
}

type NameOf<Options> = Options extends unknown ? keyof Options : never

/** A type for each option: the compiler reports one that is missing. */
export type OptionTypes<Options> = { readonly [Name in NameOf<Options>]-?: OptionType }

/**
 * Checks options of callers without types.
 * @param path the name of the options in errors
 * @throws InvalidInputError for an unknown name, with the nearest known one, and for a missing or wrong value;
 *   InvalidSettingError for a number out of its range
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
 * @throws InvalidInputError for an unknown name, with the nearest known one, and for anything but an object
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
  // A setting is known by its name alone.
  if (type.isNumber === true) throw new InvalidSettingError(path.slice(1).join('.'), received, type.expected)
  throw new InvalidInputError(path.join('.'), received, type.expected)
}

/** Returns the options of a table from an object that may have others. */
export function pickOptions<Options>(from: object, types: OptionTypes<Options>): Options {
  return Object.fromEntries(Object.entries(from).filter(([name]) => Object.hasOwn(types, name))) as Options
}

/** Replaces a value that may be a secret. */
const HIDDEN = '(not shown)'

/** Text under a misspelt name may be a secret. */
const shown = (value: unknown): unknown => (typeof value === 'string' || isRecord(value) ? HIDDEN : value)

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isFunction = (value: unknown): boolean => typeof value === 'function'

/** Checked by the code that uses it. */
export const anything: OptionType = { expected: 'a value', accepts: () => true }
export const aFunction: OptionType = { expected: 'a function', accepts: isFunction }
export const aBoolean: OptionType = { expected: 'true or false', accepts: (value) => typeof value === 'boolean' }
export const aString: OptionType = { expected: 'a string', accepts: (value) => typeof value === 'string' }
/** Not the empty string. */
export const aName: OptionType = {
  expected: 'a string of at least 1 character',
  accepts: (value) => typeof value === 'string' && value !== '',
}
export const aSecret: OptionType = { ...aString, isSecret: true }
/** Its content is not checked. */
export const anObject: OptionType = { expected: 'an object', accepts: isRecord }

/** An option that must be given. */
export const required = (type: OptionType): OptionType => ({ ...type, isRequired: true })

/** A finite number of at least `least`. */
export const numberFrom = (least: number): OptionType => ({
  expected: `a number >= ${least}`,
  accepts: (value) => Number.isFinite(value) && (value as number) >= least,
  isNumber: true,
})

/** The same, or Infinity. */
export const limitFrom = (least: number): OptionType => ({
  expected: `a number >= ${least}`,
  accepts: (value) => typeof value === 'number' && value >= least,
  isNumber: true,
})

/** An integer of at least `least`. */
export const integerFrom = (least: number): OptionType => ({
  expected: `an integer >= ${least}`,
  accepts: (value) => Number.isInteger(value) && (value as number) >= least,
  isNumber: true,
})

/** A port of this machine; 0 picks a free one. */
export const aPort: OptionType = {
  expected: 'an integer from 0 to 65535',
  accepts: (value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 65_535,
  isNumber: true,
}

/** An object, or an instance of a class, with these methods. */
export const objectWith = (expected: string, ...methods: readonly string[]): OptionType => ({
  expected: `${expected} with ${methods.join(', ')}`,
  accepts: (value) =>
    typeof value === 'object' &&
    value !== null &&
    methods.every((method) => isFunction((value as Record<string, unknown>)[method])),
})

export const aClock = objectWith('a clock', 'now', 'setTimeout', 'clearTimeout')
/** A store that a manager can use. */
export const aStore: OptionType = {
  ...objectWith('a store', 'open', 'write', 'close'),
  expected: 'a store with open, write and close; one on a server is opened with `await openStore(store)`',
}
export const anEngine = objectWith('an engine', 'start')
/** A machine of XState. */
export const aMachine = objectWith('a machine', 'provide')
export const anInspector: OptionType = {
  expected: 'a function, or an observer with a method next',
  accepts: (value) => isFunction(value) || objectWith('', 'next').accepts(value),
}

/** Options inside options. */
export const optionsOf = <Options>(types: OptionTypes<Options>): OptionType => ({
  ...anObject,
  checkContent: (value, path) => checkOptions(value as Options, types, path),
})

/** A list of such values. */
export const listOf = (type: OptionType): OptionType => ({
  expected: 'an array',
  accepts: Array.isArray,
  checkContent: (value, path) =>
    (value as unknown[]).forEach((item, index) =>
      checkValue(item, required(type), [...path.slice(0, -1), `${path.at(-1) ?? ''}[${index}]`]),
    ),
})

/** The same, with at least one value. */
export const someOf = (type: OptionType): OptionType => ({
  ...listOf(type),
  expected: 'an array of at least one value',
  accepts: (value) => Array.isArray(value) && value.length > 0,
})

/** An object with such values. */
export const recordOf = (type: OptionType): OptionType => ({
  ...anObject,
  checkContent: (value, path) => {
    for (const [name, item] of Object.entries(value as object)) checkValue(item, required(type), [...path, name])
  },
})

const aZodSchema = objectWith('a zod schema', 'safeParseAsync')

/** Checks options, or an instance of a class, which may have other fields. */
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
  // The tools for a model, which an instance may have too, also describe calls.
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
