/** Validates the options of a race. Errors name the field, the received value and the expected one. */
import { InvalidInputError } from '../errors.js'
import { checkOptionNames } from '../protocol/option-checks.js'
import { CLOCK } from './race-clock.js'
import { CRASH } from './race-life.js'
import type { RaceActors, RaceOptions } from './race-options.js'

/** The numeric options, with the minimum of each. */
const numbers = {
  numRuns: 1,
  maxOrders: 1,
  startTime: 0,
  timeoutMs: 0,
  drainMs: 0,
  maxEvents: 1,
  settleTicks: 1,
} as const satisfies Partial<Record<keyof RaceOptions<unknown>, number>>

const known: readonly string[] = [
  ...['name', 'source', 'setup', 'actors', 'invariants', 'atEnd', 'teardown', 'mode', 'inputs', 'seed', 'path'],
  ...['endOnFailure', 'verbose', 'deadlines', 'order', 'input', 'crashes', 'disk'],
  ...Object.keys(numbers),
]

/** @throws InvalidInputError for the first invalid field */
export function checkRaceOptions<World, Input, Disk>(options: RaceOptions<World, Input, Disk>): void {
  const fields: unknown = options
  checkOptionNames(fields, known)
  const expect = (name: string, isValid: boolean, expected: string): void => {
    if (!isValid) throw new InvalidInputError(`options.${name}`, fields[name], expected)
  }
  const optional = (name: string, type: string, expected: string): void =>
    expect(name, fields[name] === undefined || typeof fields[name] === type, expected)
  const oneOf = (name: string, values: readonly unknown[]): void =>
    expect(name, fields[name] === undefined || values.includes(fields[name]), `one of ${values.join(', ')}`)

  expect('setup', typeof fields['setup'] === 'function', 'a function that builds the world of a run')
  const { actors } = fields
  expect(
    'actors',
    typeof actors === 'function' || (typeof actors === 'object' && actors !== null),
    'an object with the actors by name, or a function that returns such an object',
  )
  if (typeof actors === 'object') checkRaceActors(actors, fields['crashes'])
  for (const name of ['invariants', 'atEnd'] as const) checkChecks(name, fields[name])
  const { source } = fields
  expect(
    'source',
    source === undefined || (typeof source === 'object' && source !== null && 'module' in source && 'name' in source),
    '{ module, name }',
  )
  optional('teardown', 'function', 'a function')
  optional('disk', 'function', 'a function that returns the data that survives a crash')
  const { crashes } = fields
  const isCount = Number.isInteger(crashes) && Number(crashes) >= 0
  expect('crashes', crashes === undefined || typeof crashes === 'boolean' || isCount, 'true, false, or an integer >= 0')
  optional('name', 'string', 'a string')
  optional('path', 'string', 'a string: the path that a failure printed')
  optional('endOnFailure', 'boolean', 'true or false')
  oneOf('mode', ['random', 'exhaustive'])
  optional('deadlines', 'boolean', 'true or false')
  oneOf('verbose', [false, true, 0, 1, 2])
  expect('seed', fields['seed'] === undefined || Number.isInteger(fields['seed']), 'an integer')
  for (const [name, least] of Object.entries(numbers)) {
    const value = fields[name]
    expect(name, value === undefined || (typeof value === 'number' && value >= least), `a number >= ${least}`)
  }
  if (fields['mode'] === 'exhaustive') {
    for (const name of ['inputs', 'seed', 'path', 'numRuns'] as const) {
      expect(name, fields[name] === undefined, 'undefined in exhaustive mode, which runs every order once')
    }
  }
}

function checkChecks(name: string, checks: unknown): void {
  if (checks === undefined) return
  if (typeof checks !== 'object' || checks === null) {
    throw new InvalidInputError(`options.${name}`, checks, 'an object with functions by name')
  }
  for (const [key, check] of Object.entries(checks)) {
    if (typeof check !== 'function') throw new InvalidInputError(`options.${name}.${key}`, check, 'a function')
  }
}

/**
 * @param crashes the value of the option `crashes`
 * @throws InvalidInputError for the first invalid actor or step
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
