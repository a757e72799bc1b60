#!/usr/bin/env bash
# genkit 1.42.0: when a model requests several tools in one message, `generate` sends the tool responses back in the order in which the tools end,
# not in the order of the requests. A model API that pairs responses with requests by position gets the wrong ones.
#
# Seen: requests `slow, fast`; responses `fast, slow`.
# Exits 1 when that changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"name":"finding","private":true,"type":"module"}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts genkit@1.42.0
cat > order.mjs <<'JS'
import { genkit, z } from 'genkit'
const ai = genkit({})
let responses
const model = ai.defineModel({ name: 'scripted', supports: { tools: true, multiturn: true } }, async ({ messages }) => {
  const last = messages.at(-1)
  if (last.role === 'tool') {
    responses = last.content.map(({ toolResponse }) => toolResponse.name)
    return { finishReason: 'stop', message: { role: 'model', content: [{ text: 'done' }] } }
  }
  const content = ['slow', 'fast'].map((name) => ({ toolRequest: { name, ref: name, input: {} } }))
  return { finishReason: 'stop', message: { role: 'model', content } }
})
const wait = (ms) => async () => {
  await new Promise((resolve) => setTimeout(resolve, ms))
  return `${ms} ms`
}
const tools = [
  ai.defineTool({ name: 'slow', description: 'd', inputSchema: z.object({}), outputSchema: z.string() }, wait(300)),
  ai.defineTool({ name: 'fast', description: 'd', inputSchema: z.object({}), outputSchema: z.string() }, wait(1)),
]
await ai.generate({ model, prompt: 'go', tools })
console.log(`requests: slow, fast; responses: ${responses.join(', ')}`)
process.exit(responses.join() === 'fast,slow' ? 0 : 1)
JS
node order.mjs
