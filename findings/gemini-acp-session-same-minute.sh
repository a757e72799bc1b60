#!/usr/bin/env bash
# Gemini CLI 0.61.0: `gemini --acp` destroys a session that a client loads within the minute (of the clock, UTC) in which it was created. The file of a
# session is named by that minute and a part of its id. `session/load` first starts a chat of its own under the same id, so its empty history is appended
# to the same file, and replaces the messages. The load then fails with "No previous sessions found for this project.", now and in later minutes. A session
# that is loaded in a later minute is continued.
#
# Seen: `in the same minute: No previous sessions found for this project.; a minute later: No previous sessions found for this project.` and
# `loaded only in the next minute: loaded`. Exits 1 when that changes. Takes two to three minutes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"name":"finding","private":true,"type":"module"}' > package.json
npm install --silent --no-audit --no-fund @google/gemini-cli@0.61.0
mkdir -p home/.gemini one two
echo '{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},"general":{"enableAutoUpdate":false},"model":{"name":"gemini-2.5-flash"}}' > home/.gemini/settings.json
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
  HOME: `${process.cwd()}/home`,
  GEMINI_API_KEY: 'x',
  GOOGLE_GEMINI_BASE_URL: `http://127.0.0.1:${model.address().port}`,
}
/** Starts an agent, sends one request after the other, and ends it. Returns the answers. */
async function converse(cwd, ...requests) {
  const agent = spawn('./node_modules/.bin/gemini', ['--acp'], { env, detached: true, stdio: ['pipe', 'pipe', 'ignore'] })
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
const create = async (cwd) => {
  const prompt = (answers) => ({ sessionId: answers[1].result.sessionId, prompt: [{ type: 'text', text: 'hello' }] })
  const [, { result }] = await converse(cwd, ['session/new', {}], ['session/prompt', prompt])
  return result.sessionId
}
const load = async (cwd, sessionId) => {
  const [, { result, error }] = await converse(cwd, ['session/load', { sessionId }])
  return result === undefined ? (error.data?.details ?? error.message) : 'loaded'
}
const nextMinute = () => wait(60_500 - (Date.now() % 60_000))
await nextMinute()
const [folderOne, folderTwo] = ['one', 'two'].map((name) => `${process.cwd()}/${name}`)
const [one, two] = await Promise.all([create(folderOne), create(folderTwo)])
const atOnce = await load(folderOne, one)
await nextMinute()
const [later, untouched] = [await load(folderOne, one), await load(folderTwo, two)]
const lost = 'No previous sessions found for this project.'
console.log(`in the same minute: ${atOnce}; a minute later: ${later}`)
console.log(`loaded only in the next minute: ${untouched}`)
model.closeAllConnections()
model.close()
process.exit(atOnce === lost && later === lost && untouched === 'loaded' ? 0 : 1)
JS
node acp.mjs
