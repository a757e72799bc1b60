/** The types of `agent-tasks/adapters/langchain`: compiled by `npm run types`, never run. */
import type { StructuredToolInterface } from '@langchain/core/tools'
import { expectTypeOf } from 'vitest'
import { createAgentTasks } from 'agent-tasks'
import { toLangChainTools, type LangChainTool } from 'agent-tasks/adapters/langchain'
import type { NeutralTools } from '../../../src/adapters/neutral-tools.js'

export function theToolsFitTheSDK(): void {
  const tools = toLangChainTools(createAgentTasks().tools)
  expectTypeOf(tools).toEqualTypeOf<LangChainTool[]>()
  expectTypeOf(tools).toExtend<StructuredToolInterface[]>()
  // @ts-expect-error tools come by name
  toLangChainTools([])
}

export function itTakesToolsByName(): void {
  expectTypeOf(toLangChainTools).parameter(0).toEqualTypeOf<NeutralTools>()
}
