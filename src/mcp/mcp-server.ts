/** The MCP server object of one client, on the SDK's low-level `Server`: tools, resources, a prompt, and tasks. */
import { ProtocolError, ProtocolErrorCode, type CallToolResult } from '@modelcontextprotocol/server'
import { AsyncTaskReminderService } from '../async-tasks/delivery/reminder-service.js'
import { preview } from '../text/preview.js'
import { packageVersion } from '../version.js'
import { registerPrompt } from './background-tasks-prompt.js'
import type { Backend } from './backend.js'
import { guardTools, type Caller } from './callers.js'
import { assumedExchange, type FindExchange } from './exchange.js'
import { FOLLOW_UPS } from './follow-ups.js'
import { canElicit, createLowLevelServer, type LowLevelServer } from './low-level-server.js'
import type { McpApp } from './mcp-app.js'
import { instructionsFor } from './instructions.js'
import { listed } from './mcp-tool.js'
import { withMarks } from './result-marks.js'
import { feedResources, registerResources, resourceChanges, taskIdOf, taskOf, taskUri } from './resources.js'
import { createTaskProgress } from './task-progress.js'
import { TASKS_CAPABILITY } from './tasks-2025.js'
import { TASKS_EXTENSION } from './tasks-extension-wire.js'
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
  const { owner, isAnonymous, isLocal } = caller
  const hasStore = backend.session !== undefined
  // A client on another machine has its project there, so only local clients are asked for it.
  const own = app.createTools(owner, isLocal === true ? () => projectOf(server) : undefined)
  const guarded = isAnonymous ? guardTools(own, backend.manager) : own
  const tools = hasStore ? guarded.map(withMarks) : guarded
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  const offered = tools.filter(({ isListed = true }) => isListed)
  const reminders = new AsyncTaskReminderService(backend.manager, {
    maxMessageChars: backend.config.maxMessageChars,
    answerWith: FOLLOW_UPS.answer,
    readWith: FOLLOW_UPS.read,
  })
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
  server.setRequestHandler('tools/list', () => ({ tools: offered.map((tool) => listed(tool, is2025)) }))
  server.setRequestHandler('tools/call', ({ params }, context) => {
    const { name, arguments: args = {}, task } = params as typeof params & { readonly task?: object }
    if (backend.untrusted !== undefined) return refuseCall(backend.untrusted, task !== undefined)
    const tool = byName.get(name)
    if (tool === undefined) {
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${preview(name)}.`)
    }
    const callee = {
      tool,
      app,
      reminders,
      caller,
      is2025,
      asTask: task !== undefined,
      taskProgress,
      canAsk: is2025 && canElicit(server),
    }
    // The cast is needed, because the SDK's types do not allow a task as the answer (SEP-2663).
    return answerCall(callee, args, context, exchangeOf(context)) as Promise<CallToolResult>
  })
  registerResources(server, backend, owner, { isListed: !isAnonymous })
  registerPrompt(
    server,
    offered.map(({ name }) => name),
  )
  const stops = [() => taskProgress.close(), app.tasks.register(server, owner, exchangeOf, is2025)]
  if (delivery !== 'none') stops.push(sendChanges(server, backend, owner, delivery))
  server.onclose = () => {
    for (const stop of stops) stop()
  }
  return server
}

/** The maximum number of resource subscriptions of a client of 2025. */
export const MAX_SUBSCRIPTIONS = 1000

/** @returns a function that stops the notifications */
function sendChanges(
  server: LowLevelServer,
  backend: Backend,
  owner: string,
  delivery: 'subscribe' | 'listen',
): () => void {
  const { manager, clock } = backend
  const subscribed = new Set<string>()
  if (delivery === 'subscribe') {
    server.setRequestHandler('resources/subscribe', ({ params: { uri } }) => {
      const { id } = taskOf(manager, owner, uri)
      if (subscribed.size >= MAX_SUBSCRIPTIONS && !subscribed.has(taskUri(id))) {
        const message = `A client can subscribe to ${MAX_SUBSCRIPTIONS} resources. Unsubscribe from one first.`
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, message)
      }
      subscribed.add(taskUri(id))
      return {}
    })
    server.setRequestHandler('resources/unsubscribe', ({ params: { uri } }) => {
      subscribed.delete(uri)
      return {}
    })
  }
  // Sending fails when the client has just disconnected.
  const ignore = (): undefined => undefined
  return feedResources(
    resourceChanges(backend),
    (change) => change.owner === owner,
    {
      onListChange: () => void server.sendResourceListChanged().catch(ignore),
      onUpdate: (uri) => {
        if (delivery === 'listen' || subscribed.has(uri)) void server.sendResourceUpdated({ uri }).catch(ignore)
        if (manager.getTask(taskIdOf(uri)) === undefined) subscribed.delete(uri)
      },
    },
    clock,
  )
}
