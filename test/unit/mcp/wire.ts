/** Sends raw requests of protocol version 2026-07-28 to a server. The test owns the clock. */
import type { ClusterTasks } from '../../../src/command-tasks/cluster-tasks.js'
import { createMcpHandler } from '@modelcontextprotocol/server'
import { createBackend } from '../../../src/mcp/backend.js'
import { ANONYMOUS, type Caller } from '../../../src/mcp/callers.js'
import { createMcpApp, type McpApp } from '../../../src/mcp/mcp-app.js'
import { createMcpServer } from '../../../src/mcp/mcp-server.js'
import type { AgentConfigInput } from '../../../src/protocol/agent-config.js'
import type { Subagent } from '../../../src/tools/subagents.js'
import { createManualClock } from '../../../src/testing/manual-clock.js'

export interface Reply {
  readonly status: number
  readonly result: Readonly<Record<string, unknown>>
  readonly error: { readonly code: number; readonly message: string; readonly data?: unknown } | undefined
}

export const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
export const ALICE: Caller = { owner: 'alice', isAnonymous: false }
export const BOB: Caller = { owner: 'bob', isAnonymous: false }

const MCP_NAMES: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'resources/read': 'uri',
  'prompts/get': 'name',
}
let lastId = 0

/** Sends one request as a caller, declaring the given capabilities. */
export async function send(
  app: McpApp,
  caller: Caller,
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  capabilities: object = {},
): Promise<Reply> {
  const name = params[MCP_NAMES[method] ?? 'taskId']
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': method,
    ...(typeof name === 'string' && { 'mcp-name': name }),
  }
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  }
  const body = JSON.stringify({ jsonrpc: '2.0', id: ++lastId, method, params: { ...params, _meta } })
  const handler = createMcpHandler(() => createMcpServer(app, caller, 'none'), { legacy: 'reject' })
  const response = await handler.fetch(new Request('http://127.0.0.1/mcp', { method: 'POST', headers, body }))
  const { result, error } = (await response.json()) as Omit<Reply, 'status'>
  return { status: response.status, result, error }
}

/** Launches a task for an anonymous client, which follows it by its id (Tasks extension). */
export async function launchAnonymous(app: McpApp, subagent_name: string): Promise<string> {
  const call = { name: 'task', arguments: { subagent_name, goal_prompt: 'g' } }
  return (await send(app, ANONYMOUS, 'tools/call', call, TASKS)).result['taskId'] as string
}

/** A server whose subagents are functions of the test. */
export function setUpApp(
  subagents: Readonly<Record<string, Subagent>> = {},
  config: AgentConfigInput = {},
  createTools?: (backend: McpApp['backend']) => McpApp['createTools'],
  taskManager?: ClusterTasks,
) {
  const clock = createManualClock(Date.UTC(2026, 0, 1))
  const logged: string[] = []
  const backend = createBackend({
    config,
    clock,
    writeLog: (line) => logged.push(line),
    taskManager,
    subagents: Object.fromEntries(
      Object.entries(subagents).map(([name, run]) => [name, { name, description: `Does ${name}`, run }]),
    ),
  })
  const app = createMcpApp(backend, createTools?.(backend))
  const call = (name: string, args: object = {}, capabilities: object = TASKS, caller = ALICE) =>
    send(app, caller, 'tools/call', { name, arguments: args }, capabilities)
  const get = (taskId: string, capabilities: object = TASKS, caller = ALICE) =>
    send(app, caller, 'tasks/get', { taskId }, capabilities)
  const sendAs = (method: string, params: Readonly<Record<string, unknown>> = {}, caller = ALICE) =>
    send(app, caller, method, params)
  return { app, backend, manager: backend.manager, clock, logged, call, get, send: sendAs }
}
