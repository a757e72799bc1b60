#!/usr/bin/env bash
# claude-agent-acp 0.101.0: for a client without the capability `session.notices`, a warning of the adapter arrives as `agent_message_chunk` without a
# `messageId`, between the chunks of the answer, which have one. A client that joins the chunks of a turn, as ACP v1 without message ids has to, shows the
# adapter's text as the words of the model. And the session starts in the mode `auto`: the command below runs, and no permission is requested.
#
# Seen: `mode: auto; permissions requested: 0; chunks with an id: 1; without: 1`. Exits 1 when that changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"name":"finding","private":true,"type":"module"}' > package.json
npm install --silent --no-audit --no-fund @agentclientprotocol/claude-agent-acp@0.101.0
mkdir home project
cat > acp.mjs <<'JS'
import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'
// A model of the Messages API: it asks for one command, then it says "done".
const model = createServer((request, response) => {
  let text = ''
  request.on('data', (chunk) => (text += chunk))
  request.on('end', () => {
    if (request.method !== 'POST') return response.writeHead(200).end('{}')
    const { messages, tools = [] } = JSON.parse(text || '{}')
    const isFirst = tools.length > 0 && !JSON.stringify(messages).includes('tool_result')
    const block = isFirst
      ? [{ type: 'tool_use', id: 'toolu_1', name: 'Bash', input: {} }, { type: 'input_json_delta', partial_json: JSON.stringify({ command: 'touch new.txt', description: 'makes a file' }) }]
      : [{ type: 'text', text: '' }, { type: 'text_delta', text: 'done' }]
    const usage = { input_tokens: 1, output_tokens: 1 }
    const stop_reason = isFirst ? 'tool_use' : 'end_turn'
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const event of [
      { type: 'message_start', message: { id: `msg_${isFirst}`, type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, usage } },
      { type: 'content_block_start', index: 0, content_block: block[0] },
      { type: 'content_block_delta', index: 0, delta: block[1] },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason }, usage },
      { type: 'message_stop' },
    ]) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    response.end()
  })
})
await new Promise((resolve) => model.listen(0, '127.0.0.1', resolve))
const env = {
  ...process.env,
  HOME: `${process.cwd()}/../home`,
  ANTHROPIC_BASE_URL: `http://127.0.0.1:${model.address().port}`,
  ANTHROPIC_API_KEY: 'x',
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_AUTOUPDATER: '1',
  IS_SANDBOX: '1',
}
const agent = spawn('../node_modules/.bin/claude-agent-acp', [], { env, stdio: ['pipe', 'pipe', 'ignore'] })
const waiting = new Map()
const request = (id, method, params) =>
  new Promise((resolve) => {
    waiting.set(id, resolve)
    agent.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
  })
const chunks = []
let asked = 0
createInterface({ input: agent.stdout }).on('line', (line) => {
  const message = JSON.parse(line)
  if (message.method === undefined) return waiting.get(message.id)?.(message.result)
  if (message.method === 'session/request_permission') {
    asked += 1
    const outcome = { outcome: 'cancelled' }
    agent.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: message.id, result: { outcome } })}\n`)
  }
  const { update } = message.params
  if (update?.sessionUpdate === 'agent_message_chunk') chunks.push(update)
})
await request(1, 'initialize', { protocolVersion: 1, clientCapabilities: {} })
const { sessionId, modes } = await request(2, 'session/new', { cwd: process.cwd(), mcpServers: [] })
await request(3, 'session/prompt', { sessionId, prompt: [{ type: 'text', text: 'make a file' }] })
const named = chunks.filter(({ messageId }) => messageId != null).length
console.log(`mode: ${modes.currentModeId}; permissions requested: ${asked}; chunks with an id: ${named}; without: ${chunks.length - named}`)
agent.kill()
model.closeAllConnections()
model.close()
process.exit(modes.currentModeId === 'auto' && asked === 0 && named > 0 && chunks.length > named ? 0 : 1)
JS
cd project
node ../acp.mjs
