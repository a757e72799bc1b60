/** Gives the run of a subagent the type of its context. */
import type { z } from 'zod'
import type { RunContext, RunFunction, RunResult } from '../engine/runner.js'
import type { SubagentDefinition, SubagentRequest } from '../tools/subagents.js'
import type { PlainData } from './subagent-outputs.js'

/**
 * Returns the definition of a subagent whose run gets a `context` of the type that its schema returns. Every launch by a host checks it.
 * @param definition with `contextSchema`, and a function as its `run`
 */
export function defineSubagent<Schema extends z.ZodType, Result extends RunResult>(
  definition: Omit<SubagentDefinition, 'run' | 'contextSchema'> & {
    readonly contextSchema: Schema
    readonly run: (
      request: Omit<SubagentRequest, 'context'> & { readonly context: PlainData<z.output<Schema>> },
      context: RunContext,
    ) => Result | Promise<Result>
  },
): Omit<SubagentDefinition, 'run'> & {
  readonly contextSchema: Schema
  readonly run: RunFunction<SubagentRequest, Result>
} {
  // The launch has checked the context.
  return definition as SubagentDefinition & { contextSchema: Schema; run: RunFunction<SubagentRequest, Result> }
}
