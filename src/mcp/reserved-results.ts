/**
 * Names reserved results in the answer of `wait_for_async_tasks`. A result is reserved if the host of the model follows the call as an MCP task and
 * fetches the result itself.
 */
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { Tool, ToolResult } from '../tools/tool.js'
import { leaseOf } from './task-handles.js'

/** The maximum number of ids in the text. */
const MAX_SHOWN = 20

/** Wraps `wait_for_async_tasks`: if it finds nothing to wait for, its answer names the reserved results. */
export function withReserved(tool: Tool, getManager: () => AsyncTaskManager, owner: string): Tool {
  return {
    ...tool,
    execute: async (input, context) => {
      const result = await tool.execute(input, context)
      return foundNothing(result) ? addReserved(result, tool.name, reservedOf(getManager(), owner)) : result
    },
  }
}

function foundNothing({ metadata: { settled, pending } = {}, error }: ToolResult): boolean {
  return error === undefined && [settled, pending].every((ids) => Array.isArray(ids) && ids.length === 0)
}

function reservedOf(manager: AsyncTaskManager, owner: string): string[] {
  const { ledger } = manager.reads
  return manager
    .getAllTasks()
    .filter((task) => task.owner === owner && ledger.lease(leaseOf(task.id)) !== undefined)
    .map(({ id }) => id)
}

function addReserved(result: ToolResult, name: string, ids: readonly string[]): ToolResult {
  if (ids.length === 0) return result
  const shown = ids.slice(0, MAX_SHOWN)
  const text = [
    result.llmContent,
    `${ids.length} result(s) are reserved for the client, which fetches them itself (tasks/result, tasks/get).`,
    `To get them here, call ${name} with ${JSON.stringify({ task_ids: shown })}.`,
  ].join(' ')
  return { ...result, llmContent: text, returnDisplay: text }
}
