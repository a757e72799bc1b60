/**
 * Identifies the client that sent a request. The client determines which tasks the request can see.
 *
 * A stdio connection and an HTTP session are one client each. Streamable HTTP has no sessions since protocol version 2026-07-28, so a bearer token
 * identifies the client there. A client without a token is anonymous: it gets no lists of tasks, and can use a task only by its full id, which cannot be
 * guessed.
 */
import { prunedTasks } from '../features/history/pruned-tasks.js'
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import { prunedText } from '../features/task-ids/task-lookup.js'
import { bearerTokenOf } from '../server/http/access.js'
import { toToolResult } from './mcp-tool.js'
import type { McpResult, McpTool } from './mcp-tool.js'

export interface Caller {
  /** The owner of the client's tasks. */
  readonly owner: string
  /** Whether the client has no token. All such clients share one owner. */
  readonly isAnonymous: boolean
  /** Whether the client runs on this machine, as the same user. */
  readonly isLocal?: boolean
  /** Called with the ids of the tasks that a call names, before the call runs. It may make this client the owner of the tasks. */
  readonly onNamed?: (taskIds: readonly string[]) => void
}

export const STDIO_OWNER = 'main'

/** The caller of all requests without a bearer token. */
export const ANONYMOUS: Caller = { owner: 'anonymous', isAnonymous: true }

/** The client of a request without a session. Its owner is derived from the token, so that no record contains the token. */
export function callerOf(request: IncomingMessage): Caller {
  const token = bearerTokenOf(request)
  if (token === undefined) return ANONYMOUS
  return { owner: `client-${createHash('sha256').update(token).digest('hex').slice(0, 16)}`, isAnonymous: false }
}

/** The owner of a session's tasks. It contains the owner of the client, from which the next process knows whose session it was. */
export function sessionOwner(id: string, { owner, isAnonymous }: Caller): string {
  return isAnonymous ? `session-${id}` : `${owner}/session-${id}`
}

/** The client of an owner: the owner itself, unless it is a session of a client with a token. */
export const clientOf = (owner: string): string => OF_TOKEN.exec(owner)?.[1] ?? owner

const OF_TOKEN = /^(client-[0-9a-f]{16})\/session-/

const HOW_TO_IDENTIFY =
  'This client is anonymous, so no tasks are listed for it. Use the full ID of a task, or configure the client to send a bearer ' +
  'token: each token identifies one client.'

const NO_LATER_ANSWER =
  'This client is anonymous: a background task could not report its end to it. Either wait for the result in the call itself ' +
  '(async: false), or ask the user to configure the client to send a bearer token (the header "Authorization: Bearer TOKEN").'

/** Restricts tools to what an anonymous caller may do: use tasks by their full id, and launch tasks that the call waits for. */
export function guardTools(tools: readonly McpTool[], manager: AsyncTaskManager): McpTool[] {
  return tools.map((tool) => ({
    ...tool,
    call: (args, call) => {
      const refusal = tool.answersLater?.(args) === true ? toToolResult(NO_LATER_ANSWER) : refuse(tool, args, manager)
      return refusal === undefined ? tool.call(args, call) : Promise.resolve(refusal)
    },
  }))
}

function refuse(
  { listsTasks = false }: McpTool,
  args: Readonly<Record<string, unknown>>,
  manager: AsyncTaskManager,
): McpResult | undefined {
  const { task_id, task_ids } = args
  const unknown = namedIn(args).find((id) => manager.getTask(id)?.owner !== ANONYMOUS.owner)
  const pruned = unknown === undefined ? undefined : manager.reads.use(prunedTasks).find(unknown, ANONYMOUS.owner)
  // `find` also accepts the beginning of an id, but an anonymous client must know the full id.
  if (pruned !== undefined && pruned.id === unknown) return toToolResult(prunedText(pruned))
  if (unknown !== undefined) return toToolResult(`No async task found with ID '${unknown}'. ${HOW_TO_IDENTIFY}`)
  const isNamed = task_id !== undefined || (Array.isArray(task_ids) && task_ids.length > 0)
  return listsTasks && !isNamed ? toToolResult(HOW_TO_IDENTIFY) : undefined
}

export function namedIn({ task_id, task_ids }: Readonly<Record<string, unknown>>): string[] {
  return [task_id, ...(Array.isArray(task_ids) ? (task_ids as unknown[]) : [])].filter((id) => typeof id === 'string')
}
