/** One MCP server object for one caller, on the low-level `Server` of the SDK: tools, resources, and the Tasks extension. */
import {
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type CallToolResult,
  type Result,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { preview } from '../preview.js'
import type { Backend } from './backend.js'
import { guardTools, type Caller } from './callers.js'
import { createLowLevelServer, type LowLevelServer } from './low-level-server.js'
import { isStarted, listed, type McpTool } from './mcp-tool.js'
import { feedResources } from './resource-feed.js'
import { registerResources, resourceChanges } from './resources.js'
import { createTaskTools } from './task-tools.js'
import { createTasksExtension, type TasksExtension } from './tasks-extension.js'
import { declaredBy, REQUIRED_CAPABILITIES, TASKS_EXTENSION } from './tasks-extension-wire.js'
import { packageVersion } from '../version.js'

/** What all connections of one server share. */
export interface McpApp {
  readonly backend: Backend
  readonly extension: TasksExtension
  readonly createTools: (owner: string) => readonly McpTool[]
  /** Ends every task and every program. */
  close(): Promise<void>
}

/**
 * Puts a server together.
 * @param createTools the tools for one owner; default: those of this package
 */
export function createMcpApp(
  backend: Backend,
  createTools: McpApp['createTools'] = (owner) => createTaskTools(backend, owner),
): McpApp {
  const { manager, clock, config } = backend
  const extension = createTasksExtension({ manager, clock, ...config.tasks })
  return {
    ...{ backend, extension, createTools },
    close: async () => {
      extension.close()
      await backend.close()
    },
  }
}

const INSTRUCTIONS = [
  'Runs work in the background. Start it with the tool task (a subagent) or submit_commands (tool calls on an instance), with',
  'async: true, and go on with other work. check_async_tasks shows how it is doing, wait_for_async_tasks waits for results,',
  'read_task_output reads what a task has written, answer_async_task answers what a task asks, cancel_async_task stops it.',
].join(' ')

/** How changes of resources reach a client: by `resources/subscribe` (2025), by `subscriptions/listen` (2026), or elsewhere. */
export type ChangeDelivery = 'subscribe' | 'listen' | 'none'

/** Makes the server of one caller. Closing it stops its notifications, and none of its tasks. */
export function createMcpServer(app: McpApp, caller: Caller, delivery: ChangeDelivery): LowLevelServer {
  const { backend, extension } = app
  const { owner, isAnonymous } = caller
  const own = app.createTools(owner)
  const tools = isAnonymous ? guardTools(own, backend.manager) : own
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  const server = createLowLevelServer(
    { name: 'agent-tasks', title: 'agent-tasks', version: packageVersion },
    {
      capabilities: {
        tools: {},
        resources: { subscribe: true, listChanged: true },
        extensions: { [TASKS_EXTENSION]: {} },
      },
      instructions: INSTRUCTIONS,
    },
  )
  server.setRequestHandler('tools/list', () => ({ tools: tools.map(listed) }))
  server.setRequestHandler('tools/call', ({ params: { name, arguments: args = {} } }, context) => {
    const tool = byName.get(name)
    if (tool === undefined) {
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${preview(name)}.`)
    }
    // The types of the SDK do not know that the answer may be a task (SEP-2663).
    return callTool(tool, args, context, extension, owner) as Promise<CallToolResult>
  })
  registerResources(server, backend, owner, !isAnonymous)
  extension.register(server, owner)
  if (delivery !== 'none') notifyOfTasks(server, backend, owner, delivery)
  return server
}

async function callTool(
  tool: McpTool,
  args: Readonly<Record<string, unknown>>,
  context: ServerContext,
  extension: TasksExtension,
  owner: string,
): Promise<Result> {
  const { signal, inputResponses } = context.mcpReq
  const call = { signal, inputResponses }
  if (declaredBy(context).hasTasks) {
    const started = await tool.start?.(args, call)
    if (started !== undefined) return isStarted(started) ? extension.create(started, owner) : started
  } else if (tool.requiresTask === true) {
    throw new MissingRequiredClientCapabilityError({ requiredCapabilities: REQUIRED_CAPABILITIES })
  }
  return tool.call(args, call)
}

function notifyOfTasks(
  server: LowLevelServer,
  backend: Backend,
  owner: string,
  delivery: 'subscribe' | 'listen',
): void {
  const subscribed = new Set<string>()
  if (delivery === 'subscribe') {
    server.setRequestHandler('resources/subscribe', ({ params: { uri } }) => {
      subscribed.add(uri)
      return {}
    })
    server.setRequestHandler('resources/unsubscribe', ({ params: { uri } }) => {
      subscribed.delete(uri)
      return {}
    })
  }
  // A client that has just gone is told nothing, and that is all there is to say.
  const drop = (): undefined => undefined
  const feed = feedResources(
    resourceChanges(backend),
    (change) => change.owner === owner,
    {
      onListChange: () => void server.sendResourceListChanged().catch(drop),
      onUpdate: (uri) => {
        if (delivery === 'listen' || subscribed.has(uri)) void server.sendResourceUpdated({ uri }).catch(drop)
      },
    },
    backend.clock,
  )
  server.onclose = () => feed.close()
}
