/** A function of this process as the run of a background task. */
import type { OutputObject } from '../../machines/records.js'
import type { RunContext, RunInput, Runner } from '../engine/runner.js'
import { InvalidInputError } from '../errors.js'

/** What may be run: it says how it ended by returning, and fails by throwing. */
export type RunFunction = (
  input: RunInput,
  context: RunContext,
) => OutputObject | string | undefined | Promise<OutputObject | string | undefined>

/**
 * Makes a runner of a function.
 * @param fn called with the task's input and context. It should stop when `context.signal` aborts. A string it returns
 *   becomes the `final_message`, nothing becomes an empty output, and an object is the output as it is.
 * @throws InvalidInputError when `fn` is not a function
 */
export function functionRunner(fn: RunFunction): Runner {
  if (typeof fn !== 'function') throw new InvalidInputError('fn', fn, 'a function')
  return async (input, context) => {
    const returned = await fn(input, context)
    return typeof returned === 'string' ? { final_message: returned } : (returned ?? {})
  }
}
