#!/usr/bin/env bash
# Claude Code 2.1.332: `claude -p` retries a request that the API has refused with 401 (`authentication_error`), as it retries 429 and 5xx. By default it
# does so ten times, so that a wrong API key fails after three minutes; a request refused with 400 is not repeated for that long. The limit of retries is
# set to 2 here. A caller with a deadline below three minutes never sees the reason.
#
# Seen: `401: 3 requests, retries announced: 2, exit code 1`. Exits 1 when that changes.
set -euo pipefail
folder=$(mktemp -d)
model=
trap 'if [ -n "$model" ]; then kill "$model" 2> /dev/null || true; wait "$model" 2> /dev/null || true; fi; rm -rf "$folder"' EXIT
cd "$folder"
echo '{"name":"finding","private":true,"type":"module"}' > package.json
npm install --silent --no-audit --no-fund @anthropic-ai/claude-code@2.1.332
cat > model.mjs <<'JS'
import { createServer } from 'node:http'
import { appendFileSync, writeFileSync } from 'node:fs'
const server = createServer((request, response) => {
  request.resume()
  if (request.method === 'POST' && request.url.startsWith('/v1/messages?')) appendFileSync('requests', 'x')
  response.writeHead(401, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ type: 'error', error: { type: 'authentication_error', message: 'invalid x-api-key' } }))
})
server.listen(0, '127.0.0.1', () => writeFileSync('port', String(server.address().port)))
JS
node model.mjs &
model=$!
while [ ! -s port ]; do sleep 0.1; done
mkdir home project
cd project
code=0
env HOME="$folder/home" ANTHROPIC_BASE_URL="http://127.0.0.1:$(cat ../port)" ANTHROPIC_API_KEY=wrong CLAUDE_CODE_MAX_RETRIES=2 \
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1 \
  "$folder/node_modules/.bin/claude" -p --output-format stream-json --verbose -- hello < /dev/null > ../events 2> /dev/null || code=$?
requests=$(wc -c < ../requests | tr -d ' ')
retries=$(grep -c '"subtype":"api_retry"' ../events || true)
echo "401: $requests requests, retries announced: $retries, exit code $code"
[ "$requests $retries $code" = '3 2 1' ] || exit 1
