/**
 * Who calls, and so whose tasks a call sees. A connection over stdio and a session over HTTP are clients of their own; where
 * the protocol has neither (streamable HTTP since 2026-07-28), a bearer token names the client. Whoever sends none is
 * anonymous: for them an id that nobody can guess is the key to its task, and nothing is listed.
 */
import { createHash } from 'node:crypto'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { toToolResult } from './mcp-tool.js'
import type { McpResult, McpTool } from './mcp-tool.js'

export interface Caller {
  /** The owner of its tasks. */
  readonly owner: string
  /** It shares its owner with others. */
  readonly isAnonymous: boolean
}

/** Clients that say nothing of themselves. */
export const ANONYMOUS: Caller = { owner: 'anonymous', isAnonymous: true }

/** The client that a token stands for; the token itself is in no record. */
export function callerOfToken(token: string): Caller {
  return { owner: `client-${createHash('sha256').update(token).digest('hex').slice(0, 16)}`, isAnonymous: false }
}

const HOW_TO_BE_KNOWN =
  'This client does not say who it is, so no tasks are listed for it. Name tasks by their full IDs, or configure the client ' +
  'to send a bearer token: each token is a client of its own.'

/** The tools for an anonymous caller: a task is found by its whole id, and all others are as if they were not there. */
export function guardTools(tools: readonly McpTool[], manager: AsyncTaskManager): McpTool[] {
  return tools.map((tool) => ({
    ...tool,
    call: (args, call) => {
      const refusal = refuse(tool.name, args, manager)
      return refusal === undefined ? tool.call(args, call) : Promise.resolve(refusal)
    },
  }))
}

function refuse(
  name: string,
  args: Readonly<Record<string, unknown>>,
  manager: AsyncTaskManager,
): McpResult | undefined {
  const { task_id, task_ids } = args
  const named = [task_id, ...(Array.isArray(task_ids) ? (task_ids as unknown[]) : [])].filter((id) => id !== undefined)
  const unknown = named
    .filter((id) => typeof id === 'string')
    .find((id) => manager.getTask(id)?.owner !== ANONYMOUS.owner)
  if (unknown !== undefined) return toToolResult(`No async task found with ID '${unknown}'. ${HOW_TO_BE_KNOWN}`)
  const isList = named.length === 0 && (name === 'check_async_tasks' || name === 'wait_for_async_tasks')
  return isList ? toToolResult(HOW_TO_BE_KNOWN) : undefined
}
