/**
 * Descriptions of options, and their validation. Each public function that takes options has a table with a description of each option. From it come
 * the check, the texts of errors, defaults, JSON Schemas and docs/options.md. The schema of an option is built when the option is first given, because
 * building all schemas made the first call of `createAgentTasks` 1.5 times as long.
 */
import { z } from 'zod'
import { InvalidInputError, InvalidSettingError } from '../errors.js'
import { expectedName } from '../data/nearest-name.js'
import { lazily } from './lazily.js'

/** The description of one option. Its meaning is in the TSDoc of the interface. */
export interface OptionType {
  /** Describes the expected value, for errors and docs/options.md. */
  readonly expected: string
  /** The schema. The message of its issues is what was expected. */
  readonly schema: () => z.ZodType
  /** Of an object: the descriptions of the options in it. */
  readonly types?: Readonly<Record<string, OptionType>>
  /** The value of an absent option. */
  readonly default?: unknown
  readonly isRequired?: boolean
  /** Whether only code of this package and of other runners sets the option, so that errors do not suggest it. */
  readonly isInternal?: boolean
}

type NameOf<Options> = Options extends unknown ? keyof Options : never

/** A table with a description of each option. The compiler reports an option that is missing in the table. */
export type OptionTypes<Options> = { readonly [Name in NameOf<Options>]-?: OptionType }

/**
 * Checks options. TypeScript checks them as well, but not for callers in JavaScript.
 * @param path the name of the options in errors
 * @throws INVALID_INPUT for an unknown name, and names the nearest known one
 * @throws INVALID_INPUT for a missing value and for a value of a wrong type
 * @throws INVALID_SETTING for a number out of its range
 */
export function checkOptions<Options>(
  options: Options,
  types: OptionTypes<Options>,
  path: readonly string[] = ['options'],
): void {
  checkOptionNames(options, Object.keys(types), path, suggestedOf(types))
  for (const [name, type] of Object.entries<OptionType>(types)) {
    if (options[name] !== undefined || type.isRequired === true) checkOption(options[name], type, [...path, name])
  }
}

const suggestedOf = (types: Readonly<Record<string, OptionType>>): readonly string[] =>
  Object.keys(types).filter((name) => types[name]?.isInternal !== true)

/**
 * Checks only the names of options.
 * @param suggested the names that an error may name
 * @throws INVALID_INPUT for an unknown name, and names the nearest known one
 * @throws INVALID_INPUT for a value that is not an object
 */
export function checkOptionNames(
  options: unknown,
  known: readonly string[],
  path: readonly string[] = ['options'],
  suggested: readonly string[] = known,
): asserts options is Readonly<Record<string, unknown>> {
  if (!isRecord(options)) throw new InvalidInputError(path.join('.'), options, 'an object')
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue
    throw new InvalidInputError([...path, name].join('.'), shownUnknown(options[name]), expectedName(name, suggested))
  }
}

/**
 * Checks the value of one option.
 * @param path the name of the value in errors
 */
export function checkOption(value: unknown, type: OptionType, path: readonly string[]): void {
  const issue = mainIssue(issuesOf(type.schema(), value))
  if (issue === undefined) return
  const { message, input, params = {} } = issue as Issue & { readonly params?: Params }
  if (issue.code === 'unrecognized_keys') {
    const [name = ''] = issue.keys
    const received = shownUnknown((input as Readonly<Record<string, unknown>>)[name])
    throw new InvalidInputError(pathText([...path, ...issue.path, name]), received, message)
  }
  const received = params.isSecret === true && input !== undefined ? HIDDEN : input
  const whole = [...path, ...issue.path]
  if (params.isNumber === true || isAboutNumber(issue)) {
    // An error about a setting shows its name without `options.`.
    throw new InvalidSettingError(pathText(path[0] === 'options' ? whole.slice(1) : whole), received, message)
  }
  throw new InvalidInputError(pathText(whole), received, message)
}

export const accepts = (type: OptionType, value: unknown): boolean => issuesOf(type.schema(), value).length === 0

type Issue = z.core.$ZodIssue

/** Options are checked seldom, so zod need not compile their schemas. */
const issuesOf = (schema: z.ZodType, value: unknown): readonly Issue[] =>
  schema.safeParse(value, { jitless: true, reportInput: true }).error?.issues ?? []

