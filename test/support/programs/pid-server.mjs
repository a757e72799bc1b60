// An MCP server over stdio with one tool, pid, which returns the id of its process.
import { createInterface } from 'node:readline'

const results = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'pid', version: '1.0.0' },
  }),
  'tools/list': () => ({ tools: [{ name: 'pid', inputSchema: { type: 'object' } }] }),
  'tools/call': () => ({ content: [{ type: 'text', text: String(process.pid) }] }),
  ping: () => ({}),
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  const answer = results[method]
  if (id === undefined) continue
  const message = answer ? { result: answer(params) } : { error: { code: -32601, message: `no method ${method}` } }
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...message })}\n`)
}
