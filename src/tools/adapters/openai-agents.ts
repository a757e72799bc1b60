/**
 * `agent-tasks/adapters/openai-agents`: the tools for the OpenAI Agents SDK (`@openai/agents` 0.19 or 0.20, an optional peer dependency).
 *
 * The tools are not `strict`, because strict mode requires every parameter and does not support free-form objects (`context`, `expected_outputs`). The
 * tools validate their input themselves.
 */
import { tool as agentsTool, type FunctionTool } from '@openai/agents'
import { describeFailure } from '../../protocol/outcomes.js'
import { offeredTools, type AdapterOptions, type NeutralTools, type OfferedTool } from './neutral-tools.js'
import { executeOrThrow } from './tool-failure.js'

/** The SDK's type of a schema that is not strict. At run time the SDK accepts any object schema. */
interface LooseParameters {
  /** JSON Schema type of the arguments. */
  type: 'object'
  /** The fields of the arguments. The SDK gives them no types. */
  properties: Record<string, never>
  /** The required fields. */
  required: string[]
  /** The SDK passes unknown fields to the tool, which validates them. */
  additionalProperties: true
}

/** A function tool of the SDK, for agents with any context. It returns the text for the model. */
// A tool of the context `unknown` does not fit an agent of another context, because the SDK's types also return the context.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type OpenAIAgentsTool = FunctionTool<any, LooseParameters>

/**
 * Converts tools for an `Agent`. A tool gets the `signal` of the run and the id of its call. The model gets a failed call as text, and the trace marks
 * the call as failed.
 * @param tools tools by name, such as `createAgentTasks().tools`
 * @param options.names other names for some tools
 * @returns the tools, in the order of their keys
 * @throws INVALID_INPUT when a key is not the name of its tool, or for an invalid option
 */
export function toOpenAIAgentsTools(tools: NeutralTools, options?: AdapterOptions): OpenAIAgentsTool[] {
  return offeredTools(tools, options).map(toOpenAIAgentsTool)
}

function toOpenAIAgentsTool({ tool, name, description, parameters }: OfferedTool): OpenAIAgentsTool {
  const { required = [], ...schema } = parameters
  return agentsTool({
    name,
    description,
    strict: false,
    parameters: { ...schema, required } as unknown as LooseParameters,
    execute: async (input, _runContext, details) => {
      const context = { signal: details?.signal, toolCallId: details?.toolCall?.callId }
      return (await executeOrThrow(tool, input, context)).llmContent
    },
    errorFunction: (_runContext, error) => describeFailure(error),
  })
}