/** Returns the first issue, or an unknown name in an object around it. A misspelt name is also reported as missing. */
function mainIssue(issues: readonly Issue[]): Issue | undefined {
  const [first] = issues
  const [unknown] = issues
    .filter(({ code, path }) => code === 'unrecognized_keys' && path.every((key, index) => key === first?.path[index]))
    .sort((one, other) => one.path.length - other.path.length)
  const issue = unknown ?? first
  if (issue?.code !== 'invalid_union') return issue
  // An object that may also be something else: the issue is in its content.
  const inner = mainIssue(issue.errors.find((found) => found.some(isInside)) ?? [])
  return inner === undefined ? issue : { ...inner, path: [...issue.path, ...inner.path] }
}

const isInside = ({ code, path }: Issue): boolean => code === 'unrecognized_keys' || path.length > 0

/** What an issue says about a value that is checked by a function. */
interface Params {
  readonly isNumber?: boolean
  readonly isSecret?: boolean
}

function isAboutNumber(issue: Issue): boolean {
  if (issue.code === 'invalid_type') return issue.expected === 'number' || issue.expected === 'int'
  return (issue.code === 'too_small' || issue.code === 'too_big') && ['number', 'int'].includes(issue.origin)
}

const pathText = ([first, ...keys]: readonly PropertyKey[]): string =>
  keys.reduce<string>((text, key) => text + (typeof key === 'number' ? `[${key}]` : `.${String(key)}`), String(first))

type Defaulted<Types> = {
  [Name in keyof Types]: Types[Name] extends { readonly default: unknown } ? Name : never
}[keyof Types]

/** Options in which those with a default are present. */
export type WithDefaults<Options, Types> = Options & {
  readonly [Name in Defaulted<Types> & keyof Options]: NonNullable<Options[Name]>
}

/** Returns checked options with the defaults of absent ones. */
export function withDefaults<Options, Types extends OptionTypes<Options>>(
  options: Options,
  types: Types,
): WithDefaults<Options, Types> {
  const given = options as Readonly<Record<string, unknown>>
  const values = Object.entries<OptionType>(types).map(([name, type]) => [name, given[name] ?? type.default])
  return Object.fromEntries(values.filter(([, value]) => value !== undefined)) as WithDefaults<Options, Types>
}

/** Returns the options that a table has, from an object that may have others. */
export function pickOptions<Options>(from: object, types: OptionTypes<Options>): Options {
  return Object.fromEntries(Object.entries(from).filter(([name]) => Object.hasOwn(types, name))) as Options
}

/** Shown in errors in place of a value that may be a secret. */
export const HIDDEN = '(not shown)'

/** The value of an unknown option may be a secret whose name was misspelt. */
export const shownUnknown = (value: unknown): unknown => (typeof value === 'string' || isRecord(value) ? HIDDEN : value)

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isFunction = (value: unknown): boolean => typeof value === 'function'

/** Describes an option by its schema. `build` receives the message of the issues. */
export const optionType = (expected: string, build: (expected: string) => z.ZodType): OptionType => ({
  expected,
  schema: lazily(() => build(expected)),
})

export const custom = (expected: string, test: (value: unknown) => boolean, params: Params = {}): OptionType =>
  optionType(expected, (error) => z.custom(test, { error, params }))

/** Accepts any value. The code that uses the value checks it. */
export const anything = optionType('a value', () => z.any())
export const aFunction = custom('a function', isFunction)
export const aBoolean = optionType('true or false', (error) => z.boolean(error))
export const aString = optionType('a string', (error) => z.string(error))
/** A string that is not empty. */
export const aName = optionType('a string of at least 1 character', (error) => z.string(error).min(1, error))
export const aText = (expected: string, pattern: RegExp) =>
  optionType(expected, (error) => z.string(error).regex(pattern, error))
export const textOfLength = (most: number) =>
  optionType(`a string of 1 to ${most} characters`, (error) => z.string(error).min(1, error).max(most, error))
export const aSecret = custom('a string', (value) => typeof value === 'string', { isSecret: true })
/** An object whose content is not checked. */
export const anObject = custom('an object', isRecord)
export const anAbortSignal = custom('an AbortSignal', (value) => value instanceof AbortSignal)

