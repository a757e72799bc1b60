/** Tools whose calls are spans (`agent-tasks/telemetry`). */
import type { Telemetry } from '../protocol/telemetry.js'
import type { Tool } from './tool.js'

/** Returns the same tools, with a span for each call. */
export function tracedTools<Tools extends Readonly<Record<string, Tool>>>(tools: Tools, telemetry: Telemetry): Tools {
  return Object.fromEntries(Object.entries(tools).map(([name, tool]) => [name, traced(tool, telemetry)])) as Tools
}

function traced(tool: Tool, telemetry: Telemetry): Tool {
  const execute: Tool['execute'] = async (input, context) => {
    const callId = context?.toolCallId
    const operation = telemetry.start({ type: 'execute_tool', name: tool.name, callId, input })
    const result = await operation.run(() => tool.execute(input, context))
    const { llmContent, error } = result
    operation.end({ output: llmContent, ...(error && { errorType: error.type, error: error.message }) })
    return result
  }
  // The description and the schema of a tool may be getters, so they are copied as such.
  const fields = Object.getOwnPropertyDescriptors(tool)
  return Object.defineProperties({} as Tool, { ...fields, execute: { value: execute, enumerable: true } })
}
