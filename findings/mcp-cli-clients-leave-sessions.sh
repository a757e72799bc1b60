#!/usr/bin/env bash
# Two command-line clients of MCP end without ending their HTTP session: mcporter 0.12.3 (`mcporter list`) and @modelcontextprotocol/inspector 2.12.0
# (`--cli`). The specification says that a client which no longer needs its session SHOULD send HTTP DELETE (Streamable HTTP, "Session Management"). A
# server that keeps state for each session keeps one more for every call of these commands until it times out.
#
# Seen: each client opens one session of a server of @modelcontextprotocol/sdk 1.32.2 and lists its tool; the server gets no DELETE. Client of the SDK
# with `terminateSession`: one DELETE. Exits 1 when that changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{"name":"finding","private":true,"type":"module"}' > package.json
npm install --silent --no-audit --no-fund --ignore-scripts @modelcontextprotocol/sdk@1.32.2 @modelcontextprotocol/inspector@2.12.0 mcporter@0.12.3 zod@4.6.7
cat > sessions.mjs <<'JS'
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'

const sessions = new Map()
let [opened, deleted] = [0, 0]
const server = createServer(async (request, response) => {
  if (request.method === 'DELETE') deleted += 1
  let transport = sessions.get(request.headers['mcp-session-id'])
  if (transport === undefined) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => {
        opened += 1
        sessions.set(id, transport)
      },
    })
    const mcp = new McpServer({ name: 'one-tool', version: '1.0.0' })
    mcp.registerTool('ping', { description: 'Returns pong' }, () => ({ content: [{ type: 'text', text: 'pong' }] }))
    await mcp.connect(transport)
  }
  await transport.handleRequest(request, response)
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const url = `http://127.0.0.1:${server.address().port}/mcp`

async function run(command, args) {
  ;[opened, deleted] = [0, 0]
  const child = spawn(`node_modules/.bin/${command}`, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.on('data', (chunk) => (text += chunk))
  const [code] = await once(child, 'exit')
  return { code, lists: text.includes('ping'), opened: opened > 0, deleted }
}

async function byHand() {
  ;[opened, deleted] = [0, 0]
  const client = new Client({ name: 'by-hand', version: '1.0.0' })
  const transport = new StreamableHTTPClientTransport(new URL(url))
  await client.connect(transport)
  await client.listTools()
  await transport.terminateSession()
  await client.close()
  return { opened: opened > 0, deleted }
}

const results = {
  mcporter: await run('mcporter', ['list', url, '--allow-http']),
  inspector: await run('mcp-inspector', ['--cli', url, '--transport', 'http', '--method', 'tools/list']),
  sdk: await byHand(),
}
console.log(JSON.stringify(results))
const leaves = ({ lists, opened, deleted }) => lists && opened && deleted === 0
process.exit(leaves(results.mcporter) && leaves(results.inspector) && results.sdk.deleted === 1 ? 0 : 1)
JS
node sessions.mjs
