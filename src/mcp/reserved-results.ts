/** Adds to the answer of a wait which results are reserved for a host that follows its calls as tasks. */
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { Tool, ToolResult } from '../tools/tool.js'
import { leaseOf } from './task-handles.js'

/** The most ids in a text. */
const MAX_SHOWN = 20

/** The tool wait_for_async_tasks, which also names reserved results when it finds no others. */
export function withReserved(tool: Tool, manager: AsyncTaskManager, owner: string): Tool {
  return {
    ...tool,
    execute: async (input, context) => {
      const result = await tool.execute(input, context)
      return foundNothing(result) ? addReserved(result, tool.name, reservedOf(manager, owner)) : result
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
