#!/usr/bin/env bash
# codex-acp 0.16.0: a warning of Codex arrives as `agent_message_chunk` of the first turn, before the answer, with the same form and no `messageId`. The
# warning here is the one about a model that Codex has no metadata for. A client that joins the chunks of a turn shows "Model metadata for ... not found ..."
# and "done" as one answer of the model.
#
# Seen: `chunks: 2; ids: 0; joined: Model metadata for `a-model-of-ours` not found. ... issues.done`. Exits 1 when that changes.
set -euo pipefail
folder=$(mktemp -d)
model=
trap 'if [ -n "$model" ]; then kill "$model" 2> /dev/null || true; wait "$model" 2> /dev/null || true; fi; rm -rf "$folder"' EXIT
cd "$folder"
echo '{"name":"finding","private":true,"type":"module"}' > package.json
npm install --silent --no-audit --no-fund @zed-industries/codex-acp@0.16.0
cat > model.mjs <<'JS'
import { createServer } from 'node:http'
import { writeFileSync } from 'node:fs'
// A model of the Responses API.
const send = (response, output) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const usage = { input_tokens: 100, input_tokens_details: { cached_tokens: 0 }, output_tokens: 20, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 120 }
  const whole = { id: 'r', object: 'response', status: 'completed', model: 'm', output: [output], usage }
  for (const event of [
    { type: 'response.created', response: { ...whole, status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: output },
    { type: 'response.output_item.done', output_index: 0, item: output },
    { type: 'response.completed', response: whole },
  ]) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  response.end()
}
const say = (text) => ({ type: 'message', id: 'm1', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text, annotations: [] }] })
const run = (cmd) => ({ type: 'function_call', id: 'f1', call_id: 'c1', status: 'completed', name: 'exec_command', arguments: JSON.stringify({ cmd }) })
const server = createServer((request, response) => {
  let text = ''
  request.on('data', (chunk) => (text += chunk))
  request.on('end', () => {
    if (request.method !== 'POST') return response.writeHead(404).end()
    const body = JSON.parse(text)
    send(response, say('done'))
  })
})
server.listen(0, '127.0.0.1', () => writeFileSync('port', String(server.address().port)))
JS
node model.mjs &
model=$!
while [ ! -s port ]; do sleep 0.1; done
export CODEX_HOME="$folder/codex" KEY=x
mkdir codex project
cat > codex/config.toml <<TOML
model = "a-model-of-ours"
model_provider = "local"
[analytics]
enabled = false
[model_providers.local]
name = "local"
base_url = "http://127.0.0.1:$(cat port)/v1"
env_key = "KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
TOML
cat > acp.mjs <<'JS'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
const agent = spawn('../node_modules/.bin/codex-acp', [], { stdio: ['pipe', 'pipe', 'ignore'] })
const waiting = new Map()
const request = (id, method, params) =>
  new Promise((resolve) => {
    waiting.set(id, resolve)
    agent.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
  })
const chunks = []
createInterface({ input: agent.stdout }).on('line', (line) => {
  const message = JSON.parse(line)
  if (message.method === undefined) return waiting.get(message.id)?.(message.result)
  const { update } = message.params
  if (update?.sessionUpdate === 'agent_message_chunk') chunks.push(update)
})
await request(1, 'initialize', { protocolVersion: 1, clientCapabilities: {} })
const { sessionId } = await request(2, 'session/new', { cwd: process.cwd(), mcpServers: [] })
await request(3, 'session/prompt', { sessionId, prompt: [{ type: 'text', text: 'hello' }] })
const joined = chunks.map(({ content }) => content.text).join('')
const ids = chunks.filter(({ messageId }) => messageId != null).length
console.log(`chunks: ${chunks.length}; ids: ${ids}; joined: ${joined}`)
agent.kill()
process.exit(chunks.length === 2 && ids === 0 && /^Model metadata for .*done$/.test(joined) ? 0 : 1)
JS
cd project
node ../acp.mjs
