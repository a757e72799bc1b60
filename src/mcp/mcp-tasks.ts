/**
 * The `tasks/…` methods of one server object. A request that declares the Tasks extension gets the methods of SEP-2663; other requests of a 2025 client
 * get those of protocol version 2025-11-25.
 */
import type { Result, ServerContext } from '@modelcontextprotocol/server'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { Elicitations } from './elicitations.js'
import type { FindExchange } from './exchange.js'
import { canElicit, type LowLevelServer } from './low-level-server.js'
import type { StartedTask } from './mcp-tool.js'
import type { TaskHandle, TaskHandles } from './task-handles.js'
import { createTasks2025, listParamsSchema } from './tasks-2025.js'
import { checkDeclared, createTasksExtension } from './tasks-extension.js'
import { declaredBy, taskParamsSchema, updateParamsSchema } from './tasks-extension-wire.js'

/** The protocol by which a client follows the task that was made from its call. */
export type TaskGeneration = 'extension' | '2025-11-25'

export interface McpTasks {
  /** Makes an MCP task of the task that a call has started, and returns the answer to the call. */
  create(started: StartedTask, owner: string, generation: TaskGeneration): Result
  /**
   * Registers the `tasks/…` methods for the tasks of one owner.
   * @param is2025 whether the client uses a protocol version of 2025
   * @returns a function that stops the notifications about the owner's tasks
   */
  register(server: LowLevelServer, owner: string, exchangeOf: FindExchange, is2025: boolean): () => void
  /** See `TaskHandles`. */
  forgetExpired(): void
  /** Calls `onEnd` when the task ends, or immediately if it has ended. Does not call it after `signal` has aborted. */
  whenEnded(taskId: string, owner: string, signal: AbortSignal, onEnd: () => void): void
}

export function createMcpTasks(handles: TaskHandles, manager: AsyncTaskManager, elicitations: Elicitations): McpTasks {
  const extension = createTasksExtension(handles, manager)
  const tasks2025 = createTasks2025(handles, manager, elicitations)

  return {
    create: (started, owner, generation) =>
      (generation === 'extension' ? extension : tasks2025).created(handles.create(started, owner)),
    register: (server, owner, exchangeOf, is2025) => {
      const find = (taskId: string): TaskHandle => handles.find(taskId, owner)
      const hasExtension = (context: ServerContext): boolean => !is2025 || declaredBy(context).hasTasks
      server.setRequestHandler('tasks/get', { params: taskParamsSchema }, ({ taskId }, context) => {
        if (!hasExtension(context)) return tasks2025.get(find(taskId), canElicit(server))
        const declared = checkDeclared(context)
        return extension.get(find(taskId), declared, exchangeOf(context))
      })
      server.setRequestHandler('tasks/cancel', { params: taskParamsSchema }, ({ taskId }, context) => {
        if (!hasExtension(context)) return tasks2025.cancel(find(taskId))
        checkDeclared(context)
        return extension.cancel(find(taskId))
      })
      server.setRequestHandler('tasks/update', { params: updateParamsSchema }, (params, context) => {
        checkDeclared(context)
        // The SDK moves `inputResponses` from the parameters to the context for the methods that it knows.
        return extension.update(find(params.taskId), params.inputResponses ?? context.mcpReq.inputResponses ?? {})
      })
      if (!is2025) return () => undefined
      server.setRequestHandler('tasks/result', { params: taskParamsSchema }, ({ taskId }, context) =>
        tasks2025.result(find(taskId), canElicit(server), context, exchangeOf(context)),
      )
      server.setRequestHandler('tasks/list', { params: listParamsSchema }, (params) =>
        tasks2025.list(owner, params?.cursor, canElicit(server)),
      )
      const subscription = handles.changes$.subscribe((handle) => {
        if (handle.owner !== owner) return
        const params = tasks2025.get(handle, canElicit(server))
        // Sending fails when the client has just disconnected.
        server.notification({ method: 'notifications/tasks/status', params }).catch(() => undefined)
      })
      return () => subscription.unsubscribe()
    },
    forgetExpired: () => handles.forgetExpired(),
    whenEnded: (taskId, owner, signal, onEnd) => {
      const handle = handles.find(taskId, owner)
      if (handle.end !== undefined) {
        onEnd()
        return
      }
      const subscription = handles.changes$.subscribe({
        next: (changed) => {
          if (changed === handle && changed.end !== undefined) onEnd()
        },
        complete: onEnd,
      })
      signal.addEventListener('abort', () => subscription.unsubscribe(), { once: true })
    },
  }
}
