#!/usr/bin/env bash
# Qwen Code 0.24.4: what a Stop hook answers with `block` goes to the model as the next prompt, and into a UserPromptSubmit hook, but not into the transcript
# of the session (`~/.qwen/projects/*/chats/*.jsonl`), which has only the model's answer to it. A resumed session shows the model its two answers in a row,
# without the text that the second one was about. What a UserPromptSubmit hook adds to a prompt of the user is in the transcript.
#
# Seen: `requests with the hook's text: 1; lines of the transcript with it: 0; answers in the transcript: 2`. Exits 1 when that changes.
set -euo pipefail
folder=$(mktemp -d)
model=
trap 'if [ -n "$model" ]; then kill "$model" 2> /dev/null || true; wait "$model" 2> /dev/null || true; fi; rm -rf "$folder"' EXIT
cd "$folder"
echo '{"name":"finding","private":true,"type":"module"}' > package.json
npm install --silent --no-audit --no-fund @qwen-code/qwen-code@0.24.4
cat > model.mjs <<'JS'
import { createServer } from 'node:http'
import { appendFileSync, writeFileSync } from 'node:fs'
// A model of the Chat Completions API, which answers "first" and then "second".
let answers = 0
const server = createServer((request, response) => {
  let body = ''
  request.on('data', (part) => (body += part))
  request.on('end', () => {
    if (/report of the hook/.test(body)) appendFileSync('requests', 'x')
    const hasTools = /"tools"/.test(body)
    if (hasTools) answers += 1
    const content = hasTools ? (answers === 1 ? 'first' : 'second') : 'ok'
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 0, model: 'm' }
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const event of [
      { ...chunk, choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }] },
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
mkdir -p home/.qwen project
cat > stop.mjs <<'JS'
import { existsSync, writeFileSync } from 'node:fs'
const done = new URL('stopped', import.meta.url)
console.log(existsSync(done) ? '{}' : '{"decision":"block","reason":"The report of the hook."}')
writeFileSync(done, '')
JS
echo "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"node $folder/stop.mjs\"}]}]}}" > home/.qwen/settings.json
cd project
env HOME="$folder/home" OPENAI_BASE_URL="http://127.0.0.1:$(cat ../port)/v1" OPENAI_API_KEY=scripted OPENAI_MODEL=m \
  "$folder/node_modules/.bin/qwen" --output-format stream-json --prompt='Hello' < /dev/null > /dev/null 2>&1
cd ..
transcript=$(ls home/.qwen/projects/*/chats/*.jsonl)
requests=$(wc -c < requests)
lines=$(grep -c 'report of the hook' "$transcript" || true)
answered=$(grep -c '"type":"assistant"' "$transcript" || true)
seen="requests with the hook's text: $requests; lines of the transcript with it: $lines; answers in the transcript: $answered"
echo "$seen"
[ "$seen" = "requests with the hook's text: 1; lines of the transcript with it: 0; answers in the transcript: 2" ] || exit 1
