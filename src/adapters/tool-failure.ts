/** For SDKs in which a tool fails by throwing: a failed result as an error that carries it. */
import { AgentTasksError } from '../errors.js'
import type { Tool, ToolContext, ToolResult } from '../tools/tool.js'

/** A call that failed. Its message is the text for the model; `result` is the neutral tool's whole answer. */
export class ToolFailure extends AgentTasksError {
  override readonly name = 'ToolFailure'
  /** The name of the tool. */
  readonly tool: string
  /** The neutral tool's whole answer. */
  readonly result: ToolResult

  constructor(tool: string, result: ToolResult) {
    super('TOOL_FAILED', result.llmContent)
    this.tool = tool
    this.result = result
  }

  /** The text alone: SDKs that show `String(error)` to the model would put the name of the class before it. */
  override toString(): string {
    return this.message
  }
}

/**
 * Calls a neutral tool.
 * @throws ToolFailure when the call failed; the signal's reason when it was aborted, as SDKs expect of a tool that stops
 */
export async function executeOrThrow(tool: Tool, input: unknown, context: ToolContext): Promise<ToolResult> {
  const result = await tool.execute(input, context)
  if (result.error === undefined) return result
  if (result.error.type === 'aborted') context.signal?.throwIfAborted()
  throw new ToolFailure(tool.name, result)
}
