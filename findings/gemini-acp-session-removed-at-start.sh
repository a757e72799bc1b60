#!/usr/bin/env bash
# Gemini CLI 0.61.0: `gemini --acp` removes a session that was continued over ACP once, as soon as it is started again in that folder. `session/load` leaves
# a second file for the session, which has no messages. At the next start, the clean-up of expired sessions takes that file for an empty session, and removes
# all files with the same id, so also the conversation, which is minutes old. With `general.sessionRetention.enabled: false` it stays.
#
# Seen: `default settings: loaded, then No previous sessions found for this project.` and `without the clean-up: loaded, then loaded`. Exits 1 when that
# changes. Takes two to three minutes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"name":"finding","private":true,"type":"module"}' > package.json
npm install --silent --no-audit --no-fund @google/gemini-cli@0.61.0
mkdir -p default/.gemini without/.gemini one two
settings() { echo '{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},"general":{"enableAutoUpdate":false'"$1"'},"model":{"name":"gemini-2.5-flash"}}'; }
settings '' > default/.gemini/settings.json
settings ',"sessionRetention":{"enabled":false}' > without/.gemini/settings.json
cat > acp.mjs <<'JS'
import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
// A model of the Gemini API: it says "done".
const model = createServer((request, response) => {
  request.resume()
  request.on('end', () => {
    const whole = {
      candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'done' }] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    }
    const isStream = request.url.includes('stream')
    response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' })
    response.end(isStream ? `data: ${JSON.stringify(whole)}\n\n` : JSON.stringify(whole))
  })
})
await new Promise((resolve) => model.listen(0, '127.0.0.1', resolve))
const env = {
  ...process.env,
  GEMINI_API_KEY: 'x',
  GOOGLE_GEMINI_BASE_URL: `http://127.0.0.1:${model.address().port}`,
}
/** Starts an agent, sends one request after the other, and ends it. Returns the answers. */
async function converse(home, cwd, ...requests) {
  const [program, HOME] = [`${process.cwd()}/node_modules/.bin/gemini`, `${process.cwd()}/${home}`]
  const agent = spawn(program, ['--acp'], { cwd, env: { ...env, HOME }, detached: true, stdio: ['pipe', 'pipe', 'ignore'] })
  const waiting = new Map()
  createInterface({ input: agent.stdout }).on('line', (line) => {
    const message = JSON.parse(line)
    if (message.method === undefined) waiting.get(message.id)?.(message)
  })
  const answers = []
  const all = [['initialize', { protocolVersion: 1, clientCapabilities: {} }], ...requests]
  for (const [id, [method, params]] of all.entries()) {
    const given = typeof params === 'function' ? params(answers) : params
    answers.push(
      await new Promise((resolve) => {
        waiting.set(id, resolve)
        agent.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params: { cwd, mcpServers: [], ...given } })}\n`)
      }),
    )
  }
  const ended = new Promise((resolve) => agent.once('close', resolve))
  // It has started itself once more.
  process.kill(-agent.pid, 'SIGKILL')
  await ended
  return answers
}
const promptOf = (sessionId) => ({ sessionId, prompt: [{ type: 'text', text: 'hello' }] })
const create = async (home, cwd) => {
  const prompt = (answers) => promptOf(answers[1].result.sessionId)
  const [, { result }] = await converse(home, cwd, ['session/new', {}], ['session/prompt', prompt])
  return result.sessionId
}
const resume = async (home, cwd, sessionId) => {
  const [, { result, error }] = await converse(home, cwd, ['session/load', { sessionId }], ['session/prompt', promptOf(sessionId)])
  return result === undefined ? (error.data?.details ?? error.message) : 'loaded'
}
const nextMinute = () => wait(60_500 - (Date.now() % 60_000))
const places = [
  ['default', `${process.cwd()}/one`],
  ['without', `${process.cwd()}/two`],
]
const sessions = []
for (const [home, cwd] of places) sessions.push(await create(home, cwd))
// A session that is loaded in the minute of its creation is lost for another reason.
await nextMinute()
const seen = []
for (const [at, [home, cwd]] of places.entries()) {
  const once = await resume(home, cwd, sessions[at])
  seen.push(`${once}, then ${await resume(home, cwd, sessions[at])}`)
}
console.log(`default settings: ${seen[0]}`)
console.log(`without the clean-up: ${seen[1]}`)
model.closeAllConnections()
model.close()
process.exit(seen[0] === 'loaded, then No previous sessions found for this project.' && seen[1] === 'loaded, then loaded' ? 0 : 1)
JS
node acp.mjs
