/** A host with one instance: a program that speaks MCP just enough to start, and ignores the end of its input and SIGTERM. It prints `ready`. */
import { mcpInstance } from 'agent-tasks/server'

/** The argument of the `sleep` that the program starts in a session of its own. */
const [seconds = ''] = process.argv.slice(2)

const program = `
  const { spawn } = require('node:child_process')
  process.on('SIGTERM', () => {})
  spawn('sleep', [${JSON.stringify(seconds)}], { detached: true, stdio: 'inherit' })
  setInterval(() => {}, 1000)
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line)
    if (id === undefined) return
    const { protocolVersion } = params ?? {}
    const results = {
      initialize: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'deaf', version: '1' } },
      'tools/list': { tools: [] },
    }
    console.log(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} }))
  })`

await mcpInstance({
  id: 'deaf',
  command: process.execPath,
  args: ['-e', program, `deaf-${seconds}`],
  closeGraceMs: 300,
})
console.log('ready')
