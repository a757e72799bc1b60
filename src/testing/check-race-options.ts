/** Validates the options of a race. Errors name the field, the received value and the expected one. */
import { z } from 'zod'
import { InvalidInputError } from '../errors.js'
import {
  aBoolean,
  aFunction,
  anything,
  aString,
  checkOptions,
  custom,
  oneOf,
  optionType,
  required,
  type OptionTypes,
} from '../protocol/option-checks.js'
import { CLOCK } from './race-clock.js'
import { CRASH } from './race-life.js'
import type { RaceActors, RaceOptions } from './race-options.js'

const isFunction = (value: unknown): boolean => typeof value === 'function'
const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
const atLeast = (least: number) =>
  custom(`a number >= ${least}`, (value) => typeof value === 'number' && value >= least)
const checks = optionType('an object with functions by name', (error) =>
  z.object({}, error).catchall(aFunction.schema()),
)

/** `replayRace` takes the same options, and two more. */
type Given = RaceOptions<unknown> & { readonly order?: unknown; readonly input?: unknown }

const optionTypes: OptionTypes<Given> = {
  name: aString,
  source: custom('{ module, name }', (value) => isObject(value) && 'module' in value && 'name' in value),
  setup: required(custom('a function that builds the world of a run', isFunction)),
  actors: required(
    custom(
      'an object with the actors by name, or a function that returns such an object',
      (value) => isFunction(value) || isObject(value),
    ),
  ),
  invariants: checks,
  atEnd: checks,
  teardown: aFunction,
  mode: oneOf(['random', 'exhaustive'], 'one of random, exhaustive'),
  inputs: anything,
  seed: custom('an integer', Number.isInteger),
  path: optionType('a string: the path that a failure printed', (error) => z.string(error)),
  endOnFailure: aBoolean,
  verbose: optionType('one of false, true, 0, 1, 2', (error) => z.literal([false, true, 0, 1, 2], error)),
  deadlines: aBoolean,
  order: anything,
  input: anything,
  crashes: optionType('true, false, or an integer >= 0', (error) =>
    z.union([z.boolean(), z.int().min(0, { abort: true })], error),
  ),
  disk: custom('a function that returns the data that survives a crash', isFunction),
  numRuns: atLeast(1),
  maxOrders: atLeast(1),
  startTime: atLeast(0),
  timeoutMs: atLeast(0),
  drainMs: atLeast(0),
  maxEvents: atLeast(1),
  settleTicks: atLeast(1),
}

/** @throws INVALID_INPUT for the first invalid field */
export function checkRaceOptions<World, Input, Disk>(options: RaceOptions<World, Input, Disk>): void {
  const fields = options as unknown as Given
  checkOptions<Given>(fields, optionTypes)
  const { actors, crashes, mode } = fields
  if (typeof actors === 'object') checkRaceActors(actors, crashes)
  if (mode !== 'exhaustive') return
  for (const name of ['inputs', 'seed', 'path', 'numRuns'] as const) {
    if (fields[name] === undefined) continue
    const expected = 'undefined in exhaustive mode, which runs every order once'
    throw new InvalidInputError(`options.${name}`, fields[name], expected)
  }
}

/**
 * @param crashes the value of the option `crashes`
 * @throws INVALID_INPUT for the first invalid actor or step
 */
export function checkRaceActors(actors: unknown, crashes: unknown): asserts actors is RaceActors<unknown> {
  if (typeof actors !== 'object' || actors === null) {
    throw new InvalidInputError('actors', actors, 'an object with the actors by name')
  }
  const all = Object.entries(actors)
  if (all.length === 0) throw new InvalidInputError('actors', actors, 'at least one actor')
  for (const [name, actor] of all as [string, unknown][]) {
    const taken = ['', CLOCK, ...(crashes === undefined || crashes === false ? [] : [CRASH])]
    if (taken.includes(name)) {
      throw new InvalidInputError('actors', name, `a name other than ${taken.map((one) => `'${one}'`).join(' or ')}`)
    }
    if (typeof actor === 'function') continue
    if (!Array.isArray(actor)) {
      throw new InvalidInputError(`actors.${name}`, actor, 'a list of steps, or a generator function')
    }
    for (const [index, step] of (actor as unknown[]).entries()) {
      const run: unknown = typeof step === 'object' && step !== null && 'run' in step ? step.run : step
      if (typeof run !== 'function') {
        throw new InvalidInputError(`actors.${name}[${index}]`, step, 'a function, or { label, run }')
      }
    }
  }
}
