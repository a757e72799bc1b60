/**
 * `agent-tasks/adapters/openai-agents`: the tools for the OpenAI Agents SDK (`@openai/agents` 0.20, an optional peer).
 *
 * They are not `strict`: strict mode wants every parameter required and knows no free-form objects (`context`,
 * `expected_outputs`). The neutral tool checks what comes instead.
 */
import { tool as agentsTool, type FunctionTool } from '@openai/agents'
import { describeFailure } from '../protocol/outcomes.js'
import type { Tool } from '../tools/tool.js'
import { listTools, parametersOf, type NeutralTools } from './neutral-tools.js'
import { executeOrThrow } from './tool-failure.js'

export type { NeutralTools } from './neutral-tools.js'

/** What the SDK's types ask of a schema that is not strict; at run time any object schema will do. */
export interface LooseParameters {
  /** Always an object. */
  type: 'object'
  /** What the fields are, in JSON Schema; the SDK is not told. */
  properties: Record<string, never>
  /** The fields that must be there. */
  required: string[]
  /** Whatever else comes reaches the tool, which checks it. */
  additionalProperties: true
}

/** A function tool of the SDK, for an agent with any context. Its result is the text for the model. */
export type OpenAIAgentsTool = FunctionTool<unknown, LooseParameters>

/**
 * Makes the tools of an `Agent`. A run's `signal` and a call's id reach the tool; a call that fails is told to the model as
 * text and marked as failed in the trace.
 * @param tools neutral tools by name, such as `createAgentTasks().tools`
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
