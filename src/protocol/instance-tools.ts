/** Describes and runs the tools of an instance. */
import type { z } from 'zod'
import type { TaskProgress } from '../../machines/records.js'
import { defined } from '../defined.js'
import { ToolCallError } from '../errors.js'
import { preview } from '../text/preview.js'
import { jsonSchemaOf } from './json-schema.js'
import { describeIssue } from './parse.js'
import { failedResult, failureResult, toToolCallResult, type ToolCallResult } from './tool-result.js'

export type { TaskProgress } from '../../machines/records.js'

/** The second argument of a tool. */
export interface InstanceToolContext {
  /**
   * Aborts when the command is cancelled or exceeds its time limit, and when the instance is disconnected. A listener that throws is
   * reported and stops nothing.
   */
  readonly signal: AbortSignal
  /** Reports progress: a number, or MCP's `{ progress, total?, message? }`. Ignored after the call has ended. */
  readonly progress: (progress: number | TaskProgress) => void
  /** The task of the command. */
  readonly taskId?: string | undefined
  /** The command that calls the tool. */
  readonly commandId?: string | undefined
}

/**
 * A tool that commands can call by name. The tools of `agent-tasks/tools` fit this interface. Its return value is converted to MCP `content`,
 * unless it is MCP content already. An exception becomes an `isError` result with the `code` of the error.
 */
export interface InstanceTool<Input extends z.ZodType = z.ZodType> {
  /** The `tool_name` of commands. */
  readonly name: string
  /** The description. */
  readonly description?: string
  /** Validates the arguments and types the input of `execute`. */
  readonly inputSchema?: Input
  // A method, so that a tool with a narrower input fits a list of tools.
  /** Does the work. */
  execute(input: z.output<Input>, context: InstanceToolContext): unknown
}

/** Types the input of a tool by its schema. Returns the tool. */
export function instanceTool<Input extends z.ZodType>(tool: InstanceTool<Input>): InstanceTool {
  return tool
}

/** The description of a tool, with its schema as JSON Schema. */
export function describeTool({ name, description, inputSchema }: InstanceTool) {
  return {
    name,
    ...defined({ description }),
    ...(inputSchema !== undefined && { inputSchema: jsonSchemaOf(inputSchema) }),
  }
}

/**
 * Runs a tool. A failure is a result. Rejects only if the call was aborted, or if the tool throws a `ToolCallError`.
 * @param isAborted whether the call was aborted
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
    // The call may have been aborted during the validation, so it does not start (promise S4).
    if (isAborted()) context.signal.throwIfAborted()
    return toToolCallResult(await tool.execute(parsed === undefined ? args : parsed.data, context))
  } catch (error) {
    if (isAborted() || error instanceof ToolCallError) throw error
    return failureResult(error)
  }
}
