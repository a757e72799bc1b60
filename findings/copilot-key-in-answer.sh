#!/usr/bin/env bash
# Copilot CLI 1.0.102: with a model provider of one's own, it puts `******` in place of the provider's API key wherever a text of its output has it, also in
# the answer of the model. A key that is a word, such as the customary `ollama` of a local server, is so removed from answers: "install ollama" is printed,
# and stored in the session, as "install ******". The shell and the model get the true text.
#
# Seen: `key ollama: install ******; key 7d31c0: install ollama`. Exits 1 when that changes.
set -euo pipefail
folder=$(mktemp -d)
model=
trap 'if [ -n "$model" ]; then kill "$model" 2> /dev/null || true; wait "$model" 2> /dev/null || true; fi; rm -rf "$folder"' EXIT
cd "$folder"
echo '{"name":"finding","private":true,"type":"module"}' > package.json
npm install --silent --no-audit --no-fund @github/copilot@1.0.102
cat > model.mjs <<'JS'
import { createServer } from 'node:http'
import { writeFileSync } from 'node:fs'
// A model of the Chat Completions API: it says "install ollama".
const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => {
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 0, model: 'm' }
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const event of [
      { ...chunk, choices: [{ index: 0, delta: { role: 'assistant', content: 'install ollama' }, finish_reason: null }] },
      { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage },
    ]) response.write(`data: ${JSON.stringify(event)}\n\n`)
    response.end('data: [DONE]\n\n')
  })
})
server.listen(0, '127.0.0.1', () => writeFileSync('port', String(server.address().port)))
JS
node model.mjs &
model=$!
while [ ! -s port ]; do sleep 0.1; done
mkdir home project
cd project
answer() {
  env HOME="$folder/home" XDG_CACHE_HOME="$folder/home/.cache" COPILOT_PROVIDER_BASE_URL="http://127.0.0.1:$(cat ../port)/v1" COPILOT_PROVIDER_API_KEY="$1" \
    COPILOT_MODEL=m COPILOT_OFFLINE=true "$folder/node_modules/.bin/copilot" --output-format json --prompt='How do I run a model here?' < /dev/null 2> /dev/null |
    sed -n 's/.*"type":"assistant.message".*"content":"\([^"]*\)".*/\1/p'
}
seen="key ollama: $(answer ollama); key 7d31c0: $(answer 7d31c0)"
echo "$seen"
[ "$seen" = 'key ollama: install ******; key 7d31c0: install ollama' ] || exit 1
