/** A failed result as an exception, for SDKs in which a tool throws to fail. */
import { AgentTasksError } from '../../errors.js'
import type { Tool, ToolContext, ToolResult } from '../tool.js'

/** A failed call. Its message is the text for the model. */
export class ToolFailure extends AgentTasksError {
  /** The name of the tool. */
  readonly tool: string
  /** The whole result of the call. */
  readonly result: ToolResult

  constructor(tool: string, result: ToolResult) {
    super('TOOL_FAILED', result.llmContent)
    this.tool = tool
    this.result = result
  }

  /** Returns only the message, because some SDKs send `String(error)` to the model. */
  override toString(): string {
    return this.message
  }
}

/**
 * Calls a tool.
 * @throws TOOL_FAILED when the call failed
 * @throws the reason of the signal when the call was aborted, as SDKs expect
 */
export async function executeOrThrow(tool: Tool, input: unknown, context: ToolContext): Promise<ToolResult> {
  const result = await tool.execute(input, context)
  if (result.error === undefined) return result
  if (result.error.type === 'aborted') context.signal?.throwIfAborted()
  throw new ToolFailure(tool.name, result)
}
