/**
 * The `tasks/…` methods of one server object. A request that declares the Tasks extension gets the methods of SEP-2663; other requests of a 2025 client
 * get those of protocol version 2025-11-25.
 */
import type { Result, ServerContext } from '@modelcontextprotocol/server'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { OwnerFeed } from '../async-tasks/owner-feed.js'
import type { Elicitations } from './elicitations.js'
import type { FindExchange } from './exchange.js'
import { canElicit, type HandlerRegistry, type LowLevelServer } from './low-level-server.js'
import type { StartedTask } from './mcp-tool.js'
import type { TaskHandle, TaskHandles } from './task-handles.js'
import { createTasks2025, listParamsSchema, type Tasks2025 } from './tasks-2025.js'
import { checkDeclared, createTasksExtension, type TasksExtension } from './tasks-extension.js'
import { declaredBy, taskParamsSchema, updateParamsSchema } from './tasks-extension-wire.js'

/** The protocol by which a client follows the task that was made from its call. */
export type TaskGeneration = 'extension' | '2025-11-25'

export interface McpTasks {
  /** Makes an MCP task of the task that a call has started, and returns the answer to the call. */
  create(started: StartedTask, owner: string, generation: TaskGeneration): Result
  readonly handles: TaskHandles
  readonly extension: TasksExtension
  readonly tasks2025: Tasks2025
  /**
   * Notifies a client of 2025 of changes of its tasks.
   * @returns a function that stops the notifications
   */
  notify(server: LowLevelServer, owner: string): () => void
  /** See `TaskHandles`. */
  forgetExpired(): void
  /** Calls `onEnd` when the task ends, or immediately if it has ended. Does not call it after `signal` has aborted. */
  whenEnded(taskId: string, owner: string, signal: AbortSignal, onEnd: () => void): void
}

export function createMcpTasks(handles: TaskHandles, manager: AsyncTaskManager, elicitations: Elicitations): McpTasks {
  const extension = createTasksExtension(handles, manager)
  const tasks2025 = createTasks2025(handles, manager, elicitations)
  const changes = new OwnerFeed(handles.changes$)

  return {
    create: (started, owner, generation) =>
      (generation === 'extension' ? extension : tasks2025).created(handles.create(started, owner)),
    handles,
    extension,
    tasks2025,
    notify: (server, owner) => {
      const subscription = changes.of(owner).subscribe((handle) => {
        const params = tasks2025.get(handle, canElicit(server))
        // Sending fails when the client has just disconnected.
        server.notification({ method: 'notifications/tasks/status', params }).catch(() => undefined)
      })
      return () => subscription.unsubscribe()
    },
    forgetExpired: () => handles.forgetExpired(),
    whenEnded: (taskId, owner, signal, onEnd) => {
      const subscription = handles.follow(handles.find(taskId, owner)).subscribe({ complete: onEnd })
      signal.addEventListener('abort', () => subscription.unsubscribe(), { once: true })
    },
  }
}

/** One server object, whose `tasks/…` methods are registered. */
export interface TasksOfServer {
  readonly server: LowLevelServer
  readonly working: HandlerRegistry
  readonly app: { readonly tasks: McpTasks }
  readonly owner: string
  readonly exchangeOf: FindExchange
  /** Whether the client uses a protocol version of 2025. */
  readonly is2025: boolean
}

export function registerTasks({ server, working, app, owner, exchangeOf, is2025 }: TasksOfServer): void {
  const find = (taskId: string): TaskHandle => app.tasks.handles.find(taskId, owner)
  const hasExtension = (context: ServerContext): boolean => !is2025 || declaredBy(context).hasTasks
  working.setRequestHandler('tasks/get', { params: taskParamsSchema }, ({ taskId }, context) => {
    const { extension, tasks2025 } = app.tasks
    if (!hasExtension(context)) return tasks2025.get(find(taskId), canElicit(server))
    const declared = checkDeclared(context)
    return extension.get(find(taskId), declared, exchangeOf(context))
  })
  working.setRequestHandler('tasks/cancel', { params: taskParamsSchema }, ({ taskId }, context) => {
    if (!hasExtension(context)) return app.tasks.tasks2025.cancel(find(taskId))
    checkDeclared(context)
    return app.tasks.extension.cancel(find(taskId))
  })
  working.setRequestHandler('tasks/update', { params: updateParamsSchema }, (params, context) => {
    checkDeclared(context)
    // The SDK moves `inputResponses` from the parameters to the context for the methods that it knows.
    const responses = params.inputResponses ?? context.mcpReq.inputResponses ?? {}
    return app.tasks.extension.update(find(params.taskId), responses)
  })
  if (!is2025) return
  working.setRequestHandler('tasks/result', { params: taskParamsSchema }, ({ taskId }, context) =>
    app.tasks.tasks2025.result(find(taskId), canElicit(server), context, exchangeOf(context)),
  )
  working.setRequestHandler('tasks/list', { params: listParamsSchema }, (params) =>
    app.tasks.tasks2025.list(owner, params?.cursor, canElicit(server)),
  )
}
