/** Runs a task as a function in this process. */
import type { OutputRunner, RunFunction } from '../engine/runner.js'
import { InvalidInputError } from '../errors.js'
import { aBoolean, checkOptions } from '../protocol/option-checks.js'

/** Options of `functionRunner`. */
export interface FunctionRunnerOptions {
  /** Whether the function reads `context.messages`. By default, messages to its tasks are refused. */
  readonly takesMessages?: boolean
}

/**
 * Creates a runner from a function.
 * @param fn called with the task's input and context; it should stop when `context.signal` aborts. If it returns a string, the string is the
 * `final_message` of the output; undefined is an empty output; an object is the whole output
 * @param options whether the function takes messages
 * @returns a runner for `AsyncTaskManager.launch`
 * @throws INVALID_INPUT when `fn` is not a function, or an option is unknown or wrong
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
