#!/usr/bin/env bash
# @mastra/core 1.71.0 accepts tools of the AI SDK (`tool` of ai 7.0.173), but calls their `toModelOutput` with the output alone, where the AI SDK calls
# it with `{ toolCallId, input, output }`. A tool that destructures `output`, as in the documentation of the AI SDK, gets undefined.
#
# Seen: with a tool that returns { text: 'raw' }, the AI SDK passes the keys toolCallId, input and output; Mastra passes the key text.
# Exits 1 when that changes. Mastra needs Node 22.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"name":"finding","private":true,"type":"module"}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts @mastra/core@1.71.0 ai@7.0.173 zod@4.6.7
cat > output.mjs <<'JS'
import { Agent } from '@mastra/core/agent'
import { generateText, isStepCount, tool } from 'ai'
import { MockLanguageModelV3, MockLanguageModelV4 } from 'ai/test'
import { z } from 'zod'
const tokens = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0, text: 1, reasoning: 0 }
const answer = (content, unified) => ({
  content,
  finishReason: { unified, raw: undefined },
  usage: { inputTokens: tokens, outputTokens: tokens },
  warnings: [],
})
const script = () => {
  let calls = 0
  return async () =>
    (calls += 1) === 1
      ? answer([{ type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: '{}' }], 'tool-calls')
      : answer([{ type: 'text', text: 'done' }], 'stop')
}
const seen = []
const look = tool({
  description: 'd',
  inputSchema: z.object({}),
  execute: async () => ({ text: 'raw' }),
  toModelOutput: (given) => {
    seen.push(Object.keys(given).sort().join())
    return { type: 'text', value: 'shown' }
  },
})
await generateText({
  model: new MockLanguageModelV4({ doGenerate: script() }),
  tools: { look },
  prompt: 'go',
  stopWhen: isStepCount(3),
})
const [inAiSdk] = seen.splice(0)
const model = new MockLanguageModelV3({ doGenerate: script() })
await new Agent({ id: 'a', name: 'a', instructions: 'go', model, tools: { look } }).generate('go', { maxSteps: 3 })
console.log(`AI SDK: ${inAiSdk}; Mastra: ${seen[0]}`)
process.exit(inAiSdk === 'input,output,toolCallId' && seen[0] === 'text' ? 0 : 1)
JS
npx --yes -p node@22 node output.mjs
