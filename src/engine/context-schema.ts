/** The schema of the context that a subagent takes: a launch checks it once, before its task is registered. */
import type { z } from 'zod'
import { InvalidInputError } from '../errors.js'
import { MAX_LEVELS, toWholePlainData } from '../json/plain-data.js'
import { parseInput } from '../protocol/parse.js'
import type { FlatRunner, RunInput, Runner } from './runner.js'
import { flatRunner } from './definition.js'

type Params = RunInput['params']

/**
 * Checks `params.context` by the schema of the runner. Without a context, an empty object is checked.
 * @param field what errors call the params
 * @returns the params, with what the schema returns as `context`
 * @throws InvalidInputError for the first field that does not match
 */
export function checkedParams(
  { contextSchema }: { readonly contextSchema?: z.ZodType },
  params: Params,
  field = 'params',
): Params {
  if (contextSchema === undefined) return params
  const { context: given = {} } = params ?? {}
  const context: unknown = parseInput(contextSchema, given, `${field}.context`)
  const checked = toWholePlainData({ ...params, context })
  if (checked !== undefined) return checked
  throw new InvalidInputError(`${field}.context`, given, `a value of at most ${MAX_LEVELS} levels`)
}

/** The runner for a launch whose context was already checked. */
export function withoutContextSchema(runner: Runner): FlatRunner {
  const { contextSchema: _, ...rest } = flatRunner(runner)
  return rest
}