/** The same type for an option that must be given. */
export const required = (type: OptionType) => ({ ...type, isRequired: true })

/** The same type for an option that has a default. */
export const withDefault = <Value>(type: OptionType, value: Value) => ({ ...type, default: value })

const listed = (values: readonly string[]): string =>
  values
    .map((value) => `'${value}'`)
    .join(', ')
    .replace(/, (?='[^']*'$)/, ' or ')

export const oneOf = (values: readonly string[], expected = listed(values)) =>
  optionType(expected, (error) => z.enum(values, error))

export const numberFrom = (least: number, expected = `a number >= ${least}`, most = Number.MAX_VALUE) =>
  optionType(expected, (error) => z.number(error).min(least, error).max(most, error))

export const numberAbove0 = (expected: string) => optionType(expected, (error) => z.number(error).positive(error))

/** A number, or -1 for no limit. */
export const orMinusOne = (type: OptionType, expected: string) =>
  custom(expected, (value) => value === -1 || accepts(type, value), { isNumber: true })

/** A number >= `least`, or Infinity. */
export const limitFrom = (least: number, expected = `a number >= ${least}`) =>
  custom(expected, (value) => typeof value === 'number' && value >= least, { isNumber: true })

export const integerFrom = (least: number, expected = `an integer >= ${least}`, most = Number.MAX_SAFE_INTEGER) =>
  optionType(expected, (error) => z.int(error).min(least, error).max(most, error))

/** A port of this machine. With 0 the system picks a free one. */
export const aPort = integerFrom(0, 'an integer from 0 to 65535', 65_535)

/** An object, or an instance of a class, that has these methods. */
export const objectWith = (expected: string, ...methods: readonly string[]) =>
  custom(`${expected} with ${methods.join(', ')}`, (value) => hasMethods(value, methods))

export const hasMethods = (value: unknown, methods: readonly string[]): boolean =>
  typeof value === 'object' &&
  value !== null &&
  methods.every((method) => isFunction((value as Record<string, unknown>)[method]))

export const aClock = objectWith('a clock', 'now', 'setTimeout', 'clearTimeout')
/** A store that a manager can use: it has the methods `open`, `write` and `close`. */
export const aStore = custom(
  'a store with open, write and close; one on a server is opened with `await openStore(store)`',
  (value) => hasMethods(value, ['open', 'write', 'close']),
)
export const anEngine = objectWith('an engine', 'start')
export const aMachine = objectWith('a machine', 'provide')
export const anInspector = custom(
  'a function, or an observer with a method next',
  (value) => isFunction(value) || hasMethods(value, ['next']),
)

export const optionsOf = <Options>(types: OptionTypes<Options>): OptionType => ({
  ...optionType('an object', (expected) =>
    z.strictObject(shapeOf(types), {
      error: (issue) =>
        issue.code === 'unrecognized_keys' ? expectedName(issue.keys[0] ?? '', suggestedOf(types)) : expected,
    }),
  ),
  types,
})

const shapeOf = (types: Readonly<Record<string, OptionType>>): Record<string, z.ZodType> =>
  Object.fromEntries(
    Object.entries(types).map(([name, { schema, isRequired }]) => [
      name,
      isRequired === true ? schema() : schema().optional(),
    ]),
  )

export const listOf = ({ schema }: OptionType) => optionType('an array', (error) => z.array(schema(), error))

export const someOf = ({ schema }: OptionType) =>
  optionType('an array of at least one value', (error) => z.array(schema(), error).min(1, error))

export const recordOf = ({ schema }: OptionType) =>
  optionType('an object', (error) => z.object({}, error).catchall(schema()))

/** Returns a function that finds the issues of an object. An instance of a class may also have fields that the table does not name. */
export function entryCheck<Options>(types: OptionTypes<Options>) {
  const plain = optionsOf(types).schema
  const open = lazily(() => z.object(shapeOf(types)))
  return (value: unknown, path: readonly PropertyKey[] = []): z.core.$ZodRawIssue[] => {
    const isPlain = [Object.prototype, null].includes(Object.getPrototypeOf(value) as object | null)
    const issues = issuesOf(isPlain ? plain() : open(), value) as z.core.$ZodRawIssue[]
    return issues.map((issue) => ({ ...issue, path: [...path, ...(issue.path ?? [])] }))
  }
}
