/** The types of `agent-tasks/adapters/openai-agents`: compiled by `npm run types`, never run. */
import { Agent } from '@openai/agents'
import { expectTypeOf } from 'vitest'
import { createAgentTasks } from 'agent-tasks'
import { toOpenAIAgentsTools, type OpenAIAgentsTool } from 'agent-tasks/adapters/openai-agents'
import type { NeutralTools } from '../../../src/tools/adapters/neutral-tools.js'

export function theToolsFitTheSDK(): void {
  const tools = toOpenAIAgentsTools(createAgentTasks().tools)
  expectTypeOf(tools).toEqualTypeOf<OpenAIAgentsTool[]>()
  new Agent({ name: 'x', tools })
  new Agent<{ userId: string }>({ name: 'x', tools })
  new Agent<{ userId: string }>({
    name: 'x',
    tools: toOpenAIAgentsTools(createAgentTasks().tools, { names: { task: 'delegate' } }),
  })
  // @ts-expect-error tools come by name
  toOpenAIAgentsTools([])
}

export function itTakesToolsByName(): void {
  expectTypeOf(toOpenAIAgentsTools).parameter(0).toEqualTypeOf<NeutralTools>()
}
