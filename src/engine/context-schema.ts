/** Validates the context of a launch with the schema of the subagent. A launch does this once, before the task is registered. */
import type { z } from 'zod'
import { InvalidInputError } from '../errors.js'
import { MAX_LEVELS, toWholePlainData } from '../data/plain-data.js'
import { parseInput } from '../protocol/parse.js'
import type { KeptParams } from '../protocol/run-fields.js'
import type { ResolvedRunner, Runner } from './runner.js'
import { resolveRunner } from './definition.js'

/**
 * Validates `context` of the params with the schema of the runner. If there is no context, the schema validates an empty object.
 * @param field the name of the context in errors
 * @returns the params. Their `context` is what the schema has returned
 * @throws INVALID_INPUT for the first field that does not match the schema
 */
export function checkedParams(
  { contextSchema }: { readonly contextSchema?: z.ZodType },
  params: KeptParams | undefined,
  field = 'input.context',
): KeptParams | undefined {
  if (contextSchema === undefined) return params
  const { context: given = {} } = params ?? {}
  const context: unknown = parseInput(contextSchema, given, field)
  const checked = toWholePlainData({ ...params, context })
  if (checked !== undefined) return checked
  throw new InvalidInputError(field, given, `a value nested at most ${MAX_LEVELS} levels deep`)
}

/** Returns the runner without its schema, for a launch whose context was already validated. */
export function withoutContextSchema(runner: Runner): ResolvedRunner {
  const { contextSchema: _, ...rest } = resolveRunner(runner)
  return rest
}
