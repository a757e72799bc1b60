/** Types the `context` that the run of a subagent receives. */
import type { z } from 'zod'
import type { RunContext, RunFunction, RunResult } from '../engine/runner.js'
import type { SubagentDefinition, SubagentRequest } from '../tools/subagents.js'
import type { PlainData } from './subagent-outputs.js'

/**
 * Returns `definition` unchanged, with the type of `contextSchema` for the `context` that its run receives. Each launch validates the context with
 * this schema.
 * @param definition a subagent with `contextSchema`, and with a function as its `run`
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
  // This cast is safe, because each launch has validated the context.
  return definition as SubagentDefinition & { contextSchema: Schema; run: RunFunction<SubagentRequest, Result> }
}
