/** Programs for the test of the packed package. Each uses one adapter with its SDK, and may use the variable `agent`. */

/** The adapters that need an SDK: the npm package of the SDK (an optional peer dependency), a program, and what it must print. */
export const adapters = {
  'ai-sdk': {
    peer: 'ai',
    program: `
import { generateText, type ToolSet } from 'ai'
import { toAiSdkTools } from 'agent-tasks/adapters/ai-sdk'
const made = toAiSdkTools(agent.tools)
const tools: ToolSet = made
const goal: string = ({} as Parameters<NonNullable<typeof made.task.execute>>[0]).goal_prompt ?? 'none'
console.log(typeof generateText, Object.keys(tools).length, goal)
`,
    output: 'function 4 none',
  },
  'openai-agents': {
    peer: '@openai/agents',
    program: `
import { Agent } from '@openai/agents'
import { toOpenAIAgentsTools } from 'agent-tasks/adapters/openai-agents'
const { tools } = new Agent({ name: 'A', tools: toOpenAIAgentsTools(agent.tools) })
console.log(tools.length)
`,
    output: '4',
  },
  langchain: {
    peer: '@langchain/core',
    program: `
import type { StructuredToolInterface } from '@langchain/core/tools'
import { toLangChainTools } from 'agent-tasks/adapters/langchain'
const tools: StructuredToolInterface[] = toLangChainTools(agent.tools)
console.log(await tools[1]?.invoke({}))
`,
    output: 'No async tasks.',
  },
} as const
