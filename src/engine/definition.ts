/** Validates the runners that users pass: a function, a definition, or nested definitions. Converts each of them to a single definition. */
import type { z } from 'zod'
import type { StartRate } from '../../machines/task-admission.js'
import {
  aBoolean,
  aFunction,
  aString,
  checkOption,
  custom,
  entryCheck,
  integerFrom,
  numberFrom,
  objectWith,
  optionsOf,
  optionType,
  required,
  type OptionType,
  type OptionTypes,
} from '../protocol/option-checks.js'
import { MAX_RATE_LIMIT, subagentTermTypes } from '../protocol/async-tasks.js'
import { aRetryPolicy } from '../protocol/retry-policy.js'
import type { ResolvedRunner, RunFunction, Runner, RunnerDefinition, RunResult } from './runner.js'

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

const aRun = custom('a function, or { run }', (value) => typeof value === 'function' || hasRun(value))

export const aRunnable = optionType(aRun.expected, () =>
  aRun.schema().check(({ value, issues }) => {
    const at: string[] = []
    for (let level: unknown = value; typeof level !== 'function'; level = (level as RunnerDefinition).run) {
      if (at.length === MAX_LEVELS) {
        const message = `a function, because definitions may be nested at most ${MAX_LEVELS} levels deep`
        issues.push({ code: 'custom', input: level, path: at, message })
        return
      }
      const found = issuesOfDefinition(level, at)
      issues.push(...found)
      if (found.length > 0) return
      at.push('run')
    }
    issues.push(...issuesOfDurable(value as Runner))
  }),
)

const internal = (type: OptionType): OptionType => ({ ...type, isInternal: true })

const fieldTypes: OptionTypes<RunnerDefinition & Named> = {
  run: required(aRun),
  name: aString,
  description: aString,
  contextSchema: objectWith('a zod schema', 'safeParse'),
  graceMs: numberFrom(0),
  retry: aRetryPolicy,
  ...subagentTermTypes,
  maxConcurrent: integerFrom(1),
  rate: optionsOf<StartRate>({
    limit: required(integerFrom(1, `an integer from 1 to ${MAX_RATE_LIMIT}`, MAX_RATE_LIMIT)),
    perMs: required(numberFrom(1)),
  }),
  durable: aBoolean,
  releasesSlot: aBoolean,
  runsElsewhere: internal(aBoolean),
  survivesHost: aBoolean,
  canResume: internal(aFunction),
  isBound: internal(aBoolean),
  foundAs: internal(aString),
  isUnique: internal(aBoolean),
  whyNotContinue: internal(aFunction),
  takesMessages: aBoolean,
}

const issuesOfDefinition = entryCheck(fieldTypes)

const FIELDS = Object.keys(fieldTypes) as (keyof typeof fieldTypes)[]

/**
 * Converts a runner to a single definition. If definitions are nested, the outer fields take precedence, unless they are undefined.
 * @returns a plain object with own fields only, so that a wrapper can spread it
 */
export function resolveRunner<Input, Result extends RunResult>(
  runner: Runner<Input, Result>,
): ResolvedRunner<Input, Result> & Named {
  if (isFunction(runner)) return { run: runner }
  const { run } = runner
  const merged: Record<string, unknown> = { ...resolveRunner(run) }
  for (const field of FIELDS) {
    // A definition may be an instance of a class. Then fields may be inherited, and functions may use `this`.
    const value: unknown = (runner as { readonly [Field in typeof field]?: unknown })[field]
    if (value === undefined || (field === 'run' && !isFunction(run))) continue
    merged[field] = typeof value === 'function' ? (value.bind(runner) as unknown) : value
  }
  return merged as unknown as ResolvedRunner<Input, Result>
}

const isFunction = <Input, Result extends RunResult>(
  runner: Runner<Input, Result>,
): runner is RunFunction<Input, Result> => typeof runner === 'function'

/**
 * Validates a value and converts it to a single definition.
 * @param name the name of the value in errors
 * @throws INVALID_INPUT for a value that is not a runner
 */
export function toFlatRunner(value: unknown, name: string): ResolvedRunner & Named {
  // A function has no fields to check, and most launches have one.
  if (typeof value !== 'function') checkOption(value, aRunnable, [name])
  return resolveRunner(value as Runner)
}

/** Finds a durable runner in another process, and `releasesSlot` of a runner that is not durable. */
function issuesOfDurable(value: Runner): z.core.$ZodRawIssue[] {
  const { durable, releasesSlot, survivesHost, runsElsewhere } = resolveRunner(value)
  if (durable === true && (survivesHost === true || runsElsewhere === true)) {
    return [{ code: 'custom', input: true, path: ['durable'], message: 'false for a run in another process' }]
  }
  if (releasesSlot !== true || durable === true) return []
  return [{ code: 'custom', input: true, path: ['releasesSlot'], message: 'false unless durable is true' }]
}
