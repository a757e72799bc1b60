/**
 * `agent-tasks/adapters/openai-agents`: the tools for the OpenAI Agents SDK (`@openai/agents` 0.20, an optional peer).
 *
 * They are not `strict`: strict mode requires every parameter and does not support free-form objects (`context`,
 * `expected_outputs`). The tool validates its input.
 */
import { tool as agentsTool, type FunctionTool } from '@openai/agents'
import { describeFailure } from '../protocol/outcomes.js'
import type { Tool } from '../tools/tool.js'
import { listTools, parametersOf, type NeutralTools } from './neutral-tools.js'
import { executeOrThrow } from './tool-failure.js'

/** The type of a schema that is not strict in the SDK; at run time it accepts any object schema. */
interface LooseParameters {
  /** Always an object. */
  type: 'object'
  /** The fields; the SDK does not type them. */
  properties: Record<string, never>
  /** The required fields. */
  required: string[]
  /** Other fields are passed to the tool, which validates them. */
  additionalProperties: true
}

/** A function tool of the SDK, for agents with any context. It returns the text for the model. */
export type OpenAIAgentsTool = FunctionTool<unknown, LooseParameters>

/**
 * Converts tools for an `Agent`. A run's `signal` and a call's id are passed to the tool. The model gets a failed call as text, and
 * the trace marks it as failed.
 * @param tools tools by name, such as `createAgentTasks().tools`
 * @throws InvalidInputError when a key is not the name of its tool
 */
export function toOpenAIAgentsTools(tools: NeutralTools): OpenAIAgentsTool[] {
  return listTools(tools).map(toOpenAIAgentsTool)
}

function toOpenAIAgentsTool(tool: Tool): OpenAIAgentsTool {
  const { required = [], ...schema } = parametersOf(tool)
  return agentsTool({
    name: tool.name,
    description: tool.description,
    strict: false,
    parameters: { ...schema, required } as unknown as LooseParameters,
    execute: async (input, _runContext, details) => {
      const context = { signal: details?.signal, toolCallId: details?.toolCall?.callId }
      return (await executeOrThrow(tool, input, context)).llmContent
    },
    errorFunction: (_runContext, error) => describeFailure(error),
  })
}
