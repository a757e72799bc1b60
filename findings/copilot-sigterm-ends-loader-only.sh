#!/usr/bin/env bash
# Copilot CLI 1.0.102 from npm: the program `copilot` is a loader that starts the real one as a child. SIGTERM, as a supervisor or `timeout` sends it to the
# process that it has started, ends the loader at once with exit code 143. The real program, and the command that it runs, go on: they are ended only by a
# signal to the process group.
#
# Seen: `exit code 143; after 3 s: agent runs, its command runs`. Exits 1 when that changes.
set -euo pipefail
folder=$(mktemp -d)
model=
left() { grep -lZ -s "$folder" /proc/[0-9]*/cmdline 2> /dev/null | tr '\0' '\n' | sed 's|/proc/\([0-9]*\)/.*|\1|' | grep -vx "$$" || true; }
trap 'if [ -n "$model" ]; then kill "$model" 2> /dev/null || true; wait "$model" 2> /dev/null || true; fi; for pid in $(left); do kill -9 "$pid" 2> /dev/null || true; done; sleep 1; rm -rf "$folder"' EXIT
cd "$folder"
echo '{"name":"finding","private":true,"type":"module"}' > package.json
npm install --silent --no-audit --no-fund @github/copilot@1.0.102
cat > model.mjs <<'JS'
import { createServer } from 'node:http'
import { writeFileSync } from 'node:fs'
// A model of the Chat Completions API: it calls the shell.
const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => {
    const command = `touch ${process.cwd()}/started; tail -f ${process.cwd()}/started`
    const call = { name: 'bash', arguments: JSON.stringify({ command, description: 'waits' }) }
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 0, model: 'm' }
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    const tool_calls = [{ index: 0, id: 'call_1', type: 'function', function: call }]
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const event of [
      { ...chunk, choices: [{ index: 0, delta: { role: 'assistant', content: null, tool_calls }, finish_reason: null }] },
      { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }], usage },
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
env HOME="$folder/home" XDG_CACHE_HOME="$folder/home/.cache" COPILOT_PROVIDER_BASE_URL="http://127.0.0.1:$(cat ../port)/v1" COPILOT_PROVIDER_API_KEY=key-7d31c0 \
  COPILOT_MODEL=m COPILOT_OFFLINE=true "$folder/node_modules/.bin/copilot" --output-format json --allow-all --prompt=wait < /dev/null > ../events 2>&1 &
loader=$!
while [ ! -e ../started ]; do sleep 0.1; done
code=0
kill -TERM "$loader"
wait "$loader" || code=$?
sleep 3
runs() { if pgrep -f "$1" > /dev/null; then echo runs; else echo ended; fi; }
seen="exit code $code; after 3 s: agent $(runs "^$folder/node_modules/@github/copilot-.*/copilot "), its command $(runs "^tail -f $folder/started")"
echo "$seen"
[ "$seen" = 'exit code 143; after 3 s: agent runs, its command runs' ] || exit 1
