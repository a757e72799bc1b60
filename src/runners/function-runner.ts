/** Runs a task as a function in this process. */
import type { OutputRunner, RunFunction } from '../engine/runner.js'
import { InvalidInputError } from '../errors.js'
import { aBoolean, checkOptions } from '../protocol/option-checks.js'

/** Options of `functionRunner`. */
export interface FunctionRunnerOptions {
  /** Whether the function reads `context.messages`. Default false: messages to its tasks are refused. */
  readonly takesMessages?: boolean
}

/**
 * Creates a runner from a function.
 * @param fn called with the task's input and context. It should stop when `context.signal` aborts. A string result becomes `final_message`, undefined
 *   an empty output, and an object is the output
 * @param options whether it takes messages
 * @returns a runner for `AsyncTaskManager.launch`
 * @throws InvalidInputError when `fn` is not a function, or an option is unknown or wrong
 */
export function functionRunner(fn: RunFunction, options: FunctionRunnerOptions = {}): OutputRunner {
  if (typeof fn !== 'function') throw new InvalidInputError('fn', fn, 'a function')
  checkOptions(options, { takesMessages: aBoolean })
  return {
    run: async (input, context) => {
      const returned = await fn(input, context)
      return typeof returned === 'string' ? { final_message: returned } : (returned ?? {})
    },
    ...options,
  }
}
