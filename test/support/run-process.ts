/** Runs of programs without a manager. */
import { expect } from 'vitest'
import type { OutputObject } from '../../machines/records.js'
import { ProcessError } from '../../src/runners/process-error.js'
import type { ProcessRunnerOptions } from '../../src/runners/process-options.js'
import { processRunner } from '../../src/runners/process-runner.js'
import { createRunContext, runInput } from './run-context.js'

/** The options that run a script of the POSIX shell. */
export function shell(script: string): Pick<ProcessRunnerOptions, 'command' | 'args'> {
  return { command: '/bin/sh', args: ['-c', script] }
}

/** Runs a program to its end. */
export async function run(
  options: ProcessRunnerOptions,
  context = createRunContext(),
  input = runInput(),
): Promise<OutputObject> {
  return processRunner(options).run(input, context)
}

/** Runs a program that must fail. Returns its error. */
export async function failure(options: ProcessRunnerOptions, input = runInput()): Promise<ProcessError> {
  const error: unknown = await run(options, createRunContext(), input).catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(ProcessError)
  return error as ProcessError
}
