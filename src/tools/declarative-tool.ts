/** Tools as classes. `build(params)` returns an invocation, which can describe the call and execute it. */
import type { z } from 'zod'
import type { Tool, ToolResult } from './tool.js'

/** A call that was prepared with `build`. */
export interface ToolInvocation<Params = unknown> {
  /** The parameters that the model sent. */
  readonly params: Params
  /** What the call would do, in a few words, for a person who has to allow it. */
  getDescription(): string
  /** Makes the call. Never rejects: invalid parameters give a result with an `error`. */
  execute(signal?: AbortSignal): Promise<ToolResult>
}

/**
 * Binds a tool to the parameters of one call. The parameters are checked when the call is executed.
 * @param tool the tool to call
 * @param params the parameters that the model sent
 * @returns the prepared call
 */
export function buildInvocation<Params>(tool: Tool, params: Params): ToolInvocation<Params> {
  return {
    params,
    getDescription: () => tool.describe(params),
    execute: (signal) => tool.execute(params, { signal }),
  }
}

/** The base of the tool classes. Each class wraps a tool that a function such as `createTaskTool` creates. */
export abstract class BaseDeclarativeTool<Schema extends z.ZodObject> {
  /** The name under which the tool is registered. */
  abstract readonly name: string
  /** The name that people see. */
  abstract readonly displayName: string
  /** `think` for a tool that only reads or waits, `execute` for one that starts work. */
  abstract readonly kind: 'think' | 'execute'
  /** The tool that this class wraps. */
  readonly tool: Tool<Schema>

  protected constructor(tool: Tool<Schema>) {
    this.tool = tool
  }

  /** The description that the model reads. */
  get description(): string {
    return this.tool.description
  }

  /**
   * Binds the tool to the parameters of one call. The parameters are checked when the call is executed.
   * @param params the parameters that the model sent
   * @returns the prepared call
   */
  build(params: z.input<Schema>): ToolInvocation<z.input<Schema>> {
    return buildInvocation(this.tool, params)
  }
}
