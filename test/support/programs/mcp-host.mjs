/**
 * An agent host that a test kills: it starts an MCP server, calls the tool `task` with what it is told, says the server's
 * process id, and then does nothing for ever.
 *
 * Argument: JSON of { command, args, call }.
 */
import process from 'node:process'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'

const { command, args, calls } = JSON.parse(process.argv[2])
const transport = new StdioClientTransport({ command, args, stderr: 'ignore' })
const client = new Client({ name: 'host', version: '1.0.0' })
await client.connect(transport)
for (const call of calls) await client.callTool(call)
console.log(transport.pid)
setInterval(() => undefined, 1000)
