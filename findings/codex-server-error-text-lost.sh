#!/usr/bin/env bash
# codex 0.171.0: the reason of an API error with the status 500 is replaced. The server answers `{"error":{"message":"the disk of the model is full"}}`;
# `turn.failed` of `codex exec --json` says that there is high demand. The reasons of the statuses 400, 401 and 529 are passed on.
#
# Seen: `500: reason lost, "high demand" shown; 529: reason shown`. Exits 1 when that changes.
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
const server = createServer((request, response) => {
  let text = ''
  request.on('data', (chunk) => (text += chunk))
  request.on('end', () => {
    if (request.method !== 'POST') return response.writeHead(404).end()
    const body = JSON.parse(text)
    const status = JSON.stringify(body.input).includes('status 529') ? 529 : 500
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error: { message: 'the disk of the model is full', type: 'server_error' } }))
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
codex -- 'status 500' > ../500 || true
codex -- 'status 529' > ../529 || true
failed() { grep '"type":"turn.failed"' "../$1"; }
first=$(failed 500 | grep -q 'disk of the model' && echo 'reason shown' || echo 'reason lost')
demand=$(failed 500 | grep -q 'high demand' && echo '"high demand" shown' || echo 'no demand')
second=$(failed 529 | grep -q 'disk of the model' && echo 'reason shown' || echo 'reason lost')
echo "500: $first, $demand; 529: $second"
[ "$first, $demand; $second" = 'reason lost, "high demand" shown; reason shown' ] || exit 1
