/** The AI SDK's own mock model, with a script. */
import { MockLanguageModelV4 } from 'ai/test'
import type { LastWord, Script } from './script.js'

type Prompt = MockLanguageModelV4['doGenerateCalls'][number]['prompt']
type Answer = Awaited<ReturnType<MockLanguageModelV4['doGenerate']>>

const usage: Answer['usage'] = {
  inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 0, text: 0, reasoning: 0 },
}

export const scriptedAiSdkModel = (script: Script): MockLanguageModelV4 =>
  // eslint-disable-next-line @typescript-eslint/require-await -- a script that throws is a model that rejects
  new MockLanguageModelV4({ doGenerate: async ({ prompt }) => answer(script, prompt) })

function answer(script: Script, prompt: Prompt): Answer {
  const { text, calls } = script(lastWord(prompt))
  const shared = { usage, warnings: [] }
  if (calls.length === 0) {
    return { content: [{ type: 'text', text }], finishReason: { unified: 'stop', raw: undefined }, ...shared }
  }
  return {
    content: calls.map(({ id, name, args }) => {
      return { type: 'tool-call', toolCallId: id, toolName: name, input: JSON.stringify(args) }
    }),
    finishReason: { unified: 'tool-calls', raw: undefined },
    ...shared,
  }
}

function lastWord(prompt: Prompt): LastWord {
  const last = prompt.at(-1)
  if (last?.role === 'tool') {
    const [part] = last.content
    const { output } = part?.type === 'tool-result' ? part : {}
    return { by: 'tool', text: output?.type === 'text' || output?.type === 'error-text' ? output.value : '' }
  }
  const [part] = last?.role === 'user' ? last.content : []
  return { by: 'user', text: part?.type === 'text' ? part.text : '' }
}
