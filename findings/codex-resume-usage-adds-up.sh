#!/usr/bin/env bash
# codex 0.171.0: `usage` of `turn.completed` counts the whole session, not the turn. Each request to the model uses 100 input tokens and each turn makes
# one request; after `codex exec resume` the second turn says 200. A caller that adds up the turns counts the first one twice.
#
# Seen: `first turn: 100; second turn: 200`. Exits 1 when that changes.
set -euo pipefail
folder=$(mktemp -d)
model=
trap 'if [ -n "$model" ]; then kill "$model" 2> /dev/null || true; wait "$model" 2> /dev/null || true; fi; rm -rf "$folder"' EXIT
cd "$folder"
echo '{"name":"finding","private":true,"type":"module"}' > package.json
npm install --silent --no-audit --no-fund @openai/codex@0.171.0
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
model = "gpt-5.4"
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
cd project
codex() { "$folder/node_modules/.bin/codex" exec --json --skip-git-repo-check "$@" < /dev/null 2> /dev/null; }
tokens() { sed -n 's/.*"type":"turn.completed".*"input_tokens":\([0-9]*\),.*/\1/p' "$1"; }
codex -- one > ../one
codex resume "$(sed -n 's/.*"thread_id":"\([^"]*\)".*/\1/p' ../one)" -- two > ../two
echo "first turn: $(tokens ../one); second turn: $(tokens ../two)"
[ "$(tokens ../one) $(tokens ../two)" = '100 200' ] || exit 1
