/** The types of `agent-tasks/adapters/langchain`: compiled by `npm run types`, never run. */
import { tool, type StructuredToolInterface } from '@langchain/core/tools'
import { expectTypeOf } from 'vitest'
import { z } from 'zod'
import { createAgentTasks } from 'agent-tasks'
import { toLangChainTools, type LangChainTool } from 'agent-tasks/adapters/langchain'
import type { NeutralTools } from '../../../src/tools/adapters/neutral-tools.js'

export function theToolsFitTheSDK(): void {
  const tools = toLangChainTools(createAgentTasks().tools)
  expectTypeOf(tools).toEqualTypeOf<[LangChainTool, ...LangChainTool[]]>()
  const given: NeutralTools = createAgentTasks().tools
  expectTypeOf(toLangChainTools(given, { names: { task: 'delegate' } })).toEqualTypeOf<LangChainTool[]>()
  expectTypeOf(tools).toExtend<StructuredToolInterface[]>()
  // @ts-expect-error tools come by name
  toLangChainTools([])
}

/** The parameters of `createAgent` of `langchain` 1.5, whose types are slow to compile. */
declare function createAgent<const Tools extends readonly (StructuredToolInterface | Record<string, unknown>)[]>(
  options: { tools?: readonly (StructuredToolInterface | Record<string, unknown>)[] } & { tools?: Tools },
): Tools

export function theyStandBesideOtherToolsInOneList(): void {
  const own = tool(({ city }) => city, { name: 'own', schema: z.object({ city: z.string() }) })
  createAgent({ tools: [...toLangChainTools(createAgentTasks().tools), own] })
}

export function itTakesToolsByName(): void {
  expectTypeOf(toLangChainTools).parameter(0).toExtend<NeutralTools>()
}
