/**
 * An agent host that a test kills. It starts an MCP server, calls the tool `task`, prints the process id of the server, and then waits for ever.
 *
 * Its argument is JSON: { command, args, call }.
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
