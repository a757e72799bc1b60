/** The MCP server object of one client, on the SDK's low-level `Server`: tools, resources, a prompt, and tasks. */
import { ProtocolError, ProtocolErrorCode, type CallToolResult, type ServerContext } from '@modelcontextprotocol/server'
import { describeFailure } from '../protocol/outcomes.js'
import { preview } from '../data/preview.js'
import { packageVersion } from '../system/version.js'
import { registerPrompt } from './background-tasks-prompt.js'
import { guardTools, type Caller } from './callers.js'
import { assumedExchange, type FindExchange } from './exchange.js'
import {
  canElicit,
  clientNameOf,
  createLowLevelServer,
  type HandlerRegistry,
  type LowLevelServer,
} from './low-level-server.js'
import type { McpApp } from './mcp-app.js'
import type { ResultArrival } from './follow-ups.js'
import { registerTasks } from './mcp-tasks.js'
import { instructionsFor } from './instructions.js'
import type { ConnectionPart, RoutedCall } from './mcp-feature.js'
import { mcpFeatures } from './mcp-features.js'
import { listed, toToolResult, type McpTool } from './mcp-tool.js'
import { feedResources, registerResources, registerTemplates, taskIdOf, taskOf, taskUri } from './resources.js'
import { createTaskProgress } from './task-progress.js'
import { TASKS_CAPABILITY } from './tasks-2025.js'
import { declaredBy, TASKS_EXTENSION } from './tasks-extension-wire.js'
import { answerCall } from './tool-answers.js'
import { refuseCall, UNTRUSTED } from './untrusted-tools.js'
import { projectOf } from './working-directory.js'

/**
 * How this server object notifies its client about changes of resources:
 * - `subscribe`: about those that the client subscribed to with `resources/subscribe` (protocol versions of 2025)
 * - `listen`: about all resources of the client, over a `subscriptions/listen` stream (2026-07-28)
 * - `none`: not at all
 */
export type ChangeDelivery = 'subscribe' | 'listen' | 'none'

/**
 * Creates the server object of one client. Closing it ends the notifications, but the client's tasks continue.
 * @param exchangeOf finds the exchange of a request; default: every answer counts as written out
 */
