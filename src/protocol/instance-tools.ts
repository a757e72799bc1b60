/** Describes and runs the tools of an instance. */
import type { z } from 'zod'
import type { TaskProgress } from '../../machines/records.js'
import { omitUndefined } from '../data/omit-undefined.js'
import { ToolCallError } from '../errors.js'
import { preview } from '../data/preview.js'
import { jsonSchemaOf } from './json-schema.js'
import { describeIssue } from './parse.js'
import { failedResult, failureResult, toToolCallResult, type ToolCallResult } from './tool-result.js'

export type { TaskProgress } from '../../machines/records.js'

/** The second argument of a tool. */
export interface InstanceToolContext {
  /**
   * Aborted when the command is cancelled or exceeds its time limit, and when the instance is disconnected. If an abort listener
   * throws, `onError` of the instance receives the error, and the other listeners still run.
   */
  readonly signal: AbortSignal
  /** Reports progress: a number, or an object `{ progress, total?, message? }` as in MCP. Has no effect after the call has ended. */
  readonly progress: (progress: number | TaskProgress) => void
  /** The id of the task that the command belongs to. */
  readonly taskId?: string | undefined
  /** The id of the command that calls the tool. */
  readonly commandId?: string | undefined
}

/**
 * A tool that commands can call by its name. The tools of `agent-tasks/tools` can be used as well.
 *
 * The return value is converted to MCP `content`, unless it is MCP content already. An exception becomes a result with `isError` and the `code`
 * of the error.
 */
export interface InstanceTool<Input extends z.ZodType = z.ZodType> {
  /** The name. Commands give it as `tool_name`. */
  readonly name: string
  /** Says what the tool does, for models and people. */
  readonly description?: string
  /** Validates the arguments. It also determines the type of `input` in `execute`. */
  readonly inputSchema?: Input
  // A method and not a property, so that TypeScript accepts a tool with a narrower input in a list of tools.
  /** Does the work. */
  execute(input: z.output<Input>, context: InstanceToolContext): unknown
}

/** Returns the tool unchanged. TypeScript infers the type of `input` from the schema. */
export function instanceTool<Input extends z.ZodType>(tool: InstanceTool<Input>): InstanceTool {
  return tool
}

/** Returns the description of a tool for clients, with the schema of the arguments as JSON Schema. */
export function describeTool({ name, description, inputSchema }: InstanceTool) {
  return {
    name,
    ...omitUndefined({ description }),
    ...(inputSchema !== undefined && { inputSchema: jsonSchemaOf(inputSchema) }),
  }
}

/**
 * Runs a tool. When the tool fails, the promise resolves with a result that has `isError`.
 * @param isAborted whether the call was aborted
 * @throws the reason of the abort when the call was aborted; the error of a refused call when the tool throws one
 */
export async function runTool(
  tool: InstanceTool,
  args: Readonly<Record<string, unknown>>,
  context: InstanceToolContext,
  isAborted: () => boolean,
): Promise<ToolCallResult> {
  try {
    const parsed = await tool.inputSchema?.safeParseAsync(args)
    if (parsed?.success === false) {
      const { field, received, expected } = describeIssue(parsed.error, args, 'arguments')
      return failedResult('INVALID_ARGUMENTS', `${field}: got ${preview(received)}, expected ${expected}.`)
    }
    // The call may have been aborted while the arguments were validated. Then it must not start (S4 in docs/guarantees.md).
    if (isAborted()) context.signal.throwIfAborted()
    return toToolCallResult(await tool.execute(parsed === undefined ? args : parsed.data, context))
  } catch (error) {
    if (isAborted() || error instanceof ToolCallError) throw error
    return failureResult(error)
  }
}
