/** Runs a background task as a function of this process. */
import type { OutputObject } from '../../machines/records.js'
import type { RunContext, RunInput, Runner } from '../engine/runner.js'
import { InvalidInputError } from '../errors.js'

/** A function that a task runs. The task completes when it returns and fails when it throws. */
export type RunFunction = (
  input: RunInput,
  context: RunContext,
) => OutputObject | string | undefined | Promise<OutputObject | string | undefined>

/**
 * Creates a runner from a function.
 * @param fn called with the task's input and context. It should stop when `context.signal` aborts. A string that it returns
 *   becomes the `final_message`, undefined becomes an empty output, and an object is used as the output.
 * @returns a runner for `AsyncTaskManager.launch`
 * @throws InvalidInputError when `fn` is not a function
 */
export function functionRunner(fn: RunFunction): Runner {
  if (typeof fn !== 'function') throw new InvalidInputError('fn', fn, 'a function')
  return async (input, context) => {
    const returned = await fn(input, context)
    return typeof returned === 'string' ? { final_message: returned } : (returned ?? {})
  }
}