export function createMcpServer(
  app: McpApp,
  caller: Caller,
  delivery: ChangeDelivery,
  exchangeOf: FindExchange = assumedExchange,
): LowLevelServer {
  const { backend } = app
  const is2025 = delivery === 'subscribe'
  const { owner, isAnonymous } = caller
  const toolsOf = cachedTools(app, caller, () => server)
  const offered = [...toolsOf(owner).values()].filter(({ isListed = true }) => isListed)
  const connection = { app, caller, identity: app.identity, isLasting: delivery !== 'none' }
  const parts = mcpFeatures.flatMap(({ ofConnection }) => ofConnection?.(connection) ?? [])
  const server = createLowLevelServer(
    { name: 'agent-tasks', title: 'agent-tasks', version: packageVersion },
    {
      capabilities: {
        tools: {},
        prompts: {},
        resources: { subscribe: true, listChanged: true },
        extensions: { [TASKS_EXTENSION]: {} },
        ...(is2025 && { tasks: TASKS_CAPABILITY }),
      },
      instructions: backend.untrusted === undefined ? instructionsFor(offered.map(({ name }) => name)) : UNTRUSTED,
    },
  )
  const taskProgress = createTaskProgress(server, app, owner)
  const named = (context?: ServerContext): void => {
    const clientName = clientNameOf(server, context)
    if (clientName !== undefined) for (const part of parts) part.named(clientName)
  }
  server.oninitialized = () => named()
  server.setRequestHandler('tools/list', (_request, context) => {
    named(context)
    return { tools: offered.map((tool) => listed(tool, is2025)) }
  })
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    named(context)
    const { name, arguments: given = {}, task } = params as typeof params & { readonly task?: object }
    const request = { name, args: given, meta: (context.mcpReq._meta ?? {}) as Readonly<Record<string, unknown>> }
    const unlisted = firstOf(parts, (part) => part.call(request, context.mcpReq.signal))
    if (unlisted !== undefined) {
      const exchange = exchangeOf(context)
      const { text, end } = await unlisted
      exchange.onEnd(end)
      return { content: [{ type: 'text', text }] }
    }
    if (backend.untrusted !== undefined) return refuseCall(backend.untrusted, task !== undefined)
    const unrouted: RoutedCall = { owner, args: given }
    const routed = parts.reduce((call, part) => part.route({ ...request, ...call }), unrouted)
    const { owner: callOwner, args } = routed
    const tool = toolsOf(callOwner, routed.arrival).get(name)
    if (tool === undefined) {
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${preview(name)}.`)
    }
    if (!backend.hasBegun) {
      const failure = await app.begin().then(() => undefined, describeFailure)
      if (failure !== undefined) return toToolResult(failure)
    }
    const callee = {
      tool,
      app,
      caller: callOwner === owner ? caller : { ...caller, owner: callOwner },
      is2025,
      asTask: task !== undefined,
      taskProgress,
      canAsk: is2025 ? canElicit(server) : declaredBy(context).hasElicitation,
    }
    // The cast is needed, because the SDK's types do not allow a task as the answer (SEP-2663).
    return answerCall(callee, args, context, exchangeOf(context)) as Promise<CallToolResult>
  })
  const working = beginning(server, app, named, parts)
  registerResources(working, backend, owner, { isListed: !isAnonymous })
  registerTemplates(server)
  registerPrompt(
    server,
    offered.map(({ name }) => name),
  )
  registerTasks({ server, working, app, owner, exchangeOf, is2025 })
  const stops = [() => taskProgress.close(), ...parts.map((part) => () => part.close())]
  if (is2025) stops.push(app.whenBegun(() => app.tasks.notify(server, owner)))
  if (delivery !== 'none') stops.push(sendChanges(server, working, app, owner, delivery))
  server.onclose = () => {
    for (const stop of stops) stop()
  }
  return server
}

/** Returns the tools of an owner by their names. A connection may have several owners. */
function cachedTools(
  app: McpApp,
  { isAnonymous, isLocal }: Caller,
  serverOf: () => LowLevelServer,
): (owner: string, arrival?: ResultArrival) => ReadonlyMap<string, McpTool> {
  const made = new Map<string, ReadonlyMap<string, McpTool>>()
  return (owner, arrival = 'call') => {
    const key = `${arrival} ${owner}`
    const known = made.get(key)
    if (known !== undefined) return known
    // A client on another machine has its project there, so only local clients are asked for it.
    const own = app.createTools(owner, isLocal === true ? () => projectOf(serverOf()) : undefined, arrival)
    const tools = new Map((isAnonymous ? guardTools(own, app.backend.manager) : own).map((tool) => [tool.name, tool]))
    made.set(key, tools)
    return tools
  }
}

function firstOf<Item, Value>(items: readonly Item[], find: (item: Item) => Value | undefined): Value | undefined {
  for (const item of items) {
    const value = find(item)
    if (value !== undefined) return value
  }
  return undefined
}

/**
 * Registers handlers that begin the work of the server, unless it has begun.
 * @param named looks at who the client is, which decides where the work is stored
 */
function beginning(
  server: LowLevelServer,
  app: McpApp,
  named: (context: ServerContext) => void,
  parts: readonly ConnectionPart[],
): HandlerRegistry {
  const setRequestHandler = (method: string, ...rest: unknown[]): void => {
    const handler = rest.pop() as (...args: unknown[]) => unknown
    const begun = (...args: unknown[]): unknown => {
      if (app.backend.hasBegun) return handler(...args)
      named(args[1] as ServerContext)
      if (method === 'resources/list' && parts.some(({ awaitsConversation }) => awaitsConversation)) {
        return { resources: [] }
      }
      return app.begin().then(() => handler(...args))
    }
    ;(server.setRequestHandler as (...args: unknown[]) => void).call(server, method, ...rest, begun)
  }
  return { setRequestHandler: setRequestHandler }
}

/** The maximum number of resource subscriptions of a client of 2025. */
const MAX_SUBSCRIPTIONS = 1000

/** @returns a function that stops the notifications */
function sendChanges(
  server: LowLevelServer,
  working: HandlerRegistry,
  app: McpApp,
  owner: string,
  delivery: 'subscribe' | 'listen',
): () => void {
  const { backend } = app
  const subscribed = new Set<string>()
  if (delivery === 'subscribe') {
    working.setRequestHandler('resources/subscribe', ({ params: { uri } }) => {
      const { id } = taskOf(backend.manager, owner, uri)
      if (subscribed.size >= MAX_SUBSCRIPTIONS && !subscribed.has(taskUri(id))) {
        const message = `A client can subscribe to ${MAX_SUBSCRIPTIONS} resources. Unsubscribe from one first.`
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, message)
      }
      subscribed.add(taskUri(id))
      return {}
    })
    working.setRequestHandler('resources/unsubscribe', ({ params: { uri } }) => {
      subscribed.delete(uri)
      return {}
    })
  }
  // Sending fails when the client has just disconnected.
  const ignore = (): undefined => undefined
  return app.whenBegun(() =>
    feedResources(
      app.work.changes.of(owner),
      {
        onListChange: () => void server.sendResourceListChanged().catch(ignore),
        onUpdate: (uri) => {
          if (delivery === 'listen' || subscribed.has(uri)) void server.sendResourceUpdated({ uri }).catch(ignore)
          if (backend.manager.getTask(taskIdOf(uri)) === undefined) subscribed.delete(uri)
        },
      },
      backend.clock,
    ),
  )
}
