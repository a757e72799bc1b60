import { Agent, Runner } from '@openai/agents'
import { assistantMessage, functionCall, ScriptedModel } from '@openai/agents/testing'
import { toOpenAIAgentsTools } from '../../../../src/tools/adapters/openai-agents.js'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool } from '../../../../src/tools/tool.js'
import type { AdapterSubject, ShownResult } from './adapter-subject.js'
import { describeAdapter } from './adapter-suite.js'

const subject: AdapterSubject = {
  takesText: true,
  rejectsAborted: true,
  turn: async (tools, calls, signal, options) => {
    const said = calls.map(({ id, name, args }) => functionCall(name, args, { callId: id }))
    const model = new ScriptedModel([...(said.length > 0 ? [said] : []), [assistantMessage('done')]])
    const agent = new Agent({
      name: 'Tester',
      instructions: 'Go on.',
      model,
      tools: toOpenAIAgentsTools(tools, options),
    })
    const runner = new Runner({ tracingDisabled: true })
    const { finalOutput } = await runner.run(agent, 'go on', { ...(signal && { signal }) })
    const offered = (model.firstCall?.request.tools ?? []).map((tool) => {
      if (tool.type !== 'function') throw new Error(`not a function: ${tool.type}`)
      expect(tool.strict).toBe(false)
      return { name: tool.name, description: tool.description, parameters: tool.parameters }
    })
    const input = model.lastCall?.request.input ?? []
    const shown = (typeof input === 'string' ? [] : input).flatMap((item): ShownResult[] => {
      if (item.type !== 'function_call_result') return []
      const { output } = item as { output: string | { text: string } }
      return [{ id: item.callId, text: typeof output === 'string' ? output : output.text }]
    })
    return { offered, shown, end: finalOutput ?? '' }
  },
}

describeAdapter('OpenAI Agents', subject)

it('gives the OpenAI Agents SDK a required list even when it is empty', async () => {
  const bare = defineTool({
    name: 'bare',
    description: 'Takes nothing.',
    inputSchema: z.strictObject({ hint: z.string().optional() }),
    run: () => ({ llmContent: 'ok', returnDisplay: 'ok' }),
  })
  const { offered } = await subject.turn({ bare }, [])
  expect(offered[0]?.parameters).toEqual({
    type: 'object',
    properties: { hint: { type: 'string' } },
    required: [],
    additionalProperties: false,
  })
})
