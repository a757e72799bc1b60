/** The seeds' way to call a tool: `build(params)` gives an invocation, which describes itself and is then executed. */
import type { Tool, ToolResult } from './tool.js'

/** One call that has not been made yet (seed 002). */
export interface ToolInvocation<Params = unknown> {
  /** What the model sent. */
  readonly params: Params
  /** What the call would do, for a person who is asked to allow it. */
  getDescription(): string
  /** Makes the call. Never rejects: parameters that do not fit are an error result. */
  execute(signal?: AbortSignal): Promise<ToolResult>
}

/** An invocation of a neutral tool. */
export function buildInvocation<Params>(tool: Tool, params: Params): ToolInvocation<Params> {
  return {
    params,
    getDescription: () => tool.describe(params),
    execute: (signal) => tool.execute(params, { signal }),
  }
}
