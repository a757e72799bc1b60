/** The types of `agent-tasks/adapters/json-schema`: compiled by `npm run types`, never run. */
import { expectTypeOf } from 'vitest'
import { createAgentTasks } from 'agent-tasks'
import { toJsonSchemaTools, type JsonSchemaTool } from 'agent-tasks/adapters/json-schema'
import type { NeutralTools } from '../../../src/tools/adapters/neutral-tools.js'
import type { ToolResult } from '../../../src/tools/tool.js'

export async function theToolsArePlainData(): Promise<void> {
  const { tools, call } = toJsonSchemaTools(createAgentTasks().tools)
  expectTypeOf(tools).toEqualTypeOf<readonly JsonSchemaTool[]>()
  expectTypeOf(await call('task', '{}')).toEqualTypeOf<ToolResult>()
  // @ts-expect-error a call names its tool
  void call({ goal_prompt: 'x' })
  // @ts-expect-error tools come by name
  toJsonSchemaTools([])
}

/** As in `@anthropic-ai/sdk` 1.14. */
interface AnthropicTool {
  name: string
  description?: string
  input_schema: { type: 'object'; properties?: unknown; required?: string[] | null; [keyword: string]: unknown }
}

export function theyFitTheSdkOfAnthropic(): void {
  const { tools } = toJsonSchemaTools(createAgentTasks().tools, { names: { task: 'delegate' } })
  expectTypeOf(
    tools.map(({ name, description, parameters }) => ({ name, description, input_schema: parameters })),
  ).toExtend<AnthropicTool[]>()
}

export function itTakesToolsByName(): void {
  expectTypeOf(toJsonSchemaTools).parameter(0).toEqualTypeOf<NeutralTools>()
}
