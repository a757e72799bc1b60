#!/usr/bin/env bash
# opencode 1.18.33: a plugin that continues `opencode run` with `promptAsync` inside `experimental.text.complete` gets 204, and the model gets the text. With a
# `chat.message` hook that takes 300 ms in the same plugin, the answer is still 204, and the hook sees the message, but `opencode run` ends before the message
# is made: the model never gets it, the exit code is 0, and nothing says so.
#
# Seen: `without the hook: prompt accepted with 204, the model got it; with it: prompt accepted with 204, the model did not get it`. Exits 1 when that changes.
set -euo pipefail
folder=$(mktemp -d)
model=
trap 'if [ -n "$model" ]; then kill "$model" 2> /dev/null || true; wait "$model" 2> /dev/null || true; fi; rm -rf "$folder"' EXIT
cd "$folder"
echo '{"name":"finding","private":true,"type":"module"}' > package.json
npm install --silent --no-audit --no-fund opencode-ai@1.18.33
cat > model.mjs <<'JS'
import { createServer } from 'node:http'
import { appendFileSync, writeFileSync } from 'node:fs'
// A model of the Chat Completions API, which answers "ok".
const server = createServer((request, response) => {
  let body = ''
  request.on('data', (part) => (body += part))
  request.on('end', () => {
    if (/And one more thing/.test(body)) appendFileSync('requests', 'x')
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 0, model: 'm' }
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const event of [
      { ...chunk, choices: [{ index: 0, delta: { role: 'assistant', content: 'ok' }, finish_reason: null }] },
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
mkdir -p home/.config/opencode/plugin project
cat > home/.config/opencode/opencode.json <<JSON
{"autoupdate":false,"share":"disabled","model":"scripted/m","provider":{"scripted":{"npm":"@ai-sdk/openai-compatible","name":"scripted",
"options":{"baseURL":"http://127.0.0.1:$(cat port)/v1","apiKey":"scripted"},"models":{"m":{"name":"m"}}}}}
JSON
cat > home/.config/opencode/plugin/continue.js <<'JS'
import { writeFileSync } from 'node:fs'
export const Continue = async ({ client }) => {
  let isDone = false
  return {
    'chat.message': async () => {
      if (process.env.SLOW === '1') await new Promise((resolve) => setTimeout(resolve, 300))
    },
    'experimental.text.complete': async ({ sessionID }) => {
      if (isDone) return
      isDone = true
      const parts = [{ type: 'text', text: 'And one more thing.' }]
      const { response } = await client.session.promptAsync({ path: { id: sessionID }, body: { parts } })
      writeFileSync(process.env.STATUS, String(response.status))
    },
  }
}
JS
run() {
  rm -f requests status
  (cd project && env HOME="$folder/home" XDG_CONFIG_HOME="$folder/home/.config" XDG_DATA_HOME="$folder/home/data-$1" XDG_CACHE_HOME="$folder/home/.cache" \
    PWD="$folder/project" SLOW="$1" STATUS="$folder/status" OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1 \
    "$folder/node_modules/.bin/opencode" run -- Hello < /dev/null > /dev/null 2>&1)
  echo "prompt accepted with $(cat status), the model $([ -s requests ] && echo 'got it' || echo 'did not get it')"
}
seen="without the hook: $(run 0); with it: $(run 1)"
echo "$seen"
[ "$seen" = 'without the hook: prompt accepted with 204, the model got it; with it: prompt accepted with 204, the model did not get it' ] || exit 1
