/** The types of `agent-tasks/adapters/ai-sdk`: compiled by `npm run types`, never run. */
import { generateText, type LanguageModel } from 'ai'
import { expectTypeOf } from 'vitest'
import { createAgentTasks } from 'agent-tasks'
import { toAiSdkTools } from 'agent-tasks/adapters/ai-sdk'
import type { NeutralTools } from '../../../src/tools/adapters/neutral-tools.js'
import type { ToolResult } from '../../../src/tools/tool.js'
import type { ToolFailure } from '../../../src/tools/adapters/tool-failure.js'

declare const model: LanguageModel
declare const failure: ToolFailure

export async function theToolsFitTheSDK(): Promise<void> {
  const tools = toAiSdkTools(createAgentTasks().tools)
  const { toolCalls } = await generateText({ model, prompt: 'hello', tools })
  for (const call of toolCalls) {
    if (call.dynamic !== true && call.toolName === 'task') expectTypeOf(call.input.goal_prompt).toEqualTypeOf<string>()
  }
  // @ts-expect-error no such tool
  expectTypeOf(tools.tasks)
  // @ts-expect-error a neutral tool is a whole tool
  toAiSdkTools({ task: { name: 'task' } })
  expectTypeOf(failure.result).toEqualTypeOf<ToolResult>()
}

export function aRenamedToolHasItsNewName(): void {
  const tools = toAiSdkTools(createAgentTasks().tools, { names: { task: 'delegate' } })
  expectTypeOf(tools.delegate.execute).not.toBeNever()
  expectTypeOf(tools).toHaveProperty('check_async_tasks')
  // @ts-expect-error it has another name
  expectTypeOf(tools.task)
  // @ts-expect-error no such option
  toAiSdkTools(createAgentTasks().tools, { name: {} })
}

export function itTakesToolsByName(): void {
  expectTypeOf(toAiSdkTools).parameter(0).toExtend<NeutralTools>()
}
