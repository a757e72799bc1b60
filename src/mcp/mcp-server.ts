/** The MCP server object of one client, on the SDK's low-level `Server`: tools, resources, and the Tasks extension. */
import {
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type CallToolResult,
  type Result,
  type ServerContext,
} from '@modelcontextprotocol/server'
import { AsyncTaskReminderService } from '../async-tasks/reminder-service.js'
import { preview } from '../preview.js'
import { packageVersion } from '../version.js'
import type { Backend } from './backend.js'
import { guardTools, namedIn, type Caller } from './callers.js'
import { addImages, addOwed, CarriedResults } from './carried-results.js'
import { imagesOf } from './command-images.js'
import { Confirmations } from './confirmations.js'
import { assumedExchange, type Exchange, type FindExchange } from './exchange.js'
import { createLowLevelServer, type LowLevelServer } from './low-level-server.js'
import { isStarted, listed, type McpCall, type McpResult, type McpTool, type StartedTask } from './mcp-tool.js'
import { reportProgress } from './progress.js'
import { markResult, withMarks } from './result-marks.js'
import { feedResources, registerResources, resourceChanges, taskIdOf, taskOf, taskUri } from './resources.js'
import { projectOf, type FindProject } from './working-directory.js'
import { createTaskTools, FOLLOW_UPS, taskResult } from './task-tools.js'
import { createTasksExtension, type TasksExtension } from './tasks-extension.js'
import { declaredBy, REQUIRED_CAPABILITIES, TASKS_EXTENSION } from './tasks-extension-wire.js'

/** What all connections of one server share. */
export interface McpApp {
  readonly backend: Backend
  readonly extension: TasksExtension
  readonly confirmations: Confirmations
  readonly createTools: (owner: string, findProject?: FindProject) => readonly McpTool[]
  /** Cancels every task and stops every program. */
  close(): Promise<void>
}

/** @param createTools the tools for one owner; default: those of this package */
export function createMcpApp(
  backend: Backend,
  createTools: McpApp['createTools'] = (owner, findProject) => createTaskTools(backend, owner, findProject),
): McpApp {
  const confirmations = new Confirmations(backend.manager)
  const extension = createTasksExtension({
    ...{ backend, confirmations },
    toEarlierResult: (record) => taskResult(backend, record),
  })
  return {
    ...{ backend, extension, confirmations, createTools },
    close: async () => {
      extension.close()
      await backend.close()
    },
  }
}

const INSTRUCTIONS = [
  'Runs work in the background. Start it with the tool task (a subagent) or submit_commands (tool calls on an instance), with',
  'async: true, and continue with other work. check_async_tasks shows the status, wait_for_async_tasks waits for results,',
  'read_task_output reads the output of a task, answer_async_task answers the question of a task, send_to_task tells it more, cancel_async_task stops it.',
].join(' ')

/**
 * How a client receives notifications about resources: for those it subscribed to with `resources/subscribe` (2025), for all of its own
 * over a `subscriptions/listen` stream (2026-07-28), or not from this server object.
 */
export type ChangeDelivery = 'subscribe' | 'listen' | 'none'

/**
 * Creates the server of one client. Closing it ends its notifications; its tasks continue.
 * @param exchangeOf finds the exchange of a request; default: every answer counts as written
 */
export function createMcpServer(
  app: McpApp,
  caller: Caller,
  delivery: ChangeDelivery,
  exchangeOf: FindExchange = assumedExchange,
): LowLevelServer {
  const { backend, extension } = app
  const { owner, isAnonymous, isLocal } = caller
  const hasStore = backend.session !== undefined
  // Another machine's paths mean nothing here.
  const own = app.createTools(owner, isLocal === true ? () => projectOf(server) : undefined)
  const guarded = isAnonymous ? guardTools(own, backend.manager) : own
  const tools = hasStore ? guarded.map(withMarks) : guarded
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  const reminders = new AsyncTaskReminderService(backend.manager, {
    maxMessageChars: backend.config.maxMessageChars,
    answerWith: FOLLOW_UPS.answer,
  })
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
    // The SDK's types do not allow a task as the answer (SEP-2663).
    const callee = { tool, app, reminders, caller }
    return answerCall(callee, args, context, exchangeOf(context)) as Promise<CallToolResult>
  })
  registerResources(server, backend, owner, { isListed: !isAnonymous })
  extension.register(server, owner, exchangeOf)
  if (delivery !== 'none') sendChanges(server, backend, owner, delivery)
  return server
}

interface Callee {
  readonly tool: McpTool
  readonly app: McpApp
  readonly reminders: AsyncTaskReminderService
  readonly caller: Caller
}

/** What the answer carries is delivered when it was written out: what was not is owed again. */
async function answerCall(
  { tool, app: { backend, extension, confirmations }, reminders, caller }: Callee,
  args: Readonly<Record<string, unknown>>,
  context: ServerContext,
  exchange: Exchange,
): Promise<Result> {
  const { signal, inputResponses } = context.mcpReq
  const { owner, isAnonymous } = caller
  const carried = new CarriedResults()
  const begunAt = confirmations.begin()
  const progress = reportProgress(context, backend.clock)
  try {
    caller.onNamed?.(namedIn(args))
    const call = { signal, inputResponses, detach: exchange.lost, hold: carried.hold, onUpdate: progress.onUpdate }
    const result = await callTool(tool, args, call, declaredBy(context).hasTasks)
    if (isStarted(result)) return extension.create(result, owner)
    const isReceived = !signal.aborted && !exchange.lost.aborted
    const complete = isReceived && !isAnonymous ? addOwed(result, carried, reminders, owner) : result
    const marked = markResult(complete, carried, backend, owner)
    const answer = addImages(marked, imagesOf(backend.taskManager, carried.taskIds))
    if (signal.aborted) carried.end(false)
    return answer
  } catch (error) {
    carried.end(false)
    throw error
  } finally {
    progress.stop()
    exchange.onEnd((isWritten) => {
      if (isWritten) confirmations.confirm(owner, begunAt)
      if (isWritten && carried.taskIds.length > 0) confirmations.noteWritten(owner)
      carried.end(isWritten)
    })
  }
}

async function callTool(
  tool: McpTool,
  args: Readonly<Record<string, unknown>>,
  call: McpCall,
  canPoll: boolean,
): Promise<StartedTask | McpResult> {
  if (canPoll) {
    const started = await tool.start?.(args, call)
    if (started !== undefined) return started
  } else if (tool.requiresTask === true) {
    throw new MissingRequiredClientCapabilityError({ requiredCapabilities: REQUIRED_CAPABILITIES })
  }
  return tool.call(args, call)
}

/** The most resources that a client of 2025 is subscribed to. */
export const MAX_SUBSCRIPTIONS = 1000

function sendChanges(server: LowLevelServer, backend: Backend, owner: string, delivery: 'subscribe' | 'listen'): void {
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
  const stop = feedResources(
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
  server.onclose = stop
}
