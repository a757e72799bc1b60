/** Validates the runners that users pass: a function, a definition, or nested definitions. Converts each of them to a single definition. */
import type { z } from 'zod'
import type { StartRate } from '../../machines/records.js'
import { deprecate } from '../deprecation.js'
import { InvalidInputError } from '../errors.js'
import { aBudget } from '../protocol/budget.js'
import {
  aBoolean,
  aFunction,
  aString,
  checkEntry,
  integerFrom,
  numberFrom,
  objectWith,
  optionsOf,
  required,
  type OptionType,
  type OptionTypes,
} from '../protocol/option-checks.js'
import { MAX_RATE_LIMIT } from '../protocol/async-tasks.js'
import { aRetryPolicy } from '../protocol/retry-policy.js'
import type { FlatRunner, RunFunction, Runner, RunnerDefinition, RunResult } from './runner.js'

/** The fields that a subagent has in addition to those of a runner. */
interface Named {
  readonly name?: string
  readonly description?: string
  readonly contextSchema?: z.ZodType
}

/** The maximum depth of nested definitions. Definitions that are nested more deeply probably contain themselves. */
const MAX_LEVELS = 10

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
const hasRun = (value: unknown): boolean =>
  isObject(value) && 'run' in value && (typeof value.run === 'function' || isObject(value.run))

/** A definition or a function. */
export const aRunnable: OptionType = {
  expected: 'a function, or { run }',
  accepts: (value) => typeof value === 'function' || hasRun(value),
  checkContent: (value, path) => {
    const at = [...path]
    for (let level = value; typeof level !== 'function'; level = (level as RunnerDefinition).run) {
      if (at.length === path.length + MAX_LEVELS) {
        throw new InvalidInputError(
          at.join('.'),
          level,
          `a function, because definitions may be nested at most ${MAX_LEVELS} levels deep`,
        )
      }
      checkEntry(level as object, fieldTypes, at)
      at.push('run')
    }
    checkDurable(value, path)
  },
}

const aRateLimit: OptionType = {
  expected: `an integer from 1 to ${MAX_RATE_LIMIT}`,
  accepts: (value) => integerFrom(1).accepts(value) && (value as number) <= MAX_RATE_LIMIT,
  isNumber: true,
}

const fieldTypes: OptionTypes<RunnerDefinition & Named> = {
  run: required({ expected: aRunnable.expected, accepts: aRunnable.accepts }),
  name: aString,
  description: aString,
  contextSchema: objectWith('a zod schema', 'safeParse'),
  retry: aRetryPolicy,
  budget: aBudget,
  maxConcurrent: integerFrom(1),
  rate: optionsOf<StartRate>({ limit: required(aRateLimit), perMs: required(numberFrom(1)) }),
  durable: aBoolean,
  releasesSlot: aBoolean,
  runsElsewhere: aBoolean,
  survivesHost: aBoolean,
  canResume: aFunction,
  isBound: aBoolean,
  foundAs: aString,
  isUnique: aBoolean,
  whyNotContinue: aFunction,
  takesMessages: aBoolean,
}

const FIELDS = Object.keys(fieldTypes) as (keyof typeof fieldTypes)[]

/** These flags used to be properties of functions, before a runner could be an object. */
const FUNCTION_FLAGS = ['survivesHost', 'canResume', 'isBound', 'foundAs', 'isUnique', 'takesMessages'] as const

/**
 * Converts a runner to a single definition. If definitions are nested, the outer fields take precedence, unless they are undefined.
 * @returns a plain object with own fields only, so that a wrapper can spread it
 */
export function flatRunner<Input, Result extends RunResult>(
  runner: Runner<Input, Result>,
): FlatRunner<Input, Result> & Named {
  if (isFunction(runner)) return { run: runner, ...flagsOf(runner) }
  const { run } = runner
  const merged: Record<string, unknown> = { ...flatRunner(run) }
  for (const field of FIELDS) {
    // A definition may be an instance of a class. Then fields may be inherited, and functions may use `this`.
    const value: unknown = (runner as { readonly [Field in typeof field]?: unknown })[field]
    if (value === undefined || (field === 'run' && !isFunction(run))) continue
    merged[field] = typeof value === 'function' ? (value.bind(runner) as unknown) : value
  }
  return merged as unknown as FlatRunner<Input, Result>
}

const isFunction = <Input, Result extends RunResult>(
  runner: Runner<Input, Result>,
): runner is RunFunction<Input, Result> => typeof runner === 'function'

type FunctionFlags = Pick<RunnerDefinition, (typeof FUNCTION_FLAGS)[number]>

function flagsOf(run: object): FunctionFlags | undefined {
  const flagged: FunctionFlags = run
  const flags = FUNCTION_FLAGS.filter((flag) => flagged[flag] !== undefined)
  if (flags.length === 0) return undefined
  deprecate(
    'AGENT_TASKS_RUNNER_FLAGS',
    `Properties of a function that a task runs (${flags.join(', ')}) will be ignored by the next version: write { run, ${flags.join(', ')} }.`,
  )
  return Object.fromEntries(flags.map((flag) => [flag, flagged[flag]]))
}

/**
 * Validates a value and converts it to a single definition.
 * @param name the name of the value in errors
 * @throws InvalidInputError for a value that is not a runner
 */
export function toFlatRunner(value: unknown, name: string): FlatRunner & Named {
  if (!aRunnable.accepts(value)) throw new InvalidInputError(name, value, aRunnable.expected)
  aRunnable.checkContent?.(value, [name])
  return flatRunner(value as Runner)
}

/** @throws InvalidInputError for a durable runner in another process, and for `releasesSlot` of a runner that is not durable */
function checkDurable(value: unknown, path: readonly string[]): void {
  const { durable, releasesSlot, survivesHost, runsElsewhere } = flatRunner(value as Runner)
  if (durable === true && (survivesHost === true || runsElsewhere === true)) {
    throw new InvalidInputError([...path, 'durable'].join('.'), durable, 'false for a run in another process')
  }
  if (releasesSlot === true && durable !== true) {
    throw new InvalidInputError([...path, 'releasesSlot'].join('.'), releasesSlot, 'false unless durable is true')
  }
}
