/** The types of `tasks.background` for each SDK: compiled by `npm run types`, never run. */
import { tool as langChainTool } from '@langchain/core/tools'
import type { Client } from '@modelcontextprotocol/client'
import { Agent, tool as agentsTool } from '@openai/agents'
import {
  dynamicTool,
  generateText,
  jsonSchema,
  tool,
  type InferToolInput,
  type InferToolOutput,
  type LanguageModel,
  type ToolSet,
} from 'ai'
import { expectTypeOf } from 'vitest'
import { z } from 'zod'
import { createAgentTasks, type InBackground } from 'agent-tasks'
import { toOpenAIAgentsTools } from 'agent-tasks/adapters/openai-agents'
import { defineTool } from 'agent-tasks/tools'
import type {
  BackgroundMode,
  McpTool,
  BackgroundOptions,
  BackgroundTask,
} from '../../src/host/background/background-types.js'
import type { ToolResult } from '../../src/tools/tool.js'

declare const model: LanguageModel
declare const client: Client
const tasks = createAgentTasks()
const parameters = z.object({ city: z.string() })
const weather = tool({
  inputSchema: parameters,
  execute: async ({ city }) => Promise.resolve({ degrees: city.length }),
})
const choice = { mode: 'choice', name: 'weather' } as const

export async function aToolOfTheAiSdkHasTheParameterAndTheReference(): Promise<void> {
  const wrapped = tasks.background(weather, choice)
  expectTypeOf<InferToolOutput<typeof wrapped>>().toEqualTypeOf<{ degrees: number } | BackgroundTask>()
  expectTypeOf<InferToolInput<typeof wrapped>>().toExtend<{
    city: string
    run_in_background?: boolean | null | undefined
  }>()
  const { toolCalls, toolResults } = await generateText({ model, prompt: 'hello', tools: { weather: wrapped } })
  for (const call of toolCalls) {
    if (call.dynamic === true) continue
    expectTypeOf(call.input.city).toEqualTypeOf<string>()
    expectTypeOf(call.input.run_in_background).toEqualTypeOf<boolean | null | undefined>()
  }
  for (const result of toolResults) {
    if (result.dynamic !== true) expectTypeOf(result.output).toEqualTypeOf<{ degrees: number } | BackgroundTask>()
  }
  const dynamic = dynamicTool({ inputSchema: jsonSchema({ type: 'object' }), execute: async () => Promise.resolve(1) })
  expectTypeOf({ weather: wrapped, other: tasks.background(dynamic, choice) }).toExtend<ToolSet>()
  const always = tasks.background(weather, { mode: 'always', name: 'weather' })
  expectTypeOf(always.execute).toBeFunction()
  expectTypeOf<InferToolInput<typeof always>>().not.toHaveProperty('run_in_background')
}

export function aToolStaysWhatItIsWithTheModeNever(): void {
  expectTypeOf(tasks.background(weather, { mode: 'never' })).toEqualTypeOf(weather)
  expectTypeOf<InBackground<typeof weather, 'never'>>().toEqualTypeOf<typeof weather>()
}

export function toolsOfOtherKindsKeepTheirs(): void {
  const functionTool = agentsTool({ name: 'weather', description: 'd', parameters, execute: ({ city }) => city })
  new Agent({ name: 'x', tools: [tasks.background(functionTool, { mode: 'choice' })] })
  const structured = tasks.background(
    langChainTool(({ city }) => city, { name: 'weather', schema: parameters }),
    { mode: 'choice' },
  )
  void structured.invoke({ city: 'x', run_in_background: true })
  expectTypeOf(structured.name).toExtend<string>()
  const neutral = defineTool({
    name: 'weather',
    description: 'd',
    inputSchema: parameters,
    run: ({ city }) => ({ llmContent: city, returnDisplay: city }),
  })
  const wrapped = tasks.background(neutral, { mode: 'choice' })
  expectTypeOf(wrapped.execute({ city: 'x', run_in_background: true })).resolves.toEqualTypeOf<ToolResult>()
  // @ts-expect-error the parameter is true or false
  void wrapped.execute({ city: 'x', run_in_background: 'yes' })
  toOpenAIAgentsTools({ weather: wrapped })
}

export async function aToolOfAnMcpServerIsItsDefinitionAndACall(): Promise<void> {
  const { tools } = await client.listTools()
  const [listed] = tools
  const given: McpTool = {
    ...listed!,
    call: (args, options) => client.callTool({ name: 'x', arguments: args }, options),
  }
  expectTypeOf(tasks.background(given, { mode: 'choice' })).toEqualTypeOf<McpTool>()
}

export function optionsAreChecked(): void {
  expectTypeOf<BackgroundOptions['mode']>().toEqualTypeOf<BackgroundMode>()
  // @ts-expect-error the mode is required
  tasks.background(weather, { name: 'weather' })
  // @ts-expect-error no such mode
  tasks.background(weather, { mode: 'often' })
}
